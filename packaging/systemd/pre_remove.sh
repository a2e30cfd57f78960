#!/bin/sh
# Before the removal, not before an upgrade: Debian names the action, Fedora the number of versions that stay.
set -e
case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl disable --now weir-gate.service 2>/dev/null || true
            systemctl stop 'weir-send@*.service' 2>/dev/null || true
        fi
        ;;
esac
