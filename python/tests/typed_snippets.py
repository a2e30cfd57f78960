"""Programs that users write, as type checkers read them: each function is correct, and strict checkers take it.

Nothing of it runs; `test_typed_snippets` has mypy and pyright check it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import requests
from requests.adapters import BaseAdapter
from typing_extensions import assert_type

import weir
import weir.aiohttp
import weir.httpx
import weir.httpx2
import weir.requests

URL = "http://localhost:8080/"

# --- Transports


def transport_without_options() -> httpx2.Client:
    return httpx2.Client(transport=weir.httpx2.Transport())


def transport_with_a_deadline() -> httpx2.Client:
    return httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))


def deadlines_are_times() -> list[weir.httpx2.Transport]:
    return [weir.httpx2.Transport(deadline=time) for time in (1, 1.5, "300ms", timedelta(seconds=1))]


def transport_with_a_hedge() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(hedge=weir.Hedge(after=0.2, attempts=2))


def transport_with_stages() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(hedge=[weir.Hedge(after="p95"), weir.Hedge(after=1.0)])


def transport_with_retries() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(retries=2, retry_methods="idempotent", budget=None)


def transport_with_a_retry_policy() -> weir.httpx2.Transport:
    policy = weir.Retry(times=3, on=("connect", 503, "5xx", (500, 504)), backoff=(0.1, 2.0))
    return weir.httpx2.Transport(retries=policy, budget=weir.Budget(fraction=0.1))


def transport_with_limits() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(limits=httpx2.Limits(max_connections=10), timeout=2)


def transport_with_an_adaptive_limit() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(limit="adaptive", max_response=1 << 20)


def transport_with_a_rate() -> list[weir.httpx2.Transport]:
    limiter = weir.Limiter("20/1s", shared="limits.db")
    by_function = weir.httpx2.Transport(rate=limiter, keys=lambda request: request.headers["x-api-key"])
    return [weir.httpx2.Transport(rate=["20/1s", "1000/1h"], keys="x-api-key"), by_function]


def transport_with_a_shared_budget() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(retries=2, budget=weir.SharedBudget(weir.Budget(fraction=0.1)))


def transport_with_rules() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(success=weir.Success(status=(200, 404), json=True))


def transport_with_certificates() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(verify="ca.pem", cert=("client.pem", "key.pem"), http2=True)


def transport_by_a_socket() -> weir.httpx2.Transport:
    return weir.httpx2.Transport(uds="/run/service.sock")


def a_response_is_the_librarys() -> int:
    client = httpx2.Client(transport=weir.httpx2.Transport())
    response = client.get(URL)
    assert_type(response, httpx2.Response)
    return response.status_code


def attempts_of_a_response() -> list[str]:
    with httpx2.Client(transport=weir.httpx2.Transport()) as client:
        log: weir.CallLog = client.get(URL).extensions["weir"]
    assert_type(log.attempts, tuple[weir.Attempt, ...])
    return [f"{attempt.number} {attempt.outcome} {attempt.duration_ms}" for attempt in log.attempts]


def the_attempt_that_won() -> float:
    with httpx2.Client(transport=weir.httpx2.Transport()) as client:
        log: weir.CallLog = client.get(URL).extensions["weir"]
    return log.won.started_ms if log.won is not None else log.elapsed


def what_was_not_sent(log: weir.CallLog) -> str:
    return log.not_sent or "all was sent"


def trailers(log: weir.CallLog) -> dict[bytes, bytes]:
    return dict(log.trailers)


def a_cause_has_attempts() -> int:
    with httpx2.Client(transport=weir.httpx2.Transport()) as client:
        try:
            client.get(URL)
        except httpx2.TransportError as error:
            cause = error.__cause__
            return len(cause.attempts) if isinstance(cause, weir.ClientError) else 0
    return 1


def a_stream() -> Iterator[bytes]:
    with httpx2.Client(transport=weir.httpx2.Transport()) as client, client.stream("GET", URL) as response:
        yield from response.iter_bytes()


def an_upload(pieces: Iterator[bytes]) -> httpx2.Response:
    return httpx2.Client(transport=weir.httpx2.Transport()).post(URL, content=pieces)


def transports_by_url() -> httpx2.Client:
    return httpx2.Client(mounts={"https://": weir.httpx2.Transport(http2=True), "http://": weir.httpx2.Transport()})


async def an_awaited_call() -> str:
    client = httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(deadline=1))
    return (await client.get(URL)).text


async def an_awaited_stream() -> AsyncIterator[str]:
    async with (
        httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport()) as client,
        client.stream("GET", URL) as response,
    ):
        async for line in response.aiter_lines():
            yield line


async def calls_at_once() -> list[int]:
    async with httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(limit=10)) as client:
        responses = await asyncio.gather(*(client.get(URL) for _ in range(20)))
    return [response.status_code for response in responses]


def legacy_httpx() -> httpx.Response:
    with httpx.Client(transport=weir.httpx.Transport(deadline=1.0, retries=1)) as client:
        return client.get(URL)


async def legacy_httpx_awaited() -> httpx.Response:
    async with httpx.AsyncClient(transport=weir.httpx.AsyncTransport(hedge=weir.Hedge())) as client:
        return await client.get(URL)


def a_subclass() -> type[httpx2.BaseTransport]:
    class Named(weir.httpx2.Transport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            request.headers["x-name"] = "named"
            return super().handle_request(request)

    return Named


def requests_adapter() -> requests.Session:
    session = requests.Session()
    session.mount("https://", weir.requests.Adapter(deadline=1.0, hedge=weir.Hedge(after=0.2), retries=2))
    return session


def requests_response(session: requests.Session) -> object:
    return session.get(URL, timeout=(1, 5)).json()


def an_adapter_is_the_librarys() -> BaseAdapter:
    return weir.requests.Adapter(limit=5)


# --- SDKs


def openai_client() -> openai.OpenAI:
    transport = weir.httpx2.Transport(deadline=30, retry_methods="all", retries=2)
    return openai.OpenAI(api_key="key", http_client=httpx2.Client(transport=transport), max_retries=0)


def awaited_openai_client() -> openai.AsyncOpenAI:
    http_client = httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(timeout=5))
    return openai.AsyncOpenAI(api_key="key", http_client=http_client)


def anthropic_client() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="key", http_client=httpx2.Client(transport=weir.httpx2.Transport()))


# --- aiohttp


async def a_session() -> aiohttp.ClientSession:
    middleware = weir.aiohttp.Middleware(deadline=1.0, hedge=weir.Hedge(after=0.2), retries=2)
    return aiohttp.ClientSession(middlewares=(middleware,))


async def attempts_of_aiohttp(session: aiohttp.ClientSession) -> int:
    async with session.get(URL) as response:
        return len(weir.aiohttp.attempts(response))


async def a_middleware_of_a_request(session: aiohttp.ClientSession) -> int:
    async with session.get(URL, middlewares=(weir.aiohttp.Middleware(retries=1),)) as response:
        return response.status


# --- weir.retry


@weir.retry(on=ConnectionError, attempts=3)
def retried(number: int, *, name: str = "") -> str:
    return f"{number}{name}"


def a_retried_function_keeps_its_type() -> str:
    assert_type(retried(1, name="a"), str)
    return retried(1)


@weir.retry(on=(httpx2.HTTPError, TimeoutError), deadline=timedelta(seconds=5), attempts=None)
async def retried_coroutine(url: str) -> bytes:
    return url.encode()


async def a_retried_coroutine_keeps_its_type() -> bytes:
    return await retried_coroutine(URL)


def is_worth_it(error: BaseException) -> bool:
    return "later" in str(error)


@weir.retry(on=is_worth_it)
def retried_by_a_predicate() -> None: ...


def wait_of(error: BaseException) -> float:
    return 1.5 if isinstance(error, TimeoutError) else 0.0


@weir.retry(on=wait_of, budget=weir.Budget(fraction=0.5))
def retried_with_a_wait() -> None: ...


class _Service:
    @weir.retry(on=OSError)
    def method(self, number: int) -> int:
        return number

    @classmethod
    @weir.retry(on=OSError)
    def made(cls) -> "_Service":
        return cls()


def methods_keep_their_types() -> int:
    return _Service.made().method(1)


def a_loop() -> str:
    for attempt in weir.retry(on=OSError, deadline=2.0):
        with attempt:
            assert_type(attempt.remaining, float | None)
            return f"{attempt.number}"
    return ""


async def an_awaited_loop() -> int:
    async for attempt in weir.retry(on=OSError):
        with attempt:
            return attempt.number
    return 0


def a_shared_budget() -> weir.SharedBudget:
    shared = weir.SharedBudget(weir.Budget(fraction=0.2))

    @weir.retry(on=OSError, budget=shared)
    def one() -> None: ...

    @weir.retry(on=OSError, budget=shared)
    def other() -> None: ...

    one()
    other()
    return shared


def a_hook(event: weir.RetryEvent) -> None:
    print(event.attempt, event.wait, event.exception)


def statistics() -> int:
    policy = weir.retry(on=OSError, on_retry=a_hook, name="orders")

    @policy
    def call() -> None: ...

    call()
    return policy.statistics.retries


def a_result_that_is_waited_for() -> int:
    def is_done(result: int) -> bool:
        return result > 3

    @weir.retry(until=is_done, attempts=10)
    def status() -> int:
        return 4

    try:
        return status()
    except weir.RetriesExhausted:
        return 0
