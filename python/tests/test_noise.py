"""The noises of benches/harness/noise.py, and the Python client among them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Service, wait_for
from harness import noise
from programs import binary, finished, started

import weir

LONG_S = 30


def state(pid: int) -> str:
    """The state of a process: R, S, T (stopped), ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


CALLS = """
import sys, weir
with weir.Client(retries=2) as client:
    print("ready", flush=True)
    calls = 0
    # Until stdin is closed; each call gets a response.
    import select
    while not select.select([sys.stdin], [], [], 0)[0]:
        assert client.get(sys.argv[1]).status_code == 200
        calls += 1
print(calls)
"""


def test_a_client_that_stalls_sends_each_call_once(service: Service) -> None:
    command = [sys.executable, "-c", CALLS, service.url]
    with started(*command, stdin=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        with noise.stalls(process.pid, per_s=50) as happened:
            wait_for(lambda: len(happened.spans) >= 10)
        out, _ = process.communicate(timeout=LONG_S)
    assert all(end - begin > 0.004 for begin, end in happened.spans[:-1]), "the last one is cut short by the end"
    assert (process.returncode, int(out)) == (0, len(service.seen)), "a stall of its own does not cause another attempt"


def test_a_measurement_that_fails_leaves_nothing_stopped() -> None:
    with started("sleep", "1000") as process:

        def stopped() -> bool:
            return state(process.pid) == "T"

        def fails() -> None:
            with noise.stalls(process.pid, per_s=1000, shortest_s=60, longest_s=61):
                wait_for(stopped)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fails()
        assert not stopped()


def test_a_burner_takes_its_core_in_turns() -> None:
    core = min(os.sched_getaffinity(0))
    with noise.burner(core, busy_s=0.01, period_s=0.02) as happened:
        wait_for(lambda: len(happened.spans) >= 3)
    assert all(end - begin >= 0.01 for begin, end in happened.spans)


def test_a_relay_delays_and_has_outages_of_three_manners(service: Service) -> None:
    with noise.relay(service.port) as relay, weir.Client(deadline=LONG_S) as client:
        assert client.get(relay.url).status_code == 200
        relay.delay(0.05)
        begun = time.monotonic()
        assert client.get(relay.url).status_code == 200
        assert time.monotonic() - begun >= 0.1
        relay.delay(0)
        for manner in ["unavailable", "refused", "silent"]:
            seen = len(service.seen)
            relay.outage(manner)
            if manner == "unavailable":
                assert client.get(relay.url).status_code == 503
            elif manner == "refused":
                with pytest.raises(weir.AllAttemptsFailed):
                    client.get(relay.url)
            else:
                with pytest.raises(weir.DeadlineExceeded):
                    client.get(relay.url, deadline=0.1)
            assert len(service.seen) == seen
            relay.restore()
            assert client.get(relay.url).status_code == 200


def test_a_neighbour_says_how_much_it_used(service: Service) -> None:
    with noise.neighbour(binary(), service.url, rate_per_s=100, headers=["X-Key: k"]) as use:
        wait_for(lambda: len(service.seen) > 40)
    assert use.run["requests"]["ok"] > 20
    assert all(seen.headers["X-Key"] == "k" for seen in service.seen)


def test_a_network_of_its_own_delays_and_loses_where_that_is_allowed() -> None:
    serving = "import socket; s = socket.create_server(('127.0.0.1', 0)); import time; b = time.monotonic(); "
    serving += "c = socket.create_connection(s.getsockname()); print(time.monotonic() - b)"
    try:
        with noise.network(delay_ms=20) as inside:
            assert float(finished(*inside, sys.executable, "-c", serving).stdout) >= 0.04
    except noise.UnavailableError as why:
        pytest.skip(str(why))


def test_broken_uploads_reach_a_service_that_goes_on() -> None:
    with weir.serve("httpbin") as service:
        port = int(service.url.rpartition(":")[2].strip("/"))
        with noise.broken_uploads(port, per_s=100) as happened:
            wait_for(lambda: len(happened.spans) >= 4)
        assert weir.Client().get(service.url + "/static?bytes=1").status_code == 200
