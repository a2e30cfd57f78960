"""`weir.retry` in virtual time: which attempts are made, and when."""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from datetime import timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import pytest
from retry_clock import FORMS, Clock, run

import weir
from weir import _decisions

pytestmark = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Failing:
    """Function that raises these, one a call, and returns after that; it takes its time."""

    def __init__(self, clock: Clock, *errors: BaseException, takes: float = 0.0) -> None:
        """Make a function."""
        self.clock = clock
        self.errors = list(errors)
        self.takes = takes
        self.at: list[int] = []
        self.result: Any = "result"

    def __call__(self) -> Any:
        """Raise or return."""
        self.at.append(self.clock.ns)
        self.clock.advance(self.takes)
        if self.errors:
            raise self.errors.pop(0)
        return self.result


def notes(error: BaseException, before_311: str) -> list[str]:
    """Notes of an exception; Python 3.10 has none."""
    return list(getattr(error, "__notes__", [])) if sys.version_info >= (3, 11) else [before_311]


def errors(count: int) -> list[ConnectionError]:
    return [ConnectionError(number) for number in range(count)]


def test_a_failed_attempt_is_repeated_until_one_succeeds(form: str, clock: Clock) -> None:
    policy = weir.retry(on=ConnectionError, attempts=4, backoff=(0.1, 1.0))
    function = Failing(clock, *errors(3))
    assert run(form, policy, function) == "result"
    assert len(function.at) == 4
    assert len(clock.waits) == 3
    last = 0.1
    for wait in clock.waits:
        assert 0.1 <= wait <= min(1.0, 3 * last) + 1e-9
        last = wait
    counts = policy.statistics
    assert (counts.calls, counts.attempts, counts.retries, counts.succeeded, counts.failed) == (1, 4, 3, 1, 0)
    assert counts.waited_s == pytest.approx(sum(clock.waits))


def test_the_last_exception_is_raised_as_it_is_with_a_note(form: str, clock: Clock) -> None:
    policy = weir.retry(on=ConnectionError, attempts=3, backoff="1s", name="fetch")
    function = Failing(clock, *(raised := errors(5)))
    with pytest.raises(ConnectionError) as caught:
        run(form, policy, function)
    assert caught.value is raised[2]
    assert clock.waits == [1.0, 1.0]
    assert getattr(
        caught.value, "__notes__", ["weir.retry: fetch ended after 3 attempts in 2.000 s: its attempts are used up"]
    ) == ["weir.retry: fetch ended after 3 attempts in 2.000 s: its attempts are used up"]
    assert policy.statistics.failed == 1


def test_the_same_exception_has_one_note_however_often_it_is_raised(form: str, clock: Clock) -> None:
    error = ConnectionError("one object")
    policy = weir.retry(on=ConnectionError, attempts=2, backoff=0)
    for _ in range(3):
        with pytest.raises(ConnectionError):
            run(form, policy, Failing(clock, error, error))
    assert len(notes(error, "")) == 1


def test_each_of_two_rules_within_each_other_has_its_note(form: str, clock: Clock) -> None:
    inner = weir.retry(on=ConnectionError, attempts=2, backoff=0, name="inner")
    outer = weir.retry(on=ConnectionError, attempts=2, backoff=0, name="outer")
    error = ConnectionError()
    with pytest.raises(ConnectionError):
        run("function", outer, inner(Failing(clock, *[error] * 9)))
    begin = [note.split(" ended")[0] for note in notes(error, "")]
    assert begin == ["weir.retry: inner", "weir.retry: outer"] or sys.version_info < (3, 11)


def test_what_is_not_named_is_raised_at_once_without_a_note(form: str, clock: Clock) -> None:
    function = Failing(clock, ValueError("no"))
    with pytest.raises(ValueError, match="no") as caught:
        run(form, weir.retry(on=(ConnectionError, TimeoutError)), function)
    assert (len(function.at), clock.waits, getattr(caught.value, "__notes__", [])) == (1, [], [])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()], ids=["^C", "exit", "close"])
def test_what_is_no_exception_is_never_retried(form: str, clock: Clock, error: BaseException) -> None:
    function = Failing(clock, error)
    policy = weir.retry(on=lambda _: True)
    with pytest.raises(type(error)):
        run(form, policy, function)
    assert (len(function.at), policy.statistics.failed) == (1, 1)


