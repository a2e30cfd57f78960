"""`weir.load` against a real service: requests sent, and results."""

import base64
import json
import threading
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Service

import weir


def test_a_closed_loop_counts_what_the_service_saw(service: Service) -> None:
    run = weir.load(service.url, connections=3, requests=60)
    assert run.model == "closed"
    assert (run.requests.total, run.requests.ok, run.requests.failed) == (60, 60, 0)
    assert len(service.seen) == 60
    assert dict(run.status) == {200: 60}
    assert dict(run.failures) == {}
    assert run.connections.max == 3
    assert run.bytes.body_in == 60 * len("hello")


def test_an_open_loop_keeps_its_rate(service: Service) -> None:
    run = weir.load(service.url, rate=100, duration=0.5, arrivals="constant")
    assert run.model == "open"
    assert run.requests.total == 50
    assert run.rate_per_s.offered == pytest.approx(100)


@pytest.mark.parametrize("half_a_second", [0.5, "500ms", timedelta(seconds=0.5)])
def test_times_are_seconds_timedeltas_or_text(service: Service, half_a_second: weir.Time) -> None:
    run = weir.load(service.url, connections=1, duration=half_a_second)
    assert run.duration_s == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("stages", ["0-100/400ms,100/100ms", [(0, 100, 0.4), (100, 100, "100ms")]])
def test_stages_are_text_or_tuples(service: Service, stages: str | list[weir.Stage]) -> None:
    assert weir.load(service.url, stages=stages).requests.total == 30


def test_users_loop_on_new_connections(service: Service) -> None:
    run = weir.load(service.url, users=4, ramp_up="50ms", loops=5, keepalive=False)
    assert run.requests.ok == 20
    assert run.connections.opened == 20


def test_failures_are_counted_instead_of_raised(service: Service) -> None:
    closed = weir.load(service.url + "/close", connections=1, requests=5)
    assert dict(closed.failures) == {"closed": 5}
    garbage = weir.load(service.url + "/garbage", connections=1, requests=5)
    assert dict(garbage.failures) == {"protocol": 5}
    assert "mail server" in garbage.target.failure_details["protocol"]
    failing = weir.load(service.url + "/status?code=503", connections=1, requests=5)
    assert (dict(failing.status), dict(failing.failures)) == ({503: 5}, {"5xx": 5})
    slow = weir.load(service.url + "/slow?ms=500", connections=1, requests=1, timeout="50ms")
    assert dict(slow.failures) == {"timeout": 1}


def test_method_headers_and_auth_arrive(service: Service) -> None:
    headers = {"X-Trace": "a: b", "Accept": ""}
    weir.load(service.url, requests=1, method="DELETE", headers=headers, auth=("me", "p:w"))
    weir.load(service.url, requests=1, headers=iter([("X-Two", "1"), ("X-Two", "2")]), auth="me:p:w")
    one, two = service.seen
    assert (one.method, one.headers["X-Trace"], one.headers["Accept"]) == ("DELETE", "a: b", None)
    assert two.headers.get_all("X-Two") == ["1", "2"]
    credentials = base64.b64encode(b"me:p:w").decode()
    assert {seen.headers["Authorization"] for seen in service.seen} == {f"Basic {credentials}"}


