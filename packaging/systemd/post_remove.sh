#!/bin/sh
# After the removal. Queues in /var/lib/weir stay: they have jobs that are not delivered.
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
case "$1" in
    purge | 0)
        if [ ! -d /var/lib/weir ] && command -v userdel >/dev/null 2>&1 && getent passwd weir >/dev/null 2>&1; then
            userdel weir || true
        fi
        if [ "$1" = purge ]; then
            rm -rf /etc/weir
        fi
        ;;
esac
