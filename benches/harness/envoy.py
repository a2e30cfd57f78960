"""Envoy in front of an upstream, with one worker, as its documentation configures it.

Sources are the pages "Adaptive Concurrency", "Request Hedging", "Circuit breaking" and "Outlier detection" of Envoy's
documentation; docs/design/gate-peers.md has the reasons.
"""

from __future__ import annotations

import http.client
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

from harness.servers import Server, free_port, started

_FILTERS = "type.googleapis.com/envoy.extensions.filters"
_PREVIOUS_HOSTS = "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"


@dataclass(frozen=True)
class EnvoyPolicies:
    """Policies beside those that Envoy has by default."""

    guarded: bool = False  # adaptive concurrency, outlier detection, a deadline of 1 s and those of callers
    pinned: bool = False  # the adaptive limit falls to 3 while the minimum latency is measured, as is the default
    retries: int = 0
    per_try_timeout_s: float = 0.0
    hedging: bool = False  # another attempt at the timeout of one, instead of an end of that
    backoff_s: float = 0.025  # base of the random wait before another attempt; the default


class Envoy(Server):
    """Envoy with an admin listener."""

    def __init__(self, name: str, port: int, process: subprocess.Popen[str], address: Path) -> None:
        """Wrap a running Envoy; `address` is the file to which it writes the admin listener's."""
        super().__init__(name, port, process)
        self._address = address

    def stats(self, pattern: str) -> dict[str, int]:
        """Return the counters and gauges whose name matches the regular expression."""
        host, _, port = self._address.read_text().strip().rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        try:
            connection.request("GET", f"/stats?filter={pattern}")
            return counters(connection.getresponse().read().decode())
        finally:
            connection.close()


def counters(text: str) -> dict[str, int]:
    """Read the lines of /stats that are numbers; histograms are left out."""
    return {name: int(value) for name, value in re.findall(r"^(\S+): (\d+)$", text, re.MULTILINE)}


@contextmanager
def envoy(
    name: str, program: Path, core: int, upstreams: Sequence[Server], policies: EnvoyPolicies | None = None
) -> Iterator[Envoy]:
    """Start Envoy in front of these hosts on a free port."""
    with tempfile.TemporaryDirectory(prefix="weir-envoy-") as scratch:
        config, address, port = Path(scratch) / "envoy.yaml", Path(scratch) / "admin", free_port()
        config.write_text(configuration(port, [upstream.port for upstream in upstreams], policies or EnvoyPolicies()))
        command = [str(program), "-c", str(config), "--concurrency", "1", "--disable-hot-restart"]
        command += ["--log-level", "error", "--admin-address-path", str(address)]

        def make(name: str, port: int, process: subprocess.Popen[str]) -> Envoy:
            return Envoy(name, port, process, address)

        with started(make, name, command, core, port) as server:
            yield server


def configuration(port: int, upstreams: Sequence[int], policies: EnvoyPolicies) -> str:
    """Write the configuration in front of these ports."""
    endpoints = (
        f"{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {upstream} }} }} }} }}"
        for upstream in upstreams
    )
    return _FILE.substitute(
        port=port,
        filters=_FILTERS,
        internal=_INTERNAL if policies.guarded else "",
        adaptive=_ADAPTIVE.substitute(filters=_FILTERS, limits=_limits(policies)) if policies.guarded else "",
        router=", respect_expected_rq_timeout: true" if policies.guarded else "",
        route=_route(policies, several=len(upstreams) > 1),
        endpoints=", ".join(endpoints),
        cluster=_cluster(policies),
    )


def _limits(policies: EnvoyPolicies) -> str:
    """Make the two parameters that decide on what happens while the minimum latency is measured."""
    if policies.pinned:
        return """
                        concurrency_limit_params: { concurrency_update_interval: 0.1s }
                        min_rtt_calc_params: { jitter: { value: 10 }, interval: 60s, request_count: 50 }"""
    return """
                        concurrency_limit_params: { concurrency_update_interval: 0.1s, min_concurrency_limit: 25 }
                        min_rtt_calc_params:
                          { min_concurrency: 50, jitter: { value: 10 }, interval: 60s, request_count: 50 }"""


def _route(policies: EnvoyPolicies, *, several: bool) -> str:
    lines = ["timeout: 1s"] if policies.guarded else []
    if policies.retries:
        lines += [
            "retry_policy:",
            "  retry_on: 5xx,reset,connect-failure",
            f"  num_retries: {policies.retries}",
            f"  per_try_timeout: {policies.per_try_timeout_s:g}s",
            f"  retry_back_off: {{ base_interval: {policies.backoff_s:g}s }}",
        ]
    if policies.retries and several:
        lines += [
            "  retry_host_predicate:",
            "    - name: envoy.retry_host_predicates.previous_hosts",
            f'      typed_config: {{ "@type": {_PREVIOUS_HOSTS} }}',
            "  host_selection_retry_max_attempts: 3",
        ]
    if policies.hedging:
        lines += ["hedge_policy: { hedge_on_per_try_timeout: true }"]
    return _indented(lines, 28)


def _cluster(policies: EnvoyPolicies) -> str:
    lines = ["outlier_detection: {}"] if policies.guarded else []
    if policies.retries:
        budget = "{ budget_percent: { value: 20 }, min_retry_concurrency: 3 }"  # the defaults
        lines += [f"circuit_breakers: {{ thresholds: [{{ retry_budget: {budget} }}] }}"]
    return _indented(lines, 6)


def _indented(lines: list[str], columns: int) -> str:
    return "".join(f"\n{' ' * columns}{line}" for line in lines)


_FILE = Template("""\
admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0 } } }
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: $port } }
      tcp_backlog_size: 4096
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": $filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: ingress
                use_remote_address: true$internal
                http_filters:$adaptive
                  - name: envoy.filters.http.router
                    typed_config: { "@type": $filters.http.router.v3.Router$router }
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: { prefix: / }
                          route:
                            cluster: service$route
  clusters:
    - name: service
      type: STATIC
      connect_timeout: 1s
      lb_policy: LEAST_REQUEST
      load_assignment:
        cluster_name: service
        endpoints: [{ lb_endpoints: [$endpoints] }]$cluster
""")

#: Deadline headers are taken from internal callers only.
_INTERNAL = """
                internal_address_config: { cidr_ranges: [{ address_prefix: 127.0.0.0, prefix_len: 8 }] }"""

_ADAPTIVE = Template("""
                  - name: envoy.filters.http.adaptive_concurrency
                    typed_config:
                      "@type": $filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
                      gradient_controller_config:
                        sample_aggregate_percentile: { value: 90 }$limits
                      enabled: { default_value: true, runtime_key: adaptive_concurrency.enabled }""")