def test_no_wait_ends_after_the_deadline(form: str, clock: Clock) -> None:
    policy = weir.retry(on=ConnectionError, attempts=None, deadline=10, backoff=3)
    function = Failing(clock, *errors(99), takes=0.5)
    began = clock.ns
    with pytest.raises(ConnectionError) as caught:
        run(form, policy, function)
    assert [(at - began) / 1e9 for at in function.at] == [0.0, 3.5, 7.0]
    assert clock.ns - began == 7_500_000_000
    assert "deadline" in notes(caught.value, "deadline")[0]


def test_attempts_are_not_limited_by_a_set_of_bits(form: str, clock: Clock) -> None:
    policy = weir.retry(on=ConnectionError, attempts=None, deadline="1h", backoff=1, budget=None)
    function = Failing(clock, *errors(500))
    assert run(form, policy, function) == "result"
    assert len(function.at) == 501


def headers(retry_after: str) -> Message:
    found = Message()
    found["retry-after"] = retry_after
    found["date"] = "Tue, 14 Nov 2023 22:13:20 GMT"
    return found


def of_response(text: str) -> Exception:
    error = ConnectionError()
    error.response = SimpleNamespace(headers={"retry-after": text})  # type: ignore[attr-defined]
    return error


def of_headers(text: str) -> Exception:
    return HTTPError("http://localhost/", 429, "slow down", headers(text), None)


def of_boto(text: str) -> Exception:
    error = ConnectionError()
    error.response = {"ResponseMetadata": {"HTTPHeaders": {"retry-after": text}}}  # type: ignore[attr-defined]
    return error


def of_aiohttp(text: str) -> Exception:
    aiohttp = pytest.importorskip("aiohttp")
    found = {"Retry-After": text, "Date": "Tue, 14 Nov 2023 22:13:20 GMT"}
    error: Exception = type("Error", (aiohttp.ClientResponseError, OSError), {})(None, (), status=503, headers=found)
    return error


def of_requests(text: str) -> Exception:
    requests = pytest.importorskip("requests")
    response = requests.Response()
    response.headers["retry-after"] = text
    error: Exception = requests.HTTPError(response=response)
    return error


def of_httpx(text: str) -> Exception:
    httpx = pytest.importorskip("httpx")
    response = httpx.Response(503, headers={"retry-after": text})
    kind = type("Error", (httpx.HTTPStatusError, OSError), {})
    error: Exception = kind("503", request=httpx.Request("GET", "http://localhost/"), response=response)
    return error


def of_bytes(text: str) -> Exception:
    error = ConnectionError()
    error.response = SimpleNamespace(headers={"Retry-After": text.encode()})  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("made", [of_response, of_headers, of_boto, of_bytes, of_aiohttp, of_requests, of_httpx])
@pytest.mark.parametrize("text", ["7", "Tue, 14 Nov 2023 22:13:27 GMT"], ids=["seconds", "date"])
def test_the_wait_is_retry_after_or_longer(
    form: str, clock: Clock, made: Callable[[str], Exception], text: str
) -> None:
    function = Failing(clock, made(text))
    assert run(form, weir.retry(on=OSError, deadline=60), function) == "result"
    assert clock.waits == [7.0]
    function = Failing(clock, made(text))
    assert run(form, weir.retry(on=OSError, backoff=0, retry_after=False), function) == "result"
    assert clock.waits == [7.0, 0.0]


def test_a_retry_after_that_is_past_the_deadline_ends_the_call_at_once(form: str, clock: Clock) -> None:
    function = Failing(clock, of_response("61"))
    with pytest.raises(ConnectionError) as caught:
        run(form, weir.retry(on=OSError, deadline=60), function)
    assert (len(function.at), clock.waits) == (1, [])
    assert "deadline leaves no time" in notes(caught.value, "deadline leaves no time")[0]


