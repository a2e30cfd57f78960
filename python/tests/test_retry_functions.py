"""`weir.retry` around functions of every kind, in threads and event loops, and its errors."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import pickle
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from programs import finished
from retry_clock import FORMS, Clock, run

import weir

quick = weir.retry(on=ConnectionError, attempts=3, backoff=0, budget=None)


class Flaky:
    """Fails twice, then returns its arguments."""

    failures = 0

    def fail_twice(self, *arguments: Any) -> tuple[Any, ...]:
        """Raise, or return the arguments."""
        self.failures += 1
        if self.failures % 3:
            raise ConnectionError(self.failures)
        return arguments

    @quick
    def method(self, one: int, *, two: int) -> tuple[Any, ...]:
        """Doc of the method."""
        return self.fail_twice(one, two)

    @quick
    async def coroutine(self, one: int) -> tuple[Any, ...]:
        """Doc of the coroutine."""
        return self.fail_twice(one)

    @quick
    @classmethod
    def of_class(cls, one: int) -> tuple[Any, ...]:
        """Doc of the class method."""
        return _shared.fail_twice(cls, one)

    @quick
    @staticmethod
    def static(one: int) -> tuple[Any, ...]:
        """Doc of the static method."""
        return _shared.fail_twice(one)

    def __call__(self, one: int) -> tuple[Any, ...]:
        """Raise, or return the argument."""
        return self.fail_twice(one)


class AwaitedCall(Flaky):
    """The same as a coroutine."""

    async def __call__(self, one: int) -> tuple[Any, ...]:  # type: ignore[override]
        """Raise, or return the argument."""
        return self.fail_twice(one)


_shared = Flaky()


def test_functions_of_every_kind_are_retried() -> None:
    flaky = Flaky()
    assert flaky.method(1, two=2) == (1, 2)
    assert asyncio.run(flaky.coroutine(1)) == (1,)
    assert Flaky.of_class(1) == (Flaky, 1)
    assert (Flaky.static(1), flaky.static(2)) == ((1,), (2,))
    assert quick(partial(flaky.fail_twice, 1))(2) == (1, 2)
    assert quick(flaky)(3) == (3,)
    assert asyncio.run(quick(AwaitedCall())(4)) == (4,)
    assert asyncio.run(quick(partial(flaky.coroutine.__wrapped__, flaky))(5)) == (5,)  # type: ignore[attr-defined]
    assert quick(lambda: flaky.fail_twice(6))() == (6,)


def test_a_function_keeps_its_name_signature_and_kind() -> None:
    assert Flaky.method.__doc__ == "Doc of the method."
    assert (Flaky.method.__name__, Flaky.method.__qualname__) == ("method", "Flaky.method")
    assert list(inspect.signature(Flaky.method).parameters) == ["self", "one", "two"]
    assert inspect.iscoroutinefunction(Flaky.coroutine)
    assert not inspect.iscoroutinefunction(Flaky.method)
    assert Flaky.method.retry is quick  # type: ignore[attr-defined]
    assert Flaky.method.statistics is quick.statistics  # type: ignore[attr-defined]
    assert "calls=" in repr(quick)


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [generator, async_generator, partial(generator)])
def test_a_generator_is_a_type_error_that_names_the_loop(function: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="is a generator, whose values cannot be taken back; retry within it"):
        quick(function)


async def rule(_: object) -> bool:
    return True


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: weir.retry(generator), TypeError, r"arguments with names: @weir.retry\(on=ConnectionError, attempts=3\)"),
    (weir.retry, weir.UsageError, "on: exceptions that are retried are missing; give e.g. on=ConnectionE"),
    (lambda: weir.retry(on=BaseException), weir.UsageError, "on: BaseException is never retried; give subclasses"),  # type: ignore[arg-type]
    (lambda: weir.retry(on=(KeyError, 503)), TypeError, "on: an exception class, a function .*, or several, not 503"),  # type: ignore[arg-type]
    (lambda: weir.retry(on=int), TypeError, "on: an exception class"),
    (lambda: weir.retry(on=rule), TypeError, "on: a plain function"),  # type: ignore[arg-type]
    (lambda: weir.retry(until=rule), TypeError, "until: a plain function; one with 'async def' would not be awaited"),
    (lambda: weir.retry(on=OSError, on_retry=rule), TypeError, "on_retry: a plain function"),
    (lambda: weir.retry(on=OSError, on_retry=3), TypeError, "on_retry: a function, not int"),  # type: ignore[arg-type]
    (lambda: weir.retry(on=OSError, attempts=0), weir.UsageError, "attempts: 0 is out of range; give 1 or more"),
    (lambda: weir.retry(on=OSError, attempts=None), weir.UsageError, "attempts: None needs a deadline"),
    (lambda: weir.retry(on=OSError, deadline=0), weir.UsageError, "deadline: invalid time 0"),
    (lambda: weir.retry(on=OSError, backoff=(2, 1)), weir.UsageError, "backoff: the minimum, 2s, is above the max"),
    (lambda: weir.retry(on=OSError, backoff="soon"), weir.UsageError, "backoff: "),
    (lambda: weir.retry(on=OSError, backoff=[1]), TypeError, "backoff: a time, a pair of times"),  # type: ignore[arg-type]
    (lambda: weir.retry(on=OSError, budget=3), TypeError, "budget: expected a weir.Budget, a weir"),  # type: ignore[arg-type]
    (lambda: quick(3), TypeError, "weir.retry: a function, not int"),  # type: ignore[type-var]
]


@pytest.mark.parametrize(("make", "kind", "text"), WRONG, ids=[text[:30] for _, _, text in WRONG])
def test_an_invalid_argument_is_one_line(make: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_plain_function_with_a_coroutine_as_its_result_is_a_type_error() -> None:
    async def coroutine() -> int:
        return 1

    with pytest.raises(TypeError, match="returned a coroutine, which was not awaited; write it as 'async def'"):
        quick(partial(lambda function: function(), coroutine))()


def test_a_loop_without_its_block_is_an_error() -> None:
    with pytest.raises(weir.UsageError, match="the loop needs 'with attempt:'"):
        for _ in weir.retry(on=OSError):
            pass
    for attempt in weir.retry(on=OSError):
        with attempt:
            pass
        with pytest.raises(weir.UsageError, match="an attempt is used once"), attempt:
            pass


def test_a_loop_that_is_left_ends_there() -> None:
    policy = weir.retry(on=OSError, attempts=9, backoff=0)
    numbers = []
    for attempt in policy:
        numbers.append(attempt.number)
        if attempt.number == 3:
            break
        with attempt:
            raise OSError
    assert numbers == [1, 2, 3]

    def function() -> int:
        for attempt in policy:
            with attempt:
                return attempt.number
        raise AssertionError

    assert function() == 1
    assert policy.statistics.calls == 2


def test_the_rules_of_a_loop_serve_again_and_inside_themselves() -> None:
    policy = weir.retry(on=OSError, attempts=3, backoff=0)
    numbers = []
    for outer in policy:
        with outer:
            for inner in policy:
                with inner:
                    numbers.append((outer.number, inner.number))
                    if inner.number < 2:
                        raise OSError
            if outer.number < 2:
                raise OSError
    assert numbers == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_the_time_that_remains_is_there_for_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    seen = []
    for attempt in weir.retry(on=OSError, deadline=10, backoff=2):
        with attempt:
            seen.append((attempt.number, attempt.elapsed, attempt.remaining))
            clock.advance(1)
            if attempt.number < 3:
                raise OSError
            clock.advance(20)
    assert seen == [(1, 0.0, 10.0), (2, 3.0, 7.0), (3, 6.0, 4.0)]
    assert attempt.remaining == 0.0


def test_calls_at_the_same_time_share_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tenacity kept the statistics of one call where the next one of the same function read them."""
    Clock(monkeypatch)
    policy = weir.retry(on=ConnectionError, attempts=4, backoff=(0, 1), budget=None)
    made: dict[int, int] = {}

    @policy
    async def call(number: int, failures: int) -> int:
        made[number] = made.get(number, 0) + 1
        await asyncio.sleep(0)
        if made[number] <= failures:
            raise ConnectionError(number)
        return number

    async def main() -> list[Any]:
        return await asyncio.gather(*(call(n, n % 6) for n in range(600)), return_exceptions=True)

    for number, result in enumerate(asyncio.run(main())):
        failures = number % 6
        assert made[number] == min(4, failures + 1)
        assert result == number if failures < 4 else result.args == (number,)
    counts = policy.statistics
    assert (counts.calls, counts.attempts, counts.succeeded, counts.failed) == (600, 1800, 400, 200)


