"""`weir.aiohttp.Middleware` in a session of aiohttp, of which nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp
import pytest
from aiohttp import web
from aiohttp_service import QUICK, drop, hangs_first, outcomes, run, scripted, statuses
from programs import finished

import weir
from weir.aiohttp import Middleware, attempts


def test_a_healthy_response_is_aiohttps_own() -> None:
    async def main() -> None:
        async def script(number: int, request: web.Request) -> web.StreamResponse:
            response = web.json_response({"n": number})
            response.set_cookie("a", "b")
            return response

        middleware = Middleware(deadline=30, hedge=weir.Hedge(after=20), retries=2)
        async with scripted(script, middleware) as service:
            async with service.session.get("/x?y=1", params={"z": "2"}) as response:
                assert type(response) is aiohttp.ClientResponse
                assert (response.status, await response.json()) == (200, {"n": 1})
                assert response.cookies["a"].value == "b"
            [attempt] = attempts(response)
            assert (attempt.number, attempt.reason, attempt.outcome, attempt.status) == (1, "first", "won", 200)
            log = response.weir  # type: ignore[attr-defined]
            assert (log.attempts, log.won, log.not_sent, len(log)) == ((attempt,), attempt, None, 1)
            assert str(log).endswith(" ms won")
            assert attempt.upstream == service.url.removeprefix("http://")
            assert service.seen == [("GET /x?y=1&z=2", b"")]
            assert 0 < int(service.headers[0]["x-envoy-expected-rq-timeout-ms"]) <= 30_000
            await service.settled()

    run(main())


def test_aiohttp_does_not_repeat_what_the_retries_have_given_up() -> None:
    """Aiohttp sends an idempotent request once more after a broken connection: twice the attempts, without a budget."""

    async def script(number: int, request: web.Request) -> web.StreamResponse:
        return await drop(request)

    async def main() -> None:
        middleware = Middleware(retries=QUICK)
        async with scripted(script, middleware) as service:
            with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                await service.session.get("/")
            assert len(service.seen) == 3
            assert outcomes(caught.value) == [
                f"{reason} closed (ServerDisconnectedError)" for reason in ("first", "retry", "retry")
            ]
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await service.session.get("/")
            assert len(service.seen) == 6
        empty = weir.Budget(fraction=0, min_per_s=0, window=1)
        async with scripted(script, Middleware(retries=QUICK, budget=empty)) as service:
            with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                await service.session.get("/")
            assert len(service.seen) == 1
            if sys.version_info >= (3, 11):
                assert "1 retry not sent: the retry budget (0% + 0/1s) was used up" in str(caught.value.__notes__)
        # Without retries, aiohttp's own stay.
        async with scripted(script, Middleware(deadline=60)) as service:
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await service.session.get("/")
            assert len(service.seen) == 2

    run(main())


def test_the_deadline_is_over_the_body_too() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begin")
        await asyncio.sleep(3600)
        return response

    async def main() -> None:
        async with scripted(script, Middleware(deadline=1)) as service:
            response = await service.session.get("/")
            assert await response.content.readany() == b"begin"
            with pytest.raises(aiohttp.ServerTimeoutError, match="while the body was read"):
                await response.read()
            await service.settled()

    run(main())


def test_a_body_that_is_streamed_is_not_touched() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in range(5):
            await response.write(b"%d" % part)
            await asyncio.sleep(0.001)
        return response

    async def main() -> None:
        middleware = Middleware(deadline=60, hedge=weir.Hedge(after=30), retries=2)
        async with scripted(script, middleware) as service:
            async with service.session.get("/") as response:
                assert b"".join([part async for part in response.content.iter_any()]) == b"01234"
            await service.settled()

    run(main())


def test_the_timeouts_of_aiohttp_stay() -> None:
    async def main() -> None:
        for hedge in (None, weir.Hedge(after=0.01)):
            middleware = Middleware(deadline=60, hedge=hedge)
            timeout = aiohttp.ClientTimeout(total=0.1)
            async with scripted(hangs_first(99), middleware, timeout=timeout) as service:
                with pytest.raises(asyncio.TimeoutError):
                    await service.session.get("/")
                task = asyncio.current_task()
                assert task is not None
                assert sys.version_info < (3, 11) or task.cancelling() == 0
                await service.settled()

    run(main())


def test_a_redirect_is_within_the_deadline_of_its_call() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.2)
        raise web.HTTPFound(f"/{number}")

    async def main() -> None:
        async with scripted(script, Middleware(deadline=4)) as service:
            with pytest.raises(aiohttp.ServerTimeoutError, match="the deadline"):
                await service.session.get("/", max_redirects=1000)
            left = [int(headers["x-envoy-expected-rq-timeout-ms"]) for headers in service.headers]
            assert left == sorted(left, reverse=True)
            assert len(left) > 1
            # The next call of the same task has a deadline of its own.
            with pytest.raises(aiohttp.ServerTimeoutError, match="the deadline"):
                await service.session.get("/", max_redirects=1000)
            assert int(service.headers[len(left)]["x-envoy-expected-rq-timeout-ms"]) > left[-1]

    run(main())


def test_a_websocket_passes() -> None:
    async def script(number: int, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)
        return socket

    async def main() -> None:
        async with scripted(script, Middleware(deadline=5, hedge=weir.Hedge(after=0), retries=2)) as service:
            async with service.session.ws_connect("/") as socket:
                await socket.send_str("hello")
                assert await socket.receive_str() == "hello"
            assert len(service.seen) == 1

    run(main())


def test_other_middlewares_act_on_each_attempt() -> None:
    tokens = iter("abc")

    async def sign(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        request.headers["token"] = next(tokens)
        return await handler(request)

    async def main() -> None:
        async with scripted(statuses(503, 503, 200), Middleware(retries=QUICK), sign) as service:
            async with service.session.get("/") as response:
                assert response.status == 200
            assert [headers["token"] for headers in service.headers] == ["a", "b", "c"]

    run(main())


def test_the_module_is_there_after_weir_alone_and_imports_nothing_before() -> None:
    code = (
        "import sys, weir\n"
        "assert 'aiohttp' not in sys.modules\n"
        "assert weir.aiohttp.Middleware(deadline=1)\n"
        "sys.modules.pop('weir.aiohttp'); del weir.aiohttp; sys.modules['aiohttp'] = None\n"
        "try:\n    weir.aiohttp\nexcept ImportError as error:\n    print(error)\n"
    )
    done: subprocess.CompletedProcess[str] = finished(sys.executable, "-c", code)
    assert done.stdout.startswith("weir.aiohttp needs aiohttp 3.12 or newer ("), done.stderr
    assert done.stdout.endswith("; install it: pip install aiohttp\n")
