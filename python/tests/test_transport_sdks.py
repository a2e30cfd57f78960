"""SDKs as they are, over weir's transports: chat, streams, embeddings, files, and what fails in between."""

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any

import pytest
from raw_service import Pieces, raw_service, response

import weir

for package in ("anthropic", "groq", "openai", "pydantic_ai", "stripe", "google.genai"):
    pytest.importorskip(package, reason=f"no {package}; scripts/setup.sh test-all installs it")

import anthropic  # noqa: E402
import groq  # noqa: E402
import httpx  # noqa: E402
import httpx2  # noqa: E402
import openai  # noqa: E402
import requests  # noqa: E402
import stripe  # noqa: E402
from google import genai  # noqa: E402
from google.genai import types as genai_types  # noqa: E402
from pydantic_ai import Agent  # noqa: E402
from pydantic_ai.models.openai import OpenAIChatModel  # noqa: E402
from pydantic_ai.providers.openai import OpenAIProvider  # noqa: E402

import weir.httpx  # noqa: E402
import weir.httpx2  # noqa: E402
import weir.requests  # noqa: E402

pytestmark = pytest.mark.wide

MESSAGES: Any = [{"role": "user", "content": "hello"}]
POLICY: dict[str, Any] = {"deadline": 30, "retries": weir.Retry(2, on=(429, 529, "5xx")), "retry_methods": "all"}
COMPLETION = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
MESSAGE = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "done"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def openai_client(url: str, *, max_retries: int = 0, **policy: Any) -> openai.OpenAI:
    http_client = httpx2.Client(transport=weir.httpx2.Transport(**(POLICY | policy)))
    return openai.OpenAI(base_url=url + "/v1", api_key="secret", http_client=http_client, max_retries=max_retries)


def anthropic_client(url: str, *, max_retries: int = 0, **policy: Any) -> anthropic.Anthropic:
    http_client = httpx2.Client(transport=weir.httpx2.Transport(**(POLICY | policy)))
    return anthropic.Anthropic(base_url=url, api_key="secret", http_client=http_client, max_retries=max_retries)


def groq_client(url: str, *, max_retries: int = 0, **policy: Any) -> groq.Groq:
    http_client = httpx.Client(transport=weir.httpx.Transport(**(POLICY | policy)))
    return groq.Groq(base_url=url, api_key="secret", http_client=http_client, max_retries=max_retries)


def chat(client: Any) -> str:
    """One chat in one piece."""
    if isinstance(client, anthropic.Anthropic):
        block = client.messages.create(model="m", max_tokens=5, messages=MESSAGES).content[0]
        return block.text if block.type == "text" else ""
    return str(client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content)


CLIENTS = [openai_client, anthropic_client, groq_client]


@pytest.fixture
def model() -> Iterator[weir.Service]:
    """A language model's server, of any model's name."""
    with weir.serve("llm", model="*", prefill="1ms", decode="1ms", output_tokens=6, seed=1) as service:
        yield service


def words(text: str) -> int:
    """Number of words."""
    return len(text.split(" "))


def test_chats_embeddings_and_streams(model: weir.Service) -> None:
    with openai_client(model.url) as client:
        assert words(chat(client)) == 6
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        assert words("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)) == 6
        assert len(client.embeddings.create(model="m", input=["a", "b"]).data) == 2
    with anthropic_client(model.url) as other:
        assert words(chat(other)) > 0
        with other.messages.stream(model="m", max_tokens=6, messages=MESSAGES) as events:
            assert words("".join(events.text_stream)) == 6


def test_awaited_clients(model: weir.Service) -> None:
    async def main() -> tuple[int, int]:
        http_client = httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(**POLICY))
        async with openai.AsyncOpenAI(base_url=model.url + "/v1", api_key="x", http_client=http_client) as client:
            whole = await client.chat.completions.create(model="m", messages=MESSAGES)
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        return words(whole.choices[0].message.content or ""), words(text)

    assert asyncio.run(main()) == (6, 6)


def failing_first(failures: list[tuple[str, str]]) -> Callable[[str], Pieces]:
    """Respond with each failure once, and then with a completion of the API that was called."""
    turn = itertools.count()

    def respond(head: str) -> Pieces:
        number = next(turn)
        if number < len(failures):
            status, header = failures[number]
            return [response(b"{}", "Content-Type: application/json", *([header] if header else []), status=status)]
        body = MESSAGE if "/messages" in head else COMPLETION
        return [response(json.dumps(body).encode(), "Content-Type: application/json")]

    return respond