def test_counts_of_many_threads_are_exact() -> None:
    policy = weir.retry(on=ConnectionError, attempts=3, backoff=0, budget=None)
    local = threading.local()

    @policy
    def call() -> None:
        local.calls = getattr(local, "calls", 0) + 1
        if local.calls % 3:
            raise ConnectionError

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: call(), range(2000))) == [None] * 2000
    counts = policy.statistics
    assert (counts.calls, counts.attempts, counts.retries, counts.succeeded) == (2000, 6000, 4000, 2000)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize("form", ["coroutine", "loop"])
def test_a_task_that_is_cancelled_in_a_wait_ends_at_once(loop: str, form: str) -> None:
    policy = weir.retry(on=ConnectionError, backoff=3600)

    async def fail() -> None:
        raise ConnectionError

    async def in_a_loop() -> None:
        async for attempt in policy:
            with attempt:
                await fail()

    call = policy(fail) if form == "coroutine" else in_a_loop
    if loop == "trio":
        trio = pytest.importorskip("trio")

        async def main() -> None:
            with trio.move_on_after(0.01) as scope:
                await call()
            assert scope.cancelled_caught

        trio.run(main)
    else:

        async def asyncio_main() -> None:
            task = asyncio.ensure_future(call())
            while policy.statistics.attempts < 1:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        if loop == "uvloop":
            pytest.importorskip("uvloop").run(asyncio_main())
        else:
            asyncio.run(asyncio_main())
    counts = policy.statistics
    assert (counts.attempts, counts.failed) == (1, 1)


