"""`weir.serve`: test servers on threads of the program."""

import json
import pickle
import socket
import time
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

import pytest

import weir


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as response:
        body: bytes = response.read()
    return body


def takes_connections(service: weir.Service) -> bool:
    try:
        socket.create_connection((service.host, service.port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_service_runs_until_the_end_of_its_block() -> None:
    with weir.serve("httpbin") as service:
        assert service.url == f"http://{service.host}:{service.port}"
        assert repr(service) == f"<weir.Service httpbin at {service.url}>"
        assert get(service.url + "/static?bytes=10") == b"weir: sixt"
    assert not takes_connections(service)
    service.stop()


def test_a_service_ends_with_its_last_reference() -> None:
    service = weir.serve("httpbin")
    host, port = service.host, service.port
    del service
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port), timeout=30)


def test_load_and_service_in_one_program() -> None:
    with weir.serve("work", mix={"good": 1}, delay="1ms") as upstream:
        run = weir.load(upstream.url + "/api/work", requests=200, connections=10)
        assert dict(run.status) == {200: 200}
        assert (run.response_ms.min or 0) >= 1
        assert 'weir_http_requests_total{status="200"} 200' in upstream.metrics()


def test_a_seed_repeats_the_behaviour() -> None:
    def statuses(seed: int) -> list[int]:
        with weir.serve("work", mix={"good": 1, "error": 1}, delay="0ms", seed=seed) as upstream:
            found = []
            for _ in range(30):
                try:
                    get(upstream.url + "/api/work")
                    found.append(200)
                except urllib.error.HTTPError as error:
                    error.close()
                    found.append(error.code)
        return found

    assert statuses(1) == statuses(1)
    assert statuses(1) != statuses(2)
    assert set(statuses(1)) == {200, 500}


def test_flags_are_those_of_the_command_line() -> None:
    with weir.serve(
        "ratelimit", key=["a", "b"], limit=["1/1h"], keepalive=True, latency_in=timedelta(0), latency_out="0ms"
    ) as service:
        url = f"{service.url}/api/request?nonce=1&req_id=7&api_key="
        assert json.loads(get(url + "a")) == {"req_id": "7", "status": "OK"}
        assert json.loads(get(url + "b")) == {"req_id": "7", "status": "OK"}
        with pytest.raises(urllib.error.HTTPError) as limited:
            get(url + "a")
        assert limited.value.code == 429
        limited.value.close()
        assert service.stats()["accepted"] == 2


def test_hanging_responses_do_not_delay_a_stop() -> None:
    with (
        weir.serve("work", mix={"hang": 1}, grace=60) as upstream,
        socket.create_connection((upstream.host, upstream.port), timeout=30) as client,
    ):
        client.sendall(b"GET /api/work HTTP/1.1\r\nHost: a\r\n\r\n")
        deadline = time.monotonic() + 30
        while upstream.stats()["in_flight"] == 0:
            assert time.monotonic() < deadline
        upstream.stop()
        assert client.recv(1) == b""


def test_an_invalid_flag_is_a_usage_error() -> None:
    with pytest.raises(weir.UsageError, match="nosuch"):
        weir.serve("nosuch")  # type: ignore[arg-type]
    with pytest.raises(weir.UsageError, match="unexpected argument 'nosuch'"):
        weir.serve("httpbin", nosuch=1)
    with pytest.raises(weir.UsageError, match="invalid value 'soon' for 'idle_timeout'"):
        weir.serve("httpbin", idle_timeout="soon")
    with pytest.raises(weir.UsageError, match="did you mean 'idle_timeout'"):
        weir.serve("httpbin", idle_timout="1s")
    with pytest.raises(weir.UsageError, match="unknown service '--help'; choose work, "):
        weir.serve("--help")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed"):
        weir.serve("httpbin", seed=object())  # type: ignore[arg-type]


def test_options_are_checked_each_and_together() -> None:
    for service, flags, message in (
        ("work", {"slots": 0}, "invalid value '0' for 'slots': 0 is not in 1..=1000000"),
        ("work", {"max_queue": 5}, "max_queue needs slots"),
        ("ratelimit", {"limit": ["20"]}, "invalid value '20' for 'limit'"),
        ("ratelimit", {"keys": 2, "key": "a"}, "key cannot be used with keys"),
        ("llm", {"jitter": "200%"}, "invalid jitter '200%'"),
        ("stream", {"line_end": "lfcr"}, "choose from lf, crlf, cr, mixed"),
        ("sleep", {"workers": 2}, "unexpected argument 'workers'"),
        ("httpbin", {"max_head": 1}, "1 is not in 8192..=1048576"),
    ):
        with pytest.raises(weir.UsageError) as caught:
            weir.serve(service, **flags)  # type: ignore[arg-type]
        assert message in str(caught.value)


def test_a_port_that_is_taken_is_a_setup_error() -> None:
    with weir.serve("httpbin") as first, pytest.raises(weir.SetupError, match=str(first.port)):
        weir.serve("httpbin", port=first.port)


def test_an_access_log_has_a_line_for_each_request(tmp_path: Path) -> None:
    log = tmp_path / "access.jsonl"
    with weir.serve("httpbin", access_log=log) as service:
        get(service.url + "/static?bytes=5")
    (line,) = [json.loads(line) for line in log.read_text().splitlines()]
    assert (line["method"], line["target"], line["status"], line["bytes"]) == ("GET", "/static?bytes=5", 200, 5)


def test_a_service_cannot_be_pickled() -> None:
    with weir.serve("httpbin") as service, pytest.raises(TypeError):
        pickle.dumps(service)
