"""Policies of a client: hedges, retries, budgets, deadlines, limits, and rules of success."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import wait_for

import weir

LONG_S = 20
"""Longer than any test waits for a response."""


class Scripted:
    """Service whose n-th response is the n-th line of its script; the last line repeats."""

    def __init__(self, url: str) -> None:
        """Start with one line: status 200 at once."""
        self.url = url
        self.script: list[str] = ["200"]
        self.path = ""
        """Beginning of the paths that count; others get status 200."""
        self.requests = 0
        self.lock = threading.Lock()
        self.over = threading.Event()

    def next(self, path: str) -> str:
        """Count a request and return its line."""
        if not path.startswith(self.path):
            return "200"
        with self.lock:
            self.requests += 1
            return self.script[min(self.requests, len(self.script)) - 1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    scripted: Scripted

    def respond(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        line = self.scripted.next(self.path)
        if line == "never":
            self.scripted.over.wait(LONG_S)
            self.close_connection = True
            return
        if line == "close":
            self.close_connection = True
            return
        status, _, body = line.partition(" ")
        self.send_response(int(status))
        if body.startswith("after="):
            self.send_header("Retry-After", body.removeprefix("after="))
        self.send_header("X-Left", self.headers.get("x-envoy-expected-rq-timeout-ms", ""))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_PUT = respond  # noqa: N815  names of http.server

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore disconnected clients; some tests disconnect."""


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    handler = type("Handler", (_Handler,), {})
    with _Server(("127.0.0.1", 0), handler) as server:
        scripted = Scripted(f"http://127.0.0.1:{server.server_address[1]}/")
        handler.scripted = scripted  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield scripted
        scripted.over.set()
        server.shutdown()
        thread.join()


def trace(attempts: Sequence[weir.Attempt]) -> list[tuple[str, str]]:
    return [(attempt.reason, attempt.outcome) for attempt in attempts]


def test_a_hedge_sends_attempts_and_cancels_the_losers(scripted: Scripted) -> None:
    scripted.script = ["never", "200 fine", "never"]
    with weir.Client(hedge=weir.Hedge(after=0.02, attempts=2), budget=None) as client:
        response = client.get(scripted.url)
    assert response.text == "fine"
    assert [attempt.reason for attempt in response.attempts] == ["first", "stage", "stage"]
    # Which of them arrives second is up to the machine.
    assert sorted(attempt.outcome for attempt in response.attempts) == ["cancelled", "cancelled", "won"]
    assert all(attempt.started_ms >= 20 for attempt in response.attempts[1:])
    assert response.won in response.attempts


def test_a_failure_starts_the_hedge_at_once(scripted: Scripted) -> None:
    scripted.script = ["close", "200"]
    with weir.Client(hedge=weir.Hedge(after=LONG_S), budget=None, retry_methods="all") as client:
        response = client.post(scripted.url, content="x")
    assert trace(response.attempts) == [("first", "closed"), ("failure", "won")]


def test_a_post_is_not_sent_twice_by_default(scripted: Scripted) -> None:
    scripted.script = ["503", "200"]
    with weir.Client(hedge=weir.Hedge(after=None), retries=3, budget=None) as client:
        assert client.post(scripted.url).status_code == 503
        assert client.get(scripted.url).status_code == 200
        scripted.requests = 0
        assert client.put(scripted.url, retry_methods="idempotent").status_code == 200
        scripted.requests = 0
        assert client.post(scripted.url, retry_methods="all").status_code == 200


def test_retries_follow_retryable_failures_only(scripted: Scripted) -> None:
    policy = weir.Retry(times=2, on=["closed", "5xx"], backoff=(0.001, 0.002))
    with weir.Client(retries=policy, budget=None) as client:
        scripted.script = ["close", "500", "404"]
        response = client.get(scripted.url)
        assert trace(response.attempts) == [("first", "closed"), ("retry", "status"), ("retry", "won")]
        assert response.status_code == 404
        scripted.requests, scripted.script = 0, ["429", "200"]
        assert client.get(scripted.url).status_code == 429
        assert scripted.requests == 1


def test_the_last_response_is_returned_without_a_success(scripted: Scripted) -> None:
    scripted.script = ["500", "502", "503"]
    with weir.Client(retries=weir.Retry(times=2, on=["5xx"], backoff=(0.001, 0.001)), budget=None) as client:
        response = client.get(scripted.url)
    assert (response.status_code, response.won) == (503, None)
    assert [attempt.status for attempt in response.attempts] == [500, 502, 503]


def test_with_rules_of_success_a_call_without_one_raises(scripted: Scripted) -> None:
    scripted.script = ["200 no json", "500", '200 {"time": "soon"}']
    success = weir.Success(
        status=200, schema={"type": "object", "properties": {"time": {"type": "integer"}}, "required": ["time"]}
    )
    hedge = weir.Hedge(after=None, attempts=2)
    with weir.Client(success=success, hedge=hedge, budget=None) as client:
        with pytest.raises(weir.AllAttemptsFailed) as caught:
            client.get(scripted.url)
        assert sorted(attempt.outcome for attempt in caught.value.attempts) == ["body", "body", "status"]
        assert caught.value.response is not None
        scripted.requests, scripted.script = 0, ["200", '200 {"time": 3}', "never"]
        assert client.get(scripted.url).json() == {"time": 3}


