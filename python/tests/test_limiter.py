"""`weir.Limiter` in one process: threads, tasks, responses, forks."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from rate_service import KEY, counted, url_of

import weir


@dataclass
class Times:
    """Begins and ends of blocks."""

    begins: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def hold(self, count: int, per: float) -> None:
        """Fail unless each begin is the window's length after the end of the block `count` before it."""
        begins, ends = sorted(self.begins), sorted(self.ends)
        assert all(begin >= end + per for begin, end in zip(begins[count:], ends, strict=False))


@dataclass
class Answer:
    """Response, as other clients have it."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


def use(limiter: weir.Limiter, key: str, times: Times) -> None:
    with limiter(key):
        times.begins.append(time.monotonic())
        times.ends.append(time.monotonic())


async def use_async(limiter: weir.Limiter, key: str, times: Times) -> None:
    async with limiter(key):
        times.begins.append(time.monotonic())
        await asyncio.sleep(0)
        times.ends.append(time.monotonic())


def test_threads_and_tasks_share_the_limits_of_each_key() -> None:
    limiter = weir.Limiter("5/100ms", "12/300ms", delay_bound=None)
    keys = {key: Times() for key in ("a", "b")}

    def tasks() -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(use_async(limiter, key, times) for key, times in keys.items() for _ in range(8)))

        asyncio.run(all_of_them())

    with ThreadPoolExecutor(17) as pool:
        others = [pool.submit(use, limiter, key, times) for key, times in keys.items() for _ in range(8)]
        others.append(pool.submit(tasks))
        for other in others:
            other.result()
    for times in keys.values():
        assert len(times.begins) == 16
        times.hold(5, 0.1)
        times.hold(12, 0.3)


def test_a_service_rejects_none_of_many_threads(exchange: weir.Service) -> None:
    limiter = weir.Limiter("20/500ms")

    def request(number: int) -> None:
        with limiter(KEY) as slot:
            slot.update(weir.get(url_of(exchange, number)))

    with ThreadPoolExecutor(30) as pool:
        list(pool.map(request, range(1, 61)))
    assert counted(exchange) == 60


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_service_rejects_none_of_many_tasks(exchange: weir.Service, loop: Callable[[], Any]) -> None:
    limiter = weir.Limiter("20/500ms", delay_bound="1s")

    async def work() -> None:
        async with weir.AsyncClient() as client:

            @limiter(key=lambda number: KEY, update=True)
            async def request(number: int) -> weir.Response:
                return await client.get(url_of(exchange, number))

            await asyncio.gather(*(request(number) for number in range(1, 51)))

    one = loop()
    one.run_until_complete(work())
    one.close()
    assert counted(exchange) == 50


def test_trio_waits_as_asyncio_does() -> None:
    trio = pytest.importorskip("trio")
    limiter, times = weir.Limiter("5/50ms", delay_bound=None), Times()

    async def one() -> None:
        async with limiter:
            times.begins.append(time.monotonic())
            await trio.sleep(0)
            times.ends.append(time.monotonic())

    async def work() -> None:
        with trio.move_on_after(60) as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(16):
                    nursery.start_soon(one)
        assert not scope.cancelled_caught
        # A window that does not end while the test runs, however slow the machine is.
        spent = weir.Limiter("1/1h")
        assert spent.try_acquire() is not None
        with trio.move_on_after(0.01) as scope:
            await spent.acquire_async()
        assert scope.cancelled_caught

    trio.run(work)
    times.hold(5, 0.05)


def test_the_line_of_a_key_is_first_in_first_out() -> None:
    limiter, order = weir.Limiter("1/20ms", delay_bound="1ms"), list[int]()

    async def one(number: int) -> None:
        async with limiter("key"):
            order.append(number)

    async def work() -> None:
        await asyncio.gather(*(one(number) for number in range(12)))

    asyncio.run(work())
    assert order == list(range(12))


def test_each_of_a_line_waits_for_its_own_time_without_any_event() -> None:
    limiter = weir.Limiter("1/10ms", delay_bound="1ms")
    with ThreadPoolExecutor(8) as pool:
        # No slot ends, so only time lets the next one in.
        slots = list(pool.map(lambda _: limiter.acquire("key", timeout=60), range(8)))
    assert all(slot.is_open for slot in slots)


def test_a_slot_that_ends_lets_the_next_one_in_at_once() -> None:
    limiter = weir.Limiter("concurrency:2")
    first, second = limiter.acquire("key"), limiter.acquire("key")
    assert limiter.try_acquire("key") is None
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(limiter.acquire, "key")
        first.cancel()
        third = waits.result(60)
    assert (first.is_open, third.is_open, limiter.try_acquire("other") is not None) == (False, True, True)
    second.done()
    second.done()
    limiter.acquire("key", timeout=60)


def test_the_timeout_is_an_error_of_both_kinds_and_uses_nothing() -> None:
    limiter = weir.Limiter("1/1h", delay_bound="1ms")
    with limiter("secret-key"):
        pass
    for timeout in (0, "5ms"):
        with pytest.raises(weir.LimiterTimeout, match=r"no slot within the timeout; the next one may be free") as why:
            limiter.acquire("secret-key", timeout=timeout)
        assert isinstance(why.value, TimeoutError)
        assert isinstance(why.value, weir.LimiterError)
        assert "secret" not in str(why.value)
    with pytest.raises(weir.LimiterTimeout), limiter("secret-key", timeout=0):
        pass
    with pytest.raises(weir.LimiterTimeout):
        asyncio.run(limiter.acquire_async("secret-key", timeout=0.005))


def test_tasks_that_are_cancelled_at_any_time_take_no_slot_along() -> None:
    rng = random.Random(5)
    limiter = weir.Limiter("concurrency:3")

    async def one(pause: float) -> None:
        async with limiter("key"):
            await asyncio.sleep(pause)

    async def work() -> None:
        for _ in range(20):
            tasks = [asyncio.create_task(one(rng.random() / 200)) for _ in range(12)]
            for task in rng.sample(tasks, 6):
                asyncio.get_running_loop().call_later(rng.random() / 100, task.cancel)
            await asyncio.wait(tasks)
        # All three are free again, and no fourth.
        slots = [await limiter.acquire_async("key", timeout=30) for _ in range(3)]
        assert await limiter.try_acquire_async("key") is None
        for slot in slots:
            slot.done()

    asyncio.run(work())


def test_ctrl_c_while_a_thread_waits_leaves_the_line() -> None:
    limiter = weir.Limiter("concurrency:1")
    slot = limiter.acquire("key")
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])

    def wait() -> None:
        # Here the interrupt is expected, however late this thread is.
        timer.start()
        limiter.acquire("key")

    # Tests that run in the background ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    slot.done()
    limiter.acquire("key", timeout=60)


def test_a_block_that_fails_counts_and_one_that_sent_nothing_does_not() -> None:
    limiter = weir.Limiter("2/1h", delay_bound="1ms")
    with pytest.raises(ValueError, match="it fails"), limiter("key"):
        raise ValueError("it fails")
    with limiter("key") as slot:
        slot.cancel()
    with limiter("key"):
        pass
    assert limiter.try_acquire("key") is None


def test_a_slot_that_is_dropped_counts_as_sent() -> None:
    limiter = weir.Limiter("1/1h", "concurrency:1", delay_bound=None)
    limiter.acquire("key")
    gc.collect()
    with pytest.raises(weir.LimiterTimeout):
        limiter.acquire("key", timeout=0.01)


def test_a_rejection_pauses_its_key_alone() -> None:
    limiter = weir.Limiter("20/1s", delay_bound="1ms", max_pause="1h")
    with limiter("key") as slot:
        slot.update(Answer(429, {"Retry-After": "600"}))
    with pytest.raises(weir.LimiterTimeout, match=r"free in (599|600|6e\+02)"):
        limiter.acquire("key", timeout=0)
    assert limiter.try_acquire("other") is not None


def test_the_response_of_an_exception_is_read() -> None:
    class StatusError(Exception):
        response = Answer(429, {"retry-after": "600"})

    limiter = weir.Limiter("20/1s", delay_bound="1ms")
    with pytest.raises(StatusError), limiter("key"):
        raise StatusError
    assert limiter.try_acquire("key") is None


def test_reported_quotas_lower_a_limit_and_never_raise_it() -> None:
    limiter = weir.Limiter("20/10m", delay_bound="1ms")

    @limiter(key=lambda remaining: "key", update=True)
    def request(remaining: int) -> Answer:
        names = ("Limit", "Remaining", "Reset")
        return Answer(200, {f"X-RateLimit-{name}": str(n) for name, n in zip(names, (20, remaining, 600), strict=True)})

    request(2)
    slots = [limiter.try_acquire("key") for _ in range(5)]
    assert [slot is not None for slot in slots] == [True, True, False, False, False]
    with pytest.raises(TypeError, match="response: an object with headers and status_code or status, not str"):
        limiter.acquire("other").update("200")


def test_decorators_are_for_functions_of_both_kinds() -> None:
    limiter = weir.Limiter("3/1h", delay_bound="1ms")

    @limiter
    def blocking(one: int, *, two: int) -> int:
        """Documented."""
        return one + two

    @limiter("key", timeout=0)
    async def awaited() -> str:
        return "done"

    assert (blocking(1, two=2), blocking.__doc__) == (3, "Documented.")
    assert asyncio.run(awaited()) == "done"
    with limiter, limiter:
        assert limiter.try_acquire() is None
    with pytest.raises(TypeError, match="use the limiter within it"):

        @limiter
        def generator() -> Iterator[int]:
            yield 1

    with pytest.raises(weir.UsageError, match="a function is for decorators"), limiter(key=lambda: "a"):
        pass


def test_weights_count_in_weight_limits() -> None:
    limiter = weir.Limiter("100/1h", weight_limits=["10/1h"], delay_bound="1ms")
    assert limiter.try_acquire("key", weight=7) is not None
    assert limiter.try_acquire("key", weight=4) is None
    assert limiter.try_acquire("key", weight=3) is not None
    with pytest.raises(weir.UsageError, match="invalid weight 11: above the limit itself"):
        limiter.acquire("key", weight=11)
    with pytest.raises(weir.UsageError, match="invalid weight 0; give 1 or more"):
        limiter.acquire("key", weight=0)


@pytest.mark.parametrize(
    ("limits", "options", "why"),
    [
        ((), {}, "limits: none is given; give e.g. '20/1s'"),
        (("20",), {}, "limits: invalid limit '20'; write COUNT/TIME"),
        (("leaky:20/1s",), {}, "unknown rate-limit algorithm 'leaky'"),
        (("host=a 20/1s",), {}, "a limiter has keys and no hosts"),
        (("1/1s",) * 9, {}, "9 are too many; give at most 8"),
        (("1/1s",), {"weight_limits": "x"}, "weight_limits: invalid limit 'x'"),
        (("1/1s",), {"delay_bound": "soon"}, "delay_bound: invalid time 'soon'"),
        (("1/1s",), {"unreachable": "wait"}, "unknown unreachable 'wait'; choose raise or local"),
        (("1/1s",), {"shared": "redis://me:secret@host?queue=a"}, "unknown parameter 'queue'; choose name"),
    ],
)
def test_a_mistake_is_one_line(limits: tuple[str, ...], options: dict[str, Any], why: str) -> None:
    with pytest.raises(weir.UsageError) as told:
        weir.Limiter(*limits, **options)
    assert why in str(told.value)
    assert "\n" not in str(told.value)
    assert "secret" not in str(told.value)


def test_keys_and_timeouts_have_their_types() -> None:
    limiter = weir.Limiter("1/1s")
    for wrong in (lambda: limiter(5), lambda: limiter.acquire(5), lambda: limiter.acquire("a", timeout=[])):  # type: ignore
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(weir.UsageError, match="timeout: invalid time"):
        limiter.acquire("a", timeout="soon")


def test_a_child_of_a_fork_is_told_that_the_limiter_is_not_its_own() -> None:
    limiter = weir.Limiter("1/1h", delay_bound="1ms")
    slot = limiter.acquire("key")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            slot.done()
            limiter.acquire("other")
        except weir.UsageError as error:
            code = 0 if "before the fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert slot.is_open
    slot.cancel()
    assert limiter.try_acquire("key") is not None


@pytest.mark.timed
def test_the_wait_is_as_long_as_the_limit_needs() -> None:
    limiter = weir.Limiter("10/200ms", delay_bound="1ms")
    begin = time.monotonic()
    for _ in range(31):
        with limiter("key"):
            pass
    # Three windows, each with the bound at most, ticks and late wakes.
    assert 0.6 < time.monotonic() - begin < 0.65
