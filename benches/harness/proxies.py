"""Gateways in front of an upstream, with a worker each: nginx, HAProxy and `weir gate`."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from harness.process import environment, pinned
from harness.programs import Programs
from harness.servers import Server, StartError, await_port, free_port, nginx_head, service

NGINX, HAPROXY = "nginx", "HAProxy"
PLAIN, POLICED = "weir gate", "weir gate, all policies"
#: Flags that enable all policies.
POLICIES = (
    *("--hedge", "p98:1", "--retries", "2", "--deadline", "1s", "--attempt-timeout", "800ms"),
    *("--budget", "5%+1/1s"),
)
#: Program and flags of each gateway.
GATEWAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    NGINX: ("nginx", ()),
    HAPROXY: ("haproxy", ()),
    PLAIN: ("weir", ()),
    POLICED: ("weir", POLICIES),
}
IDLE_CONNECTIONS = 256  # from nginx to the upstream


def gateway(name: str, programs: Programs, core: int, upstream: Server) -> AbstractContextManager[Server]:
    """Start the gateway in front of the upstream, until the context is left."""
    program, flags = GATEWAYS[name]
    if program not in programs:
        raise StartError("not on this machine")
    path = programs[program]
    if name == NGINX:
        return _nginx(path, core, upstream.port)
    if name == HAPROXY:
        return _haproxy(path, core, upstream.port)
    return gate(name, path, core, "--upstream", upstream.url.rstrip("/"), *flags)


def gate(name: str, weir: Path, core: int, *flags: str) -> AbstractContextManager[Server]:
    """Start `weir gate` with these flags on a free port."""
    return service(name, [str(weir), "gate", "--listen", "0", "--quiet", *flags], core)


@contextmanager
def _nginx(program: Path, core: int, upstream: int) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="weir-nginx-") as scratch:
        folder, port = Path(scratch), free_port()
        folder.chmod(0o755)  # its worker may be another user
        config = folder / "nginx.conf"
        config.write_text(f"""{nginx_head(folder)}
    upstream behind {{
        server 127.0.0.1:{upstream};
        keepalive {IDLE_CONNECTIONS};
        keepalive_requests 1000000000;
        keepalive_timeout 1h;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header X-Forwarded-For $remote_addr;
        }}
    }}
}}
""")
        command = [str(program), "-p", scratch, "-c", str(config), "-e", f"{scratch}/error.log"]
        with _started(NGINX, command, core, port) as server:
            yield server


@contextmanager
def _haproxy(program: Path, core: int, upstream: int) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="weir-haproxy-") as scratch:
        config, port = Path(scratch) / "haproxy.cfg", free_port()
        config.write_text(f"""
global
    nbthread 1
    maxconn 4000
defaults
    mode http
    option http-keep-alive
    option forwardfor
    http-reuse always
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend before
    bind 127.0.0.1:{port} backlog 4096
    default_backend behind
backend behind
    server one 127.0.0.1:{upstream}
""")
        with _started(HAPROXY, [str(program), "-db", "-q", "-f", str(config)], core, port) as server:
            yield server


@contextmanager
def _started(name: str, command: list[str], core: int, port: int) -> Iterator[Server]:
    process = subprocess.Popen(pinned(command, core), text=True, env=environment())
    server = Server(name, port, process)
    try:
        await_port(server)
        yield server
    finally:
        server.stop()
