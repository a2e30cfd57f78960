#!/bin/sh
# After the installation: the user of the units, which may read the configuration. Nothing is started.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers weir.conf || true
fi
if ! getent passwd weir >/dev/null 2>&1 && command -v useradd >/dev/null 2>&1; then
    useradd --system --user-group --home-dir /var/lib/weir --no-create-home --shell /usr/sbin/nologin weir
fi
if getent group weir >/dev/null 2>&1; then
    chgrp weir /etc/weir/gate.toml
fi
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