def test_waits_of_trio_are_its_own() -> None:
    trio = pytest.importorskip("trio")
    flaky = Flaky()
    policy = weir.retry(on=ConnectionError, backoff=0.001)

    async def call() -> tuple[Any, ...]:
        return flaky.fail_twice(1)

    assert trio.run(policy(call)) == (1,)


@pytest.mark.parametrize("form", FORMS)
def test_a_real_wait_is_never_shorter_than_decided(form: str) -> None:
    waits: list[float] = []
    began: list[float] = []

    def function() -> None:
        began.append(time.monotonic())
        if len(began) < 8:
            raise ConnectionError

    policy = weir.retry(
        on=ConnectionError, attempts=8, backoff=(0.001, 0.004), on_retry=lambda event: waits.append(event.wait)
    )
    run(form, policy, function)
    gaps = [after - before for before, after in itertools.pairwise(began)]
    assert all(gap >= wait for gap, wait in zip(gaps, waits, strict=True))


def test_results_are_lost_when_an_error_is_pickled() -> None:
    error = pickle.loads(pickle.dumps(weir.RetriesExhausted("no result", object)))
    assert (str(error), error.result) == ("no result", None)


def test_nothing_is_imported_that_a_call_does_not_need() -> None:
    code = (
        "import sys, weir\n"
        "f = weir.retry(on=OSError)(lambda: 1); f()\n"
        "for attempt in weir.retry(on=OSError):\n    with attempt: pass\n"
        "foreign = ('aiohttp', 'anyio', 'asyncio', 'httpx', 'httpx2', 'logging', 'requests', 'sniffio', 'trio')\n"
        "print(*(name for name in foreign if name in sys.modules))"
    )
    assert finished(sys.executable, "-c", code).stdout.strip() == ""