def test_a_success_may_need_a_header_or_json(scripted: Scripted) -> None:
    scripted.script = ["203 {"]
    with weir.Client() as client:
        assert client.get(scripted.url, success=weir.Success(headers={"x-left": ""})).status_code == 203
        with pytest.raises(weir.AllAttemptsFailed, match="header"):
            client.get(scripted.url, success=weir.Success(headers={"x-left": "1"}))
        with pytest.raises(weir.AllAttemptsFailed, match="body"):
            client.get(scripted.url, success=weir.Success(status=None, json=True))
        with pytest.raises(weir.AllAttemptsFailed, match="status 203"):
            client.get(scripted.url, success=weir.Success(status=(200, "3xx")))


def test_a_deadline_ends_a_call_and_is_sent_upstream(scripted: Scripted) -> None:
    with weir.Client(deadline=LONG_S) as client:
        assert 0 < int(client.get(scripted.url).headers["x-left"]) <= LONG_S * 1000
        scripted.script = ["never"]
        began = time.monotonic()
        with pytest.raises(weir.DeadlineExceeded, match=r"no response after 0\.0\d+ s; attempts: cancelled") as caught:
            client.get(scripted.url, deadline="50ms")
        assert 0.05 <= time.monotonic() - began < LONG_S
    assert trace(caught.value.attempts) == [("first", "cancelled")]


def test_a_retry_after_beyond_the_deadline_ends_the_call(scripted: Scripted) -> None:
    scripted.script = ["503 after=30"]
    with weir.Client(deadline=LONG_S, retries=1) as client:
        assert client.get(scripted.url).status_code == 503
    assert scripted.requests == 1


def test_the_budget_bounds_extra_attempts_of_all_calls(scripted: Scripted) -> None:
    scripted.script = ["503"]
    budget = weir.Budget(fraction=0, min_per_s=2 / 3600, window="1h")
    with weir.Client(retries=weir.Retry(times=1, backoff=(0.001, 0.001)), budget=budget) as client:
        for _ in range(10):
            client.get(scripted.url)
        assert scripted.requests == 12
        client.get(scripted.url, budget=None)
        assert scripted.requests == 14


def test_a_failure_names_the_budget_that_stopped_its_retries_and_hedges(scripted: Scripted) -> None:
    scripted.script = ["503"]
    none = weir.Budget(fraction=0.05, min_per_s=0, window=1)
    used_up = r"2 hedges not sent: the retry budget \(5% \+ 0/1s\) was used up; budget=None lifts it"
    hedge = weir.Hedge(after=None, attempts=2)
    with weir.Client(hedge=hedge, budget=none) as client:
        response = client.get(scripted.url)
        assert len(response.attempts) == 1
        assert response.not_sent is not None
        with pytest.raises(weir.HTTPStatusError, match=used_up):
            response.raise_for_status()
        with pytest.raises(weir.AllAttemptsFailed, match=f"status 503; {used_up}"):
            client.get(scripted.url, success=weir.Success())
        with pytest.raises(weir.AllAttemptsFailed, match="1 retry not sent: the retry budget"):
            client.get(scripted.url, hedge=None, retries=2, success=weir.Success())
        assert client.get(scripted.url, budget=None).not_sent is None


def test_a_script_of_calls_in_sequence_does_not_meet_the_default_budget(scripted: Scripted) -> None:
    # A tenth of the attempts fails, and a tenth is not responded to.
    scripted.script = [{3: "500", 7: "never"}.get(number % 10, "200") for number in range(1000)]
    with weir.Client(deadline=LONG_S, hedge=weir.Hedge(0.15, 2), retries=2) as client:
        responses = [client.get(scripted.url) for _ in range(100)]
    assert {response.status_code for response in responses} == {200}
    assert {response.not_sent for response in responses} == {None}
    assert sum(len(response.attempts) > 1 for response in responses) > 10


def test_a_percentile_is_a_time_once_there_are_enough_calls(scripted: Scripted) -> None:
    with weir.Client(hedge=weir.Hedge(after="p95"), budget=None) as client:
        assert len(client.get(scripted.url).attempts) == 1
        for _ in range(200):
            client.get(scripted.url)
        # Cancelled attempts may arrive late: one call in twenty had a second one.
        scripted.path, scripted.requests, scripted.script = "/last", 0, ["never", "200"]
        assert trace(client.get(scripted.url + "last").attempts) == [("first", "cancelled"), ("stage", "won")]


def test_calls_beyond_the_concurrency_limit_wait_within_their_deadline(scripted: Scripted) -> None:
    scripted.script = ["never", "200"]
    with weir.Client(max_concurrency=1) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.get, scripted.url, deadline=LONG_S)
        wait_for(lambda: scripted.requests == 1)
        with pytest.raises(weir.DeadlineExceeded, match="none was sent") as caught:
            client.get(scripted.url, deadline=0.05)
        assert caught.value.attempts == ()
        scripted.over.set()
        with pytest.raises(weir.AllAttemptsFailed):
            first.result()
        assert client.get(scripted.url).status_code == 200


def test_policies_are_values() -> None:
    assert weir.Hedge(after=0.3) == weir.Hedge(after=0.3, attempts=1, on_failure=True)
    assert hash(weir.Retry(on=[503])) == hash(weir.Retry(on=(503,)))
    assert repr(weir.Budget()) == "Budget(fraction=0.05, min_per_s=25.0, window=10.0)"
    with pytest.raises(AttributeError):
        weir.Hedge().attempts = 3  # type: ignore[misc]
