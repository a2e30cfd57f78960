"""Gateways in front of an upstream, with a worker each: nginx, HAProxy, Caddy, Envoy and `weir gate`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from harness.caddy import CaddyPolicies, caddy
from harness.envoy import EnvoyPolicies, envoy
from harness.programs import Programs
from harness.servers import Server, StartError, free_port, nginx_head, service, started

NGINX, HAPROXY, CADDY, ENVOY = "nginx", "HAProxy", "Caddy", "Envoy"
NGINX_POLICED, HAPROXY_POLICED, CADDY_POLICED, ENVOY_POLICED = (
    f"{name}, policies" for name in (NGINX, HAPROXY, CADDY, ENVOY)
)
PLAIN, POLICED = "weir gate", "weir gate, all policies"
#: Flags that enable all policies.
POLICIES = (
    *("--hedge", "p98:1", "--retries", "2", "--deadline", "1s", "--attempt-timeout", "800ms"),
    *("--budget", "5%+1/1s"),
)
#: Protection without retries, as `weir gate` has it by default.
ENVOY_GUARDED = "Envoy, adaptive concurrency"
ENVOY_PINNED = "Envoy, adaptive concurrency by default"
#: Extra attempts after a fixed time. Caddy, HAProxy and nginx have no hedging.
HEDGE_AFTER_S = 0.015
ENVOY_HEDGING = f"Envoy, hedge_on_per_try_timeout: {1000 * HEDGE_AFTER_S:g} ms"
#: Number of calls in flight, which a person has to know.
CADDY_SLOTS = 50
CADDY_LIMITED = f"Caddy, unhealthy_request_count {CADDY_SLOTS}"

Start = Callable[[str, Path, int, Sequence[Server]], AbstractContextManager[Server]]
IDLE_CONNECTIONS = 256  # from nginx to the upstream


def gateway(name: str, programs: Programs, core: int, *upstreams: Server) -> AbstractContextManager[Server]:
    """Start the gateway in front of the upstreams, until the context is left."""
    program, start = GATEWAYS[name]
    if program not in programs:
        raise StartError("not on this machine")
    return start(name, programs[program], core, upstreams)


def available(names: Sequence[str], programs: Programs) -> list[str]:
    """Return the gateways whose program is on this machine."""
    return [name for name in names if GATEWAYS[name][0] in programs]


def gate(name: str, weir: Path, core: int, *flags: str) -> AbstractContextManager[Server]:
    """Start `weir gate` with these flags on a free port."""
    return service(name, [str(weir), "gate", "--listen", "0", "--quiet", *flags], core)


def _weir(
    name: str, program: Path, core: int, upstreams: Sequence[Server], flags: Sequence[str] = ()
) -> AbstractContextManager[Server]:
    hosts = [word for upstream in upstreams for word in ("--upstream", upstream.url.rstrip("/"))]
    return gate(name, program, core, *hosts, *flags)


@contextmanager
def _nginx(
    name: str, program: Path, core: int, upstreams: Sequence[Server], policies: Sequence[str] = ()
) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="weir-nginx-") as scratch:
        folder, port = Path(scratch), free_port()
        folder.chmod(0o755)  # its worker may be another user
        config = folder / "nginx.conf"
        hosts = "\n        ".join(f"server 127.0.0.1:{upstream.port};" for upstream in upstreams)
        config.write_text(f"""{nginx_head(folder)}
    upstream behind {{
        {hosts}
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
            {" ".join(policies)}
        }}
    }}
}}
""")
        command = [str(program), "-p", scratch, "-c", str(config), "-e", f"{scratch}/error.log"]
        with started(Server, name, command, core, port) as server:
            yield server


@contextmanager
def _haproxy(
    name: str, program: Path, core: int, upstreams: Sequence[Server], *, policies: Sequence[str] = (), checks: str = ""
) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="weir-haproxy-") as scratch:
        config, port = Path(scratch) / "haproxy.cfg", free_port()
        hosts = "\n    ".join(
            f"server host{number} 127.0.0.1:{upstream.port} {checks}" for number, upstream in enumerate(upstreams)
        )
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
    {"".join(f"{line}{chr(10)}    " for line in policies)}{hosts}
""")
        with started(Server, name, [str(program), "-db", "-q", "-f", str(config)], core, port) as server:
            yield server


_NGINX_POLICIES = (
    "proxy_connect_timeout 1s; proxy_read_timeout 800ms;",
    "proxy_next_upstream error timeout http_502 http_503 http_504;",
    "proxy_next_upstream_tries 3; proxy_next_upstream_timeout 1s;",
)
_HAPROXY_POLICIES = (
    *("timeout connect 1s", "timeout server 800ms", "timeout queue 1s"),
    *("retries 2", "retry-on conn-failure empty-response response-timeout 502 503 504", "option redispatch"),
)
_HAPROXY_CHECKS = "check inter 10s observe layer7 error-limit 50 on-error mark-down"
#: For `weir serve work`, whose responses take up to 600 ms: a call that waits longer would be late.
_LIMITED = CaddyPolicies(checked=True, max_requests=CADDY_SLOTS, try_s=0.4, health_uri="/stats")
_GUARDED = EnvoyPolicies(guarded=True)
_ALL = EnvoyPolicies(guarded=True, retries=2, per_try_timeout_s=0.8, hedging=True)
_HEDGING = EnvoyPolicies(retries=1, per_try_timeout_s=HEDGE_AFTER_S, hedging=True, backoff_s=0.001)

#: Program and start of each gateway.
GATEWAYS: dict[str, tuple[str, Start]] = {
    NGINX: ("nginx", _nginx),
    HAPROXY: ("haproxy", _haproxy),
    CADDY: ("caddy", caddy),
    ENVOY: ("envoy", envoy),
    PLAIN: ("weir", _weir),
    NGINX_POLICED: ("nginx", partial(_nginx, policies=_NGINX_POLICIES)),
    HAPROXY_POLICED: ("haproxy", partial(_haproxy, policies=_HAPROXY_POLICIES, checks=_HAPROXY_CHECKS)),
    CADDY_POLICED: ("caddy", partial(caddy, policies=CaddyPolicies(checked=True))),
    ENVOY_POLICED: ("envoy", partial(envoy, policies=_ALL)),
    POLICED: ("weir", partial(_weir, flags=POLICIES)),
    CADDY_LIMITED: ("caddy", partial(caddy, policies=_LIMITED)),
    ENVOY_GUARDED: ("envoy", partial(envoy, policies=_GUARDED)),
    ENVOY_PINNED: ("envoy", partial(envoy, policies=EnvoyPolicies(guarded=True, pinned=True))),
    ENVOY_HEDGING: ("envoy", partial(envoy, policies=_HEDGING)),
}
