"""`rate=` and `keys=` of transports: every attempt has a slot, and what others share with them."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
from rate_service import KEY, counted, url_of
from raw_service import Pieces, raw_service, response
from transport_calls import Calls, failing

import weir
import weir.httpx
import weir.httpx2
import weir.requests


def test_no_attempt_of_concurrent_calls_is_above_the_limit(library: Any, exchange: weir.Service) -> None:
    module = getattr(weir, library.__name__)
    # All but the first one of a number are rejected, and tried again.
    again = weir.Retry(times=2, on="400-428", backoff=(0, 0.01))
    options: dict[str, Any] = {"rate": "20/500ms", "retries": again, "budget": None, "success": weir.Success()}

    async def run() -> list[int]:
        async with library.AsyncClient(transport=module.AsyncTransport(**options), timeout=None) as client:
            got = await asyncio.gather(*(client.get(url_of(exchange, 1)) for _ in range(20)))
        return [len(one.extensions["weir"].attempts) for one in got]

    numbers = asyncio.run(run())
    assert sorted(numbers) == [1] + [3] * 19
    assert counted(exchange) == 58


def test_blocking_calls_of_threads_share_a_limiter_with_other_code(exchange: weir.Service, tmp_path: Path) -> None:
    for limiter in (weir.Limiter("20/500ms"), weir.Limiter("20/500ms", shared=tmp_path)):
        before = counted(exchange)
        transport = weir.httpx2.Transport(rate=limiter, keys=lambda request: request.url.params["api_key"])
        session = requests.Session()
        session.mount("http://", weir.requests.Adapter(rate=limiter, keys="X-Api-Key"))
        session.headers["x-api-key"] = KEY
        with httpx2.Client(transport=transport, timeout=30) as client, httpx2.Client() as plain:

            def call(
                number: int, client: Any = client, plain: Any = plain, session: Any = session, limiter: Any = limiter
            ) -> None:
                url = url_of(exchange, number)
                if number % 3 == 0:
                    client.get(url)
                elif number % 3 == 1:
                    # A session is not for several threads.
                    session.get(url)
                else:
                    with limiter(KEY):
                        plain.get(url)

            # One thread has the session.
            others = [number for number in range(1, 60) if number % 3 != 1]
            with ThreadPoolExecutor(8) as pool:
                mapped = pool.map(call, others)
                for number in range(1, 60, 3):
                    call(number)
                list(mapped)
        assert counted(exchange) - before == 59
        # Windows of this limiter do not know those of the next one.
        time.sleep(0.6)


def test_a_hedge_is_sent_only_if_a_slot_is_free(library: Any, loop: str) -> None:
    both = threading.Barrier(2)

    def respond(_: str) -> Pieces:
        if len(service.heads) == 1:
            # A hedge that is due finds no slot meanwhile.
            time.sleep(1)
        else:
            both.wait(60)
        yield response(b"late")

    hedge = weir.Hedge(after=0.02, attempts=2)
    with raw_service(respond) as service:
        calls = Calls(library, loop, rate="1/60s", hedge=hedge)
        log = calls.request("GET", service.url).extensions["weir"]
        assert (len(log.attempts), len(service.heads)) == (1, 1)
        assert log.not_sent == "2 hedges not sent: no slot of the rate limit was free"
        log = Calls(library, loop, rate="2/60s", hedge=hedge).request("GET", service.url).extensions["weir"]
        assert (len(log.attempts), log.not_sent.partition(":")[0]) == (2, "1 hedge not sent")


def test_a_wait_counts_for_the_deadline_and_takes_no_slot(library: Any, loop: str) -> None:
    limiter = weir.Limiter("1/60s", "3/120s")
    well = Calls(library, loop, rate=limiter, keys="x-key", deadline=30, retries=2)
    with raw_service(failing(0)) as service:
        for number in range(3):
            if number == 0:
                assert well.request("GET", service.url, headers={"X-Key": "a"}).status_code == 200
                continue
            calls = Calls(library, loop, rate=limiter, keys="x-key", deadline=0.1, retries=2)
            with pytest.raises(library.PoolTimeout, match="nothing was sent") as raised:
                calls.request("GET", service.url, headers={"X-Key": "a"})
            assert isinstance(raised.value.__cause__, weir.DeadlineExceeded)
            assert raised.value.__cause__.attempts == ()
        # Others keys have slots of their own, and without a header there is one, too.
        assert well.request("GET", service.url, headers={"X-Key": "b"}).status_code == 200
        assert well.request("GET", service.url).status_code == 200
    assert [limiter.try_acquire(key) is None for key in ("a", "b", "", "c")] == [True, True, True, False]


def test_a_retry_waits_for_its_slot_and_a_pause_is_that_of_the_key(library: Any) -> None:
    with raw_service(failing(1)) as service:
        calls = Calls(library, "asyncio", rate=["1/400ms"], retries=weir.Retry(backoff=(0, 0)))
        log = calls.request("GET", service.url).extensions["weir"]
        assert len(log.attempts) == 2
        assert log.attempts[1].started_ms - log.attempts[0].started_ms >= 400
    limiter = weir.Limiter("100/1s")
    with raw_service(failing(1, "429 Too Many", "Retry-After: 30\r\n")) as service:
        calls = Calls(library, "blocking", rate=limiter)
        assert calls.request("GET", service.url).status_code == 429
        assert limiter.try_acquire(service.url.removeprefix("http://")) is None
        assert limiter.try_acquire("other") is not None


def test_a_cancelled_wait_leaves_the_line(library: Any) -> None:
    module = getattr(weir, library.__name__)
    limiter = weir.Limiter("2/4s")

    async def run(url: str) -> int:
        async with library.AsyncClient(transport=module.AsyncTransport(rate=limiter), timeout=None) as client:
            await asyncio.gather(client.get(url), client.get(url))
            waits = [asyncio.ensure_future(client.get(url)) for _ in range(20)]
            await asyncio.sleep(0.05)
            for wait in waits[:-1]:
                wait.cancel()
            await asyncio.gather(*waits[:-1], return_exceptions=True)
            # The next in line is told of it.
            got = await waits[-1]
            return int(got.status_code)

    with raw_service(failing(0)) as service:
        assert asyncio.run(run(service.url)) == 200
        assert len(service.heads) == 3


def test_waits_in_python_and_in_calls_wake_each_other() -> None:
    limiter = weir.Limiter("concurrency:1", delay_bound=None)
    order: list[int] = []
    with raw_service(failing(0)) as service, httpx2.Client(transport=weir.httpx2.Transport(rate=limiter)) as client:
        key = service.url.removeprefix("http://")

        def by_call(number: int) -> None:
            client.get(service.url)
            order.append(number)

        def by_hand(number: int) -> None:
            with limiter(key):
                order.append(number)

        held = limiter.acquire(key)
        threads = [threading.Thread(target=(by_call, by_hand)[number % 2], args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        held.done()
        for thread in threads:
            thread.join(30)
    assert sorted(order) == list(range(20))


def test_what_is_wrong_is_one_line(library: Any) -> None:
    module = getattr(weir, library.__name__)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rate": "20"}, "invalid limit '20'"),
        ({"rate": 20}, "rate: text such as '20/1s', or a weir.Limiter, not int"),
        ({"keys": "x"}, "keys: they are the keys of rate="),
        ({"rate": "1/1s", "keys": 3}, "keys: the name of a header, or a function of the request, not int"),
    ]
    for options, text in wrong:
        with pytest.raises((TypeError, weir.UsageError), match=text):
            module.Transport(**options)
    with raw_service(failing(0)) as service:
        calls = Calls(library, "blocking", rate="1/1s", keys=lambda _: None)
        with pytest.raises(TypeError, match="the function must return text, not NoneType"):
            calls.request("GET", service.url)


def test_a_budget_is_shared_with_other_code(library: Any, loop: str) -> None:
    budget = weir.SharedBudget(weir.Budget(fraction=0, min_per_s=0.1))
    assert budget.remaining == 1
    options: dict[str, Any] = {"budget": budget, "retries": weir.Retry(backoff=(0, 0))}
    with raw_service(failing(9)) as service:
        first = Calls(library, loop, **options).request("GET", service.url).extensions["weir"]
        assert (len(first.attempts), budget.remaining) == (2, 0)
        with weir.Client(base_url=service.url, budget=budget, retries=2) as client:
            assert len(client.get("/").attempts) == 1

    calls: list[int] = []

    @weir.retry(on=ValueError, budget=budget)
    def fail() -> None:
        calls.append(1)
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        fail()
    assert calls == [1]


def test_why_a_failure_was_not_repeated(library: Any) -> None:
    cases: list[tuple[str, dict[str, Any], str, str | None]] = [
        ("POST", {}, "503 Busy", "not repeated: the service may have processed the POST; retry_methods='all' sends it"),
        ("PUT", {}, "503 Busy", "not repeated: the service may have processed the PUT; retry_methods='idempotent'"),
        ("GET", {"retries": weir.Retry(on=500)}, "503 Busy", "not retried: this failure is none of Retry(on=...)"),
        ("GET", {"deadline": 5}, "503 Busy", "not retried: the wait would end after the deadline"),
        ("GET", {"retries": 1}, "503 Busy", None),
        ("GET", {}, "404 None", None),
        ("POST", {"retries": 0}, "503 Busy", None),
    ]
    for method, options, status, expected in cases:
        with raw_service(failing(9, status, "Retry-After: 60\r\n" if "deadline" in options else "")) as service:
            calls = Calls(library, "blocking", **{"retries": weir.Retry(backoff=(0, 0)), **options})
            said = calls.request(method, service.url).extensions["weir"].not_sent
        if expected is None:
            assert said is None, (method, options)
        else:
            assert said.startswith(expected), (method, options)