def test_a_response_that_fails_to_be_read_has_no_retry_after(form: str, clock: Clock) -> None:
    class OddError(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("no response was set")

    assert run(form, weir.retry(on=OddError, backoff=2), Failing(clock, OddError())) == "result"
    assert clock.waits == [2.0]


@pytest.mark.parametrize("wait", [5, 5.0, timedelta(seconds=5)])
def test_a_function_of_the_exception_has_the_least_wait(form: str, clock: Clock, wait: float | timedelta) -> None:
    policy = weir.retry(on=lambda error: wait if error.args == ("busy",) else False)
    assert run(form, policy, Failing(clock, RuntimeError("busy"))) == "result"
    assert clock.waits == [5.0]
    with pytest.raises(RuntimeError, match="broken"):
        run(form, policy, Failing(clock, RuntimeError("broken")))


def test_classes_and_functions_are_taken_together(form: str, clock: Clock) -> None:
    policy = weir.retry(on=(ConnectionError, lambda error: "again" in str(error)), backoff=0, attempts=9)
    assert run(form, policy, Failing(clock, ConnectionError(), RuntimeError("again"))) == "result"


def test_a_function_that_forgets_to_return_is_a_type_error(form: str, clock: Clock) -> None:
    with pytest.raises(TypeError, match="a predicate returned None; return True, False, or seconds"):
        run(form, weir.retry(on=lambda _: None), Failing(clock, RuntimeError()))  # type: ignore[arg-type]


def test_the_backoff_may_be_a_function_of_the_attempt(form: str, clock: Clock) -> None:
    policy = weir.retry(on=OSError, attempts=6, backoff=lambda number: 3 if number <= 3 else "7s")
    run(form, policy, Failing(clock, *errors(5)))
    assert clock.waits == [3.0, 3.0, 3.0, 7.0, 7.0]


def test_results_are_awaited_until_one_is_accepted(form: str, clock: Clock) -> None:
    results = iter(["queued", "running", "done"])
    assert run(form, weir.retry(until=lambda state: state == "done", backoff=1), lambda: next(results)) == "done"
    assert clock.waits == [1.0, 1.0]


def test_without_a_result_that_is_accepted_the_call_raises(form: str, clock: Clock) -> None:
    policy = weir.retry(until=lambda state: state == "done", attempts=2, backoff=1, name="poll")
    with pytest.raises(weir.RetriesExhausted, match="poll: no result that 'until' accepts after 2 attempts") as caught:
        run(form, policy, lambda: "queued")
    assert caught.value.result == "queued"
    assert (policy.statistics.failed, policy.statistics.retries) == (1, 1)


def test_a_result_has_a_retry_after_too(form: str, clock: Clock) -> None:
    results = iter([SimpleNamespace(status=503, headers={"retry-after": "4"}), SimpleNamespace(status=200)])
    run(form, weir.retry(until=lambda one: one.status != 503), lambda: next(results))
    assert clock.waits == [4.0]


def test_a_spent_budget_stops_no_first_attempt(form: str, clock: Clock) -> None:
    policy = weir.retry(on=OSError, attempts=2, backoff=0, budget=weir.Budget(fraction=0, min_per_s=3, window=1))
    seen = 0
    for _ in range(20):
        function = Failing(clock, *errors(2))
        with pytest.raises(ConnectionError) as caught:
            run(form, policy, function)
        seen += len(function.at)
    assert seen == 20 + 3
    counts = policy.statistics
    assert (counts.calls, counts.attempts, counts.budget_denied, counts.failed) == (20, 23, 17, 20)
    assert "the retry budget is used up" in notes(caught.value, "the retry budget is used up")[0]


def test_a_budget_that_is_spent_during_the_wait_denies_the_retry(form: str, clock: Clock) -> None:
    budget = weir.SharedBudget(weir.Budget(fraction=0, min_per_s=1, window=1))
    other = weir.retry(on=OSError, backoff=0, budget=budget)

    def spend(_: weir.RetryEvent) -> None:
        run("function", other, Failing(clock, *errors(1)))

    policy = weir.retry(on=OSError, backoff=0.1, budget=budget, on_retry=spend)
    function = Failing(clock, *(raised := errors(1)))
    with pytest.raises(ConnectionError) as caught:
        run(form, policy, function)
    assert caught.value is raised[0]
    assert (len(function.at), policy.statistics.budget_denied, policy.statistics.failed) == (1, 1, 1)


def test_a_budget_is_shared_by_those_that_are_given_the_same_object(form: str, clock: Clock) -> None:
    rule = weir.Budget(fraction=0, min_per_s=2, window=1)
    shared = weir.SharedBudget(rule)
    both = [weir.retry(on=OSError, attempts=9, backoff=0, budget=shared) for _ in range(2)]
    own = weir.retry(on=OSError, attempts=9, backoff=0, budget=rule)
    for policy in (*both, own):
        with pytest.raises(ConnectionError):
            run(form, policy, Failing(clock, *errors(9)))
    assert [policy.statistics.retries for policy in (*both, own)] == [2, 0, 2]
    assert shared.remaining == 0


def test_a_hook_gets_each_retry_before_its_wait(form: str, clock: Clock) -> None:
    seen: list[tuple[weir.RetryEvent, int]] = []
    policy = weir.retry(
        on=OSError, backoff=2, deadline=10, name="fetch", on_retry=lambda event: seen.append((event, clock.ns))
    )
    function = Failing(clock, *(raised := errors(2)), takes=1)
    began = clock.ns
    assert run(form, policy, function) == "result"
    assert seen == [
        (weir.RetryEvent("fetch", 1, raised[0], None, 2.0, 1.0, 9.0), began + 1_000_000_000),
        (weir.RetryEvent("fetch", 2, raised[1], None, 2.0, 4.0, 6.0), began + 4_000_000_000),
    ]


def test_retries_are_logged_without_the_messages_of_exceptions(
    form: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    secret = [ConnectionError("http://localhost/?api_key=secret") for _ in range(2)]
    with caplog.at_level(logging.INFO, "weir.retry"), pytest.raises(ConnectionError):
        run(form, weir.retry(on=OSError, attempts=2, backoff=1, name="fetch"), Failing(clock, *secret))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "fetch: attempt 1 raised builtins.ConnectionError; retry in 1.000 s"),
        (
            "WARNING",
            "fetch ended after 2 attempts in 1.000 s: its attempts are used up; the last one raised "
            "builtins.ConnectionError",
        ),
    ]
    assert caplog.records[0].retry.exception is secret[0]  # type: ignore[attr-defined]