def http_date(seconds: float) -> str:
    """Retry-After as a date."""
    return "Retry-After: " + format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "failure",
    [
        ("429 Too Many Requests", "Retry-After: 0"),
        ("429 Too Many Requests", "date"),
        ("529 Overloaded", ""),
        ("503 Service Unavailable", ""),
    ],
)
@pytest.mark.parametrize("max_retries", [0, 2])
def test_failures_are_retried_below_the_sdk(client: Any, failure: tuple[str, str], max_retries: int) -> None:
    if failure[1] == "date":
        failure = (failure[0], http_date(0.5))
    with (
        raw_service(failing_first([failure, failure])) as service,
        client(service.url, max_retries=max_retries) as made,
    ):
        assert chat(made) == "done"
        # Whatever the SDK's own retries are: it has not seen a failure.
        assert len(service.heads) == 3
        assert all("x-stainless-retry-count: 0" in head.lower() for head in service.heads)


@pytest.mark.parametrize("client", CLIENTS)
def test_failures_that_last_are_the_sdks_exceptions(client: Any) -> None:
    lasting = [("429 Too Many Requests", "Retry-After: 0")] * 9
    with raw_service(failing_first(lasting)) as service, client(service.url) as made:
        module: Any = {"OpenAI": openai, "Anthropic": anthropic, "Groq": groq}[type(made).__name__]
        with pytest.raises(module.RateLimitError):
            chat(made)
        assert len(service.heads) == 3
    with client(service.url, retries=None) as made, pytest.raises(module.APIConnectionError):
        chat(made)


def test_a_deadline_is_the_sdks_timeout() -> None:
    def silent(_: str) -> Iterator[bytes]:
        time.sleep(20)
        yield b""

    with raw_service(silent) as service:
        for client, module in ((openai_client, openai), (anthropic_client, anthropic), (groq_client, groq)):
            error: Any = module.APITimeoutError
            with client(service.url, deadline=0.2) as made, pytest.raises(error):
                chat(made)


def test_streams_that_are_cut_are_not_sent_again() -> None:
    choice = '{"index":0,"delta":{"content":"a"}}'
    head = '"id":"1","object":"chat.completion.chunk","created":1,"model":"m"'
    event = f'data: {{{head},"choices":[{choice}]}}\n\n'.encode()

    def cut(_: str) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        yield f"{len(event):x}\r\n".encode() + event + b"\r\n"
        raise OSError

    with raw_service(cut) as service, openai_client(service.url) as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises(openai.APIConnectionError):
            list(stream)
        assert len(service.heads) == 1


def test_files_are_uploaded() -> None:
    file = {
        "id": "f",
        "object": "file",
        "bytes": 3,
        "created_at": 1,
        "filename": "a",
        "purpose": "batch",
        "status": "processed",
    }

    def respond(_: str) -> Pieces:
        return [response(json.dumps(file).encode(), "Content-Type: application/json")]

    with raw_service(respond) as service, openai_client(service.url) as client:
        assert client.files.create(file=("a.jsonl", b"{}\n" * 10), purpose="batch").id == "f"


def test_stripe_by_requests() -> None:
    turn = itertools.count()

    def respond(_: str) -> Pieces:
        if next(turn) % 2 == 0:
            return [response(b"{}", "Retry-After: 0", status="429 Too Many Requests")]
        customer = {"id": "cus_1", "object": "customer"}
        return [response(json.dumps(customer).encode(), "Content-Type: application/json")]

    with raw_service(respond) as service:
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, weir.requests.Adapter(**POLICY))
        client = stripe.StripeClient(
            "sk_test",
            http_client=stripe.RequestsClient(session=session),
            base_addresses={"api": service.url},
            max_network_retries=0,
        )
        assert client.v1.customers.create(params={"email": "a@b.test"}).id == "cus_1"
        assert len(service.heads) == 2


def test_google_genai() -> None:
    body = {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}, "finishReason": "STOP"}]}
    turn = itertools.count()

    def respond(_: str) -> Pieces:
        if next(turn) == 0:
            return [response(b"{}", status="503 Service Unavailable")]
        return [response(json.dumps(body).encode(), "Content-Type: application/json")]

    with raw_service(respond) as service:
        options = genai_types.HttpOptions(
            base_url=service.url, client_args={"transport": weir.httpx2.Transport(**POLICY)}
        )
        client = genai.Client(api_key="secret", http_options=options)
        assert client.models.generate_content(model="m", contents="hello").text == "done"
        assert len(service.heads) == 2


def test_pydantic_ai(model: weir.Service) -> None:
    http_client = httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(**POLICY))
    provider = OpenAIProvider(base_url=model.url + "/v1", api_key="x", http_client=http_client)
    agent = Agent(OpenAIChatModel("m", provider=provider))
    assert words(agent.run_sync("hello").output) == 6


# Packages that it imports warn.
@pytest.mark.filterwarnings("ignore")
def test_litellm(model: weir.Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = pytest.importorskip("litellm", reason="no litellm; scripts/setup.sh test-all installs it")
    with openai_client(model.url) as client:
        whole = litellm.completion("openai/m", messages=MESSAGES, client=client, num_retries=0)
        assert words(whole.choices[0].message.content) == 6
        stream = litellm.completion("openai/m", messages=MESSAGES, client=client, stream=True)
        assert words("".join(chunk.choices[0].delta.content or "" for chunk in stream)) == 6
