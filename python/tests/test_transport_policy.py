"""What transports add to calls: deadlines, retries, hedges, and the attempts on the response."""

import asyncio
import itertools
import logging
import time
from typing import Any

import httpx
import httpx2
import pytest
from raw_service import Pieces, raw_service, response
from transport_calls import Calls, failing, silent, stalled

import weir
import weir.httpx
import weir.httpx2


def test_a_deadline_ends_the_whole_call(library: Any, loop: str) -> None:
    for respond in (silent, stalled):
        with raw_service(respond) as service:
            calls = Calls(library, loop, deadline=0.2, retries=2)
            with pytest.raises(library.ReadTimeout) as raised:
                calls.request("GET", service.url)
    first = Calls(library, loop, deadline=0.2)
    with raw_service(silent) as service, pytest.raises(library.TimeoutException) as raised:
        first.request("GET", service.url)
    cause = raised.value.__cause__
    assert isinstance(cause, weir.DeadlineExceeded)
    assert [attempt.outcome for attempt in cause.attempts] == ["cancelled"]


def test_failures_are_retried_and_the_attempts_are_on_the_response(
    library: Any, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "weir.transport")
    with raw_service(failing(2)) as service:
        got = Calls(library, loop, retries=2).request("GET", service.url + "/?key=secret")
    log = got.extensions["weir"]
    assert (got.status_code, got.text) == (200, "ok")
    assert [attempt.outcome for attempt in log.attempts] == ["status", "status", "won"]
    assert log.won is log.attempts[2]
    assert (log.not_sent, len(service.heads)) == (None, 3)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "weir.transport"]
    assert "status 503" in line
    assert "secret" not in line


def test_the_last_status_is_returned_as_before(library: Any, loop: str) -> None:
    with raw_service(failing(9)) as service:
        calls = Calls(library, loop, retries=1, success=weir.Success(status=200))
        got = calls.request("GET", service.url)
    assert (got.status_code, len(service.heads)) == (503, 2)


def test_a_post_is_sent_once_unless_that_is_wanted(library: Any, loop: str) -> None:
    with raw_service(failing(9)) as service:
        assert Calls(library, loop, retries=2).request("POST", service.url, content=b"x").status_code == 503
        assert len(service.heads) == 1
        wanted = Calls(library, loop, retries=2, retry_methods="all")
        assert wanted.request("POST", service.url, content=b"x").status_code == 503
        assert len(service.heads) == 4


def test_retry_after_is_never_undercut(library: Any) -> None:
    with raw_service(failing(1, "429 Slow down", "Retry-After: 1\r\n")) as service:
        began = time.monotonic()
        got = Calls(library, "blocking", retries=1).request("GET", service.url)
        assert (got.status_code, len(service.heads)) == (200, 2)
        assert time.monotonic() - began >= 1
        # And not waited for in vain.
    with raw_service(failing(1, "429 Slow down", "Retry-After: 60\r\n")) as service:
        got = Calls(library, "blocking", retries=1, deadline=30).request("GET", service.url)
        assert (got.status_code, len(service.heads)) == (429, 1)


def test_a_spent_budget_stops_no_first_attempt(library: Any) -> None:
    with raw_service(failing(99)) as service:
        budget = weir.Budget(fraction=0, min_per_s=0.1, window=10)
        transport = getattr(weir, library.__name__).Transport(retries=1, budget=budget)
        with library.Client(transport=transport) as client:
            logs = [client.get(service.url).extensions["weir"] for _ in range(4)]
    assert [len(log.attempts) for log in logs] == [2, 1, 1, 1]
    assert "retry budget" in logs[1].not_sent


def test_concurrent_calls_have_attempts_of_their_own(library: Any) -> None:
    def respond(head: str) -> Pieces:
        return [response(b"ok")] if "/good" in head else [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"]

    async def calls(url: str) -> list[Any]:
        transport = getattr(weir, library.__name__).AsyncTransport(retries=2, budget=None)
        async with library.AsyncClient(transport=transport) as client:
            paths = ["/good", "/bad"] * 20
            return await asyncio.gather(*(client.get(url + path) for path in paths))

    with raw_service(respond) as service:
        got = asyncio.run(calls(service.url))
    assert [len(one.extensions["weir"].attempts) for one in got] == [1, 3] * 20


def test_a_hedge_wins_and_the_other_attempt_is_cancelled(library: Any, loop: str) -> None:
    first = itertools.count()

    def respond(head: str) -> Pieces:
        return silent(head) if next(first) == 0 else [response(b"quick")]

    with raw_service(respond) as service:
        got = Calls(library, loop, hedge=weir.Hedge(after=0.05)).request("GET", service.url)
    assert got.text == "quick"
    assert [attempt.outcome for attempt in got.extensions["weir"].attempts] == ["cancelled", "won"]


def test_a_deadline_within_the_body_has_its_cause(library: Any, loop: str) -> None:
    with raw_service(stalled) as service, pytest.raises(library.ReadTimeout, match="the deadline passed") as raised:
        Calls(library, loop, deadline=0.2).request("GET", service.url)
    cause = raised.value.__cause__
    assert isinstance(cause, weir.DeadlineExceeded)
    assert getattr(weir, library.__name__).attempts(raised.value) == cause.attempts
    assert [attempt.outcome for attempt in cause.attempts] == ["won"]


def test_a_long_retry_after_is_not_waited_for_without_a_deadline(library: Any) -> None:
    with raw_service(failing(1, "503 Busy", "Retry-After: 86400\r\n")) as service:
        got = Calls(library, "blocking", retries=2).request("GET", service.url)
    assert (got.status_code, len(service.heads)) == (503, 1)


def test_attempts_of_other_responses_are_none(library: Any) -> None:
    module = getattr(weir, library.__name__)
    for other in (library.Response(200), ValueError(), None):
        assert module.attempts(other) == ()


def test_transports_of_another_kind_say_which(library: Any) -> None:
    other = httpx if library is httpx2 else httpx2
    module, others = getattr(weir, library.__name__), getattr(weir, other.__name__)
    with raw_service(lambda _: [response(b"ok")]) as service:
        with (
            pytest.raises(TypeError, match=f"with {library.__name__} use weir.{library.__name__}.Transport"),
            library.Client(transport=others.Transport()) as client,
        ):
            client.get(service.url)
        with (
            pytest.raises(TypeError, match=f"a Client needs weir.{library.__name__}.Transport"),
            library.Client(transport=module.AsyncTransport()) as client,
        ):
            client.get(service.url)
        assert not service.heads


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deadlin": 1}, r"Transport: unknown option 'deadlin'; use deadline"),
        ({"max_retries": 2}, "use retries"),
        ({"hedge": 0.2}, r"write hedge=weir\.Hedge\(after=0\.2\)"),
        ({"limits": 10}, "limits: a httpx2?.Limits, not int"),
        ({"retries": True}, "retries: a number"),
    ],
)
def test_options_of_another_type_say_what_to_write(library: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        getattr(weir, library.__name__).Transport(**options)