def test_a_block_for_tests_has_no_waits_and_fewer_attempts(form: str, clock: Clock) -> None:
    policy = weir.retry(on=OSError, attempts=4, backoff=5)
    for attempts, expected in [(1, 1), (2, 2), (9, 4), (None, 4)]:
        function = Failing(clock, *errors(9), of_response("9"))
        with weir.retry.testing(attempts), pytest.raises(ConnectionError):
            run(form, policy, function)
        assert len(function.at) == expected
    assert not any(clock.waits)
    with weir.retry.testing(2):
        with weir.retry.testing():
            pass
        assert run(form, policy, Failing(clock, *errors(1))) == "result"
    run(form, policy, Failing(clock, *errors(1)))
    assert clock.waits[-1] == 5.0


@pytest.mark.parametrize("seed", range(40))
def test_the_driver_makes_the_attempts_of_the_decision(
    form: str, seed: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random rules and failures: times and numbers are those of the decision alone, asked with the same events."""
    draw = random.Random(seed)
    rule = weir.Budget(fraction=0, min_per_s=draw.choice([0, 1, 100]), window=draw.choice([1, 5]))
    attempts, deadline = draw.choice([(None, 4.0), (3, None), (8, 2.0), (1, None)])
    backoff = draw.choice([(0.0, 0.0), (0.1, 0.5), (0.5, 0.5)])
    plan = [(draw.choice([0.0, 0.1, 0.7]), draw.choice([None, None, "0.3", "1"])) for _ in range(40)]
    fails = draw.choice([0, 1, 5, 40])
    monkeypatch.setattr(random, "getrandbits", lambda bits: seed)
    policy = weir.retry(on=OSError, attempts=attempts, deadline=deadline, backoff=backoff, budget=rule)

    began = now = clock.ns
    expected = [began]
    form_of = {"attempts": attempts, "deadline": deadline, "backoff": backoff}
    rules = _decisions.RetryRulesHandle({**form_of, "budget": _decisions.BudgetHandle(rule)}, seed)
    call = rules.start(now, None, True)
    for takes, header in plan[:fails]:
        now += round(takes * 1e9)
        at, limit = call.failed(now, [], header)
        assert (at is None) != (limit is None)
        if at is None or call.retry(at) is not None:
            break
        now = at
        expected.append(now)

    made: list[int] = []

    def function() -> str:
        made.append(clock.ns)
        number = len(made)
        takes, header = plan[number - 1]
        clock.advance(takes)
        if number > fails:
            return "result"
        raise of_response(header) if header else ConnectionError

    try:
        run(form, policy, function)
        assert len(made) == fails + 1
    except ConnectionError:
        assert len(made) <= fails
    assert made == expected
    assert policy.statistics.attempts == len(expected)
