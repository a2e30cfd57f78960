"""Caddy in front of an upstream, on one processor, as its documentation configures it.

Its page on `reverse_proxy` is the source; docs/design/gate-peers.md has the reasons.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.servers import Server, free_port, started

IDLE_CONNECTIONS = 256  # to each host


@dataclass(frozen=True)
class CaddyPolicies:
    """Policies beside those that Caddy has by default."""

    checked: bool = False  # two retries, health checks of both kinds, a response within 1 s
    max_requests: int = 0  # in flight at a host; 0: any number
    try_s: float = 1.0  # during which a call may wait for a host, or be sent again
    health_uri: str = "/"


@contextmanager
def caddy(
    name: str, program: Path, core: int, upstreams: Sequence[Server], policies: CaddyPolicies | None = None
) -> Iterator[Server]:
    """Start Caddy in front of these hosts on a free port."""
    with tempfile.TemporaryDirectory(prefix="weir-caddy-") as scratch:
        config, port = Path(scratch) / "Caddyfile", free_port()
        config.write_text(configuration(port, [upstream.port for upstream in upstreams], policies or CaddyPolicies()))
        command = [str(program), "run", "--config", str(config), "--adapter", "caddyfile"]
        # One processor is as one worker; the folders keep it from writing into those of the user.
        folders = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), scratch)
        with started(Server, name, command, core, port, GOMAXPROCS="1", **folders) as server:
            yield server


def configuration(port: int, upstreams: Sequence[int], policies: CaddyPolicies) -> str:
    """Write the Caddyfile in front of these ports."""
    lines, transport = [], [f"keepalive_idle_conns_per_host {IDLE_CONNECTIONS}"]
    if policies.checked:
        lines += ["lb_policy least_conn", f"lb_try_duration {policies.try_s:g}s"]
        lines += ["fail_duration 10s", "max_fails 5", "unhealthy_status 5xx"]
        lines += [f"health_uri {policies.health_uri}", "health_interval 10s"]
        transport += ["dial_timeout 1s", "response_header_timeout 1s"]
        # Retries end the wait for a host that is full, too.
        lines += ["lb_try_interval 50ms"] if policies.max_requests else ["lb_retries 2"]
    if policies.max_requests:
        lines += [f"unhealthy_request_count {policies.max_requests}"]
    hosts = " ".join(f"127.0.0.1:{upstream}" for upstream in upstreams)
    return f"""\
{{
\tadmin off
\tauto_https off
\tpersist_config off
\tlog {{
\t\tlevel ERROR
\t}}
}}

http://127.0.0.1:{port} {{
\tbind 127.0.0.1
\treverse_proxy {hosts} {{
{_indented(lines, 2)}\
\t\ttransport http {{
{_indented(transport, 3)}\
\t\t}}
\t}}
}}
"""


def _indented(lines: list[str], tabs: int) -> str:
    return "".join(f"{chr(9) * tabs}{line}\n" for line in lines)