def test_bodies_are_sent_byte_for_byte(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\x00from a file")
    bodies: list[str | bytes | Path] = ["@not-a-file", "ü", b"\xff\x00", file]
    for body in bodies:
        weir.load(service.url, requests=1, body=body)
    assert [seen.body for seen in service.seen] == [b"@not-a-file", "ü".encode(), b"\xff\x00", b"\x00from a file"]
    assert {seen.method for seen in service.seen} == {"POST"}


def test_bodies_are_chosen_by_weight_and_seed(service: Service) -> None:
    def sent(seed: int) -> list[bytes]:
        service.seen.clear()
        weir.load(service.url, connections=1, requests=40, body=["a", b"b", "never"], weights=[3, 1, 0], seed=seed)
        return [seen.body for seen in service.seen]

    first = sent(1)
    counts = Counter(first)
    assert set(counts) == {b"a", b"b"}
    assert counts[b"a"] > counts[b"b"]
    assert sent(1) == first != sent(2)


def test_json_is_a_body_with_its_content_type(service: Service) -> None:
    weir.load(service.url, requests=1, json=[{"name": "ü", "n": 1}])
    weir.load(service.url, requests=1, json={}, headers={"content-type": "application/vnd.x+json"})
    one, two = service.seen
    assert json.loads(one.body) == [{"name": "ü", "n": 1}]
    assert one.headers.get_all("Content-Type") == ["application/json"]
    assert two.headers.get_all("Content-Type") == ["application/vnd.x+json"]


def test_keepalive_can_be_off(service: Service) -> None:
    assert weir.load(service.url, connections=1, requests=5).connections.opened == 1
    assert weir.load(service.url, connections=1, requests=5, keepalive=False).connections.opened == 5


def test_connect_to_and_host_are_apart(service: Service) -> None:
    run = weir.load("http://shop.invalid/cart", requests=1, connect_to=f"127.0.0.1:{service.port}")
    assert run.requests.ok == 1
    assert service.seen[0].headers["Host"] == "shop.invalid"


def test_warmup_is_excluded(service: Service) -> None:
    run = weir.load(service.url, rate=100, duration="600ms", warmup="400ms")
    assert (run.warmup_s, run.requests.total, len(service.seen)) == (0.4, 20, 60)


def test_objectives_are_judged_in_their_order(service: Service) -> None:
    run = weir.load(service.url, requests=10, connections=1, slo=["p99<30s", "errors<1%", "rate>1000000"])
    assert [(objective.objective, objective.ok) for objective in run.slo] == [
        ("p99<30s", True),
        ("errors<1%", True),
        ("rate>1000000", False),
    ]
    assert weir.load(service.url, requests=1, slo="p50<30s").slo[0].ok


def test_the_manifest_shows_the_call_without_passwords(service: Service) -> None:
    url = service.url.replace("http://", "http://me:secret@")
    headers = {"Cookie": "secret", "X-Trace": "1"}
    run = weir.load(url, requests=1, seed=7, auth=("me", "secret"), headers=headers)
    assert run.manifest.command == (
        "weir.load",
        f"url='http://***@127.0.0.1:{service.port}'",
        "requests=1",
        "headers=['Cookie: ***', 'X-Trace: 1']",
        "auth='***'",
        "seed=7",
    )
    assert run.manifest.seed == 7
    assert "secret" not in run.to_json()


def test_other_threads_run_meanwhile(service: Service) -> None:
    # The service is Python in this process: a run that kept the GIL would get no response.
    done: list[weir.Run] = []
    threads = [
        threading.Thread(target=lambda: done.append(weir.load(service.url, requests=20, connections=2)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.requests.ok for run in done] == [20, 20, 20]


def access_log(path: Path, paths: list[str]) -> Path:
    """A log of requests that end within three seconds, a third in each."""
    lines = [
        f'::1 - - [26/Nov/2025:12:00:{3 * n // len(paths):02} +0000] "GET {target} HTTP/1.1" 200 5 "-" "a" 0.000'
        for n, target in enumerate(paths)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_log_gives_a_load_its_rate_and_its_requests(service: Service, tmp_path: Path) -> None:
    log = access_log(tmp_path / "access.log", [f"/{'ab'[n % 3 == 0]}" for n in range(60)])
    run = weir.load(service.url, rate_from=log, scale=2, speed=3)
    assert run.requests.total == pytest.approx(120, abs=2)
    assert run.duration_s == pytest.approx(1, abs=0.2)
    before = len(service.seen)
    mixed = weir.load(service.url, mix_from=[str(log)], requests=300, connections=2, seed=1)
    assert mixed.requests.total == 300
    assert len(service.seen) - before == 300
    names = {step.name: step.requests for step in mixed.steps}
    assert len(names) == 2
    assert sorted(names.values())[0] == pytest.approx(100, abs=40)
