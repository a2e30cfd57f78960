"""Service of the scenarios: nginx with constant JSON, and with room for many idle users."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.servers import BODY, Nginx, free_port, nginx_head, nginx_in

#: Response of each step: about 1 KB, with what is looked for at both ends and in the middle.
RESPONSE = json.dumps({
    "token": "0123456789abcdef",
    "items": [{"id": n, "name": f"item number {n}", "price": 12.5, "tags": ["a"]} for n in range(14)],
    "status": "ok",
})  # fmt: skip


@contextmanager
def shop(program: Path, core: int) -> Iterator[Nginx]:
    """Start the service on a free port."""
    with tempfile.TemporaryDirectory(prefix="weir-shop-") as folder:
        port = free_port()
        with nginx_in(folder, program, core, port, _config(Path(folder), port)) as server:
            yield server


def _config(folder: Path, port: int) -> str:
    head = nginx_head(folder).replace("worker_connections 16384", "worker_connections 24000")
    return f"""{head.replace("worker_rlimit_nofile 20000", "worker_rlimit_nofile 24100")}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /_status {{ stub_status; }}
        location /shop/ {{ default_type application/json; return 200 '{RESPONSE}'; }}
        location / {{ default_type text/plain; return 200 "{BODY}\\r\\n"; }}
    }}
}}
"""
