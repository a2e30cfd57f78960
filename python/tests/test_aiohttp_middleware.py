"""`weir.aiohttp.Middleware`: which attempts are made, of which requests, and what is left of them."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp_service import QUICK, drop, hangs_first, outcomes, run, scripted, statuses

import weir
from weir.aiohttp import Middleware, attempts


@pytest.mark.parametrize("hedge", [None, weir.Hedge(after=60, on_failure=False)], ids=["in turn", "side by side"])
def test_a_failed_status_is_retried_and_its_connection_used_again(hedge: weir.Hedge | None) -> None:
    async def main() -> None:
        async with scripted(
            statuses(503, 500, 200),
            Middleware(hedge=hedge, retries=weir.Retry(2, on=("5xx",), backoff=(0, 0))),
            limit=1,
        ) as service:
            async with service.session.get("/") as response:
                assert (response.status, await response.text()) == (200, "3")
            assert outcomes(response) == ["first status 503", "retry status 500", "retry won"]
            assert len(service.seen) == 3
            await service.settled()
            assert len(service.connector._conns) == 1

    run(main())


def test_the_last_response_is_returned_and_can_be_read() -> None:
    async def main() -> None:
        async with scripted(statuses(503, 502, 504), Middleware(retries=QUICK)) as service:
            async with service.session.get("/") as response:
                assert (response.status, await response.text()) == (504, "3")
            assert outcomes(response) == ["first status 503", "retry status 502", "retry status 504"]
            with pytest.raises(aiohttp.ClientResponseError, match="504"):
                await service.session.get("/", raise_for_status=True)
            await service.settled()

    run(main())


def test_rules_of_success_raise_aiohttps_error_from_weirs() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        return web.Response(text="[" if number < 4 else "[]")

    async def main() -> None:
        rule = weir.Success(json=True)
        retry = weir.Retry(2, on=("body",), backoff=(0, 0))
        async with scripted(script, Middleware(success=rule, retries=retry)) as service:
            with pytest.raises(aiohttp.ClientResponseError, match="no attempt has met the rules") as caught:
                await service.session.get("/")
            assert isinstance(caught.value.__cause__, weir.AllAttemptsFailed)
            assert outcomes(caught.value) == ["first body", "retry body", "retry body"]
            async with service.session.get("/") as response:
                assert await response.json(content_type=None) == []
            await service.settled()

    run(main())


def test_rules_of_headers_and_long_bodies_are_failures() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        return web.Response(text="1" * (2000 if number == 1 else 2), headers={"x-ok": "no" if number == 2 else "yes"})

    async def main() -> None:
        rule = weir.Success(json=True, headers={"x-ok": "yes"})
        retry = weir.Retry(2, on=("body", "header"), backoff=(0, 0))
        async with scripted(script, Middleware(success=rule, retries=retry, max_response=1000)) as service:
            async with service.session.get("/") as response:
                assert await response.text() == "11"
            assert outcomes(response) == ["first body", "retry header", "retry won"]
            await service.settled()

    run(main())


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize("hedge", [None, weir.Hedge(after=0)], ids=["in turn", "side by side"])
def test_what_may_have_been_sent_is_not_sent_again(method: str, hedge: weir.Hedge | None) -> None:
    async def main() -> None:
        async def script(number: int, request: web.Request) -> web.StreamResponse:
            return await drop(request)

        async with scripted(script, Middleware(hedge=hedge, retries=QUICK)) as service:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await service.session.request(method, "/", data=b"pay")
            assert service.seen == [(f"{method} /", b"pay")]
            await service.settled()

    run(main())


def test_what_was_not_sent_is_sent_again_whatever_its_method(unused_port: int) -> None:
    async def main() -> None:
        middleware = Middleware(retries=QUICK)
        async with aiohttp.ClientSession(middlewares=(middleware,)) as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await session.post(f"http://127.0.0.1:{unused_port}/", data=b"pay")
            assert outcomes(caught.value) == [
                f"{reason} connect (ClientConnectorError)" for reason in ("first", "retry", "retry")
            ]

    run(main())


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
    return port


def test_a_hedge_wins_and_the_slow_attempt_is_cancelled() -> None:
    async def main() -> None:
        async with scripted(hangs_first(), Middleware(hedge=weir.Hedge(after=0.01))) as service:
            async with service.session.get("/") as response:
                assert await response.text() == "2"
            assert outcomes(response) == ["first cancelled", "stage won"]
            await service.settled()

    run(main())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_thousand_hedges_leak_no_connection_and_no_task(loop: str) -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        # All attempts of a call at about the same time, so that some end while others do.
        await asyncio.sleep(number % 3 / 2000)
        return web.Response(text="x" * 20_000, status=503 if number % 7 == 0 else 200)

    async def main() -> None:
        middleware = Middleware(hedge=weir.Hedge(after=0.0005, attempts=2), retries=1, budget=None)
        async with scripted(script, middleware, limit=0) as service:

            async def calls(count: int) -> None:
                for _ in range(count):
                    async with service.session.get("/") as response:
                        await response.read()

            await asyncio.gather(*(calls(50) for _ in range(20)))
            assert len(service.seen) > 1500
            await service.settled()
            names = [str(task.get_coro()) for task in asyncio.all_tasks()]
            assert not [name for name in names if "_attempt" in name]

    if loop == "uvloop":
        pytest.importorskip("uvloop").run(main())
        gc.collect()
    else:
        run(main())


def test_a_call_that_is_cancelled_ends_its_attempts() -> None:
    async def main() -> None:
        async with scripted(hangs_first(99), Middleware(hedge=weir.Hedge(after=0, attempts=2))) as service:
            task = asyncio.create_task(service.session._request("GET", "/"))
            while len(service.seen) < 3:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await service.settled()

    run(main())


@pytest.mark.parametrize("hedge", [None, weir.Hedge(after=0.01)], ids=["in turn", "side by side"])
def test_a_deadline_raises_the_timeout_of_aiohttp_from_that_of_weir(hedge: weir.Hedge | None) -> None:
    async def main() -> None:
        async with scripted(hangs_first(99), Middleware(deadline=0.05, hedge=hedge)) as service:
            with pytest.raises(aiohttp.ServerTimeoutError, match=r"the deadline of 0.05 s passed") as caught:
                await service.session.get("/")
            assert isinstance(caught.value, asyncio.TimeoutError)
            assert isinstance(caught.value.__cause__, weir.DeadlineExceeded)
            assert {attempt.outcome for attempt in attempts(caught.value)} == {"cancelled"}
            await service.settled()

    run(main())


def test_an_attempt_that_takes_too_long_is_retried() -> None:
    async def main() -> None:
        for hedge in (None, weir.Hedge(after=60, on_failure=False)):
            retry = weir.Retry(9, backoff=(0, 0))
            async with scripted(hangs_first(), Middleware(timeout=0.2, retries=retry, hedge=hedge)) as service:
                async with service.session.get("/") as response:
                    assert response.status == 200
                # On a busy machine others may take too long, too.
                ends = outcomes(response)
                assert (ends[0], ends[-1]) == ("first timeout", "retry won")
                await service.settled()
        async with scripted(hangs_first(99), Middleware(timeout=0.01)) as service:
            with pytest.raises(aiohttp.ServerTimeoutError, match="within the timeout of the attempt"):
                await service.session.get("/")

    run(main())


def test_a_body_that_can_be_read_once_is_sent_once_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"once"

    async def main() -> None:
        middleware = Middleware(hedge=weir.Hedge(after=0), retries=QUICK, retry_methods="all")
        async with scripted(statuses(503), middleware) as service:
            for _ in range(2):
                async with service.session.post("/", data=body()) as response:
                    assert response.status == 503
            assert service.seen == [("POST /", b"once")] * 2
            async with service.session.post("/", json={"a": 1}) as response:
                assert response.status == 503
            assert [body for _, body in service.seen[2:]] == [b'{"a": 1}'] * (len(service.seen) - 2)
            assert len(service.seen) > 4
            await service.settled()

    with caplog.at_level(logging.WARNING, "weir.aiohttp"):
        run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "a body of AsyncIterablePayload is sent once: such requests are not hedged, and retried only if they were not "
        "sent"
    ]


def test_retry_after_is_waited_for_or_ends_the_call() -> None:
    async def main() -> None:
        later = {"retry-after": "60"}
        async with scripted(statuses(503, headers=later), Middleware(retries=2, deadline=30)) as service:
            async with service.session.get("/") as response:
                assert response.status == 503
            assert len(attempts(response)) == 1
        soon = {"retry-after": "0.2"}
        async with scripted(statuses(503, 200, headers=soon), Middleware(retries=QUICK)) as service:
            async with service.session.get("/") as response:
                assert response.status == 200
            first, second = attempts(response)
            assert second.started_ms - first.started_ms - first.duration_ms >= 200

    run(main())


def fail() -> None:
    raise OSError("no")


def test_a_budget_is_shared_by_middlewares_and_functions() -> None:
    async def main() -> None:
        budget = weir.SharedBudget(weir.Budget(fraction=0, min_per_s=1, window=60))
        function = weir.retry(on=OSError, backoff=0, attempts=99, budget=budget)
        async with scripted(statuses(503), Middleware(retries=QUICK, budget=budget)) as service:
            for _ in range(10):
                async with service.session.get("/") as response:
                    assert response.status == 503
            assert len(service.seen) == 10 + 20
            with pytest.raises(OSError, match="no"):
                function(fail)()
            assert function.statistics.retries == 40

    run(main())


def test_a_quantile_is_that_of_first_attempts_at_the_host() -> None:
    slow: list[int] = []

    async def script(number: int, request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            slow.append(number)
            if len(slow) == 1:
                await asyncio.sleep(3600)
        return web.Response(text="ok")

    async def main() -> None:
        middleware = Middleware(hedge=weir.Hedge(after="p95"), budget=None)
        async with scripted(script, middleware) as service:
            for _ in range(120):
                await (await service.session.get("/")).read()
            response = await service.session.get("/slow")
            assert await response.text() == "ok"
            assert outcomes(response) == ["first cancelled", "stage won"]

    run(main())


def test_an_invalid_argument_is_one_line() -> None:
    for options, text in [
        ({"deadline": 0}, "deadline: invalid time 0"),
        ({"retries": 65}, "66 attempts per call"),
        ({"hedge": 0.3}, "hedge: expected a weir.Hedge or several"),
        ({"budget": 3}, "budget: expected a weir.Budget, a weir.SharedBudget or None"),
        ({"retry_methods": "none"}, "unknown class of methods 'none'; choose safe, idempotent or all"),
    ]:
        with pytest.raises((TypeError, ValueError), match=text) as caught:
            Middleware(**options)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
