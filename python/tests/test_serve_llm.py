"""`weir serve llm` with the SDKs of OpenAI and Anthropic, as their users call them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import weir

for package in ("anthropic", "openai"):
    pytest.importorskip(package, reason=f"no {package}; scripts/setup.sh test-all installs it")

import anthropic  # noqa: E402
import openai  # noqa: E402

pytestmark = pytest.mark.wide

TOKENS = 6


@pytest.fixture
def model() -> Iterator[weir.Service]:
    with weir.serve(
        "llm", api_key="secret", prefill="1ms", decode="1ms", jitter="0%", output_tokens=TOKENS, seed=1
    ) as service:
        yield service


def openai_client(service: weir.Service, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(**{"base_url": service.url + "/v1", "api_key": "secret", "max_retries": 0, **options})


def anthropic_client(service: weir.Service, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(**{"base_url": service.url, "api_key": "secret", "max_retries": 0, **options})


def test_chat_completions_are_streamed_and_whole(model: weir.Service) -> None:
    with openai_client(model) as client:
        whole = client.chat.completions.create(model="weir-llm", messages=[{"role": "user", "content": "12345678"}])
        assert whole.usage is not None
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (2, TOKENS)
        assert whole.choices[0].finish_reason == "stop"
        text = whole.choices[0].message.content
        assert text is not None
        assert len(text.split(" ")) == TOKENS

        chunks = list(
            client.chat.completions.create(
                model="weir-llm",
                messages=[{"role": "user", "content": "12345678"}],
                max_completion_tokens=4,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert len([text for text in texts if text]) == 4
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-2].choices[0].finish_reason == "length"
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 4
    whole_record, record = model.records()
    assert (whole_record["stream"], record["stream"]) == (False, True)
    assert (record["output_tokens"], len(record["chunks_ns"])) == (4, 4)
    assert 0 < record["queue_ns"] < record["ttft_ns"] < record["e2e_ns"]


def test_completions_responses_embeddings_and_models(model: weir.Service) -> None:
    with openai_client(model) as client:
        completion = client.completions.create(model="weir-llm", prompt="abc", max_tokens=3)
        assert (completion.choices[0].finish_reason, len(completion.choices[0].text.split(" "))) == ("length", 3)
        chunks = list(client.completions.create(model="weir-llm", prompt="abc", stream=True))
        assert len("".join(chunk.choices[0].text for chunk in chunks).split(" ")) == TOKENS

        response = client.responses.create(model="weir-llm", input="hello")
        assert (response.status, len(response.output_text.split(" "))) == ("completed", TOKENS)
        with client.responses.stream(model="weir-llm", input="hello") as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        assert kinds.count("response.output_text.delta") == TOKENS
        assert final.usage is not None
        assert (final.usage.output_tokens, len(final.output_text.split(" "))) == (TOKENS, TOKENS)
        # Members that the SDK's type requires: nothing is cached.
        details = final.usage.input_tokens_details
        assert (details.cached_tokens, details.cache_write_tokens) == (0, 0)

        vectors = client.embeddings.create(model="weir-llm", input=["a", "b"])
        again = client.embeddings.create(model="weir-llm", input="a", encoding_format="float")
        assert [len(item.embedding) for item in vectors.data] == [64, 64]
        assert vectors.data[0].embedding == pytest.approx(again.data[0].embedding, abs=1e-6)

        assert [found.id for found in client.models.list()] == ["weir-llm"]
        assert client.models.retrieve("weir-llm").owned_by == "weir"


def test_messages_are_streamed_and_whole(model: weir.Service) -> None:
    with anthropic_client(model) as client:
        messages: Any = [{"role": "user", "content": "12345678"}]
        whole = client.messages.create(model="weir-llm", max_tokens=4, messages=messages, system="1234")
        assert (whole.usage.input_tokens, whole.usage.output_tokens, whole.stop_reason) == (3, 4, "max_tokens")
        assert whole.content[0].type == "text"
        assert len(whole.content[0].text.split(" ")) == 4

        with client.messages.stream(model="weir-llm", max_tokens=100, messages=messages) as stream:
            texts = list(stream.text_stream)
            final = stream.get_final_message()
        assert (len(texts), final.stop_reason, final.usage.output_tokens) == (TOKENS, "end_turn", TOKENS)
        assert [found.id for found in client.models.list()] == ["weir-llm"]


def test_many_streams_at_once(model: weir.Service) -> None:
    async def tokens(client: openai.AsyncOpenAI) -> int:
        stream = await client.chat.completions.create(
            model="weir-llm", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        return len([chunk async for chunk in stream if chunk.choices and chunk.choices[0].delta.content])

    async def all_tokens() -> list[int]:
        async with openai.AsyncOpenAI(base_url=model.url + "/v1", api_key="secret", max_retries=0) as client:
            return await asyncio.gather(*(tokens(client) for _ in range(40)))

    assert asyncio.run(all_tokens()) == [TOKENS] * 40
    stats = model.stats()
    assert (stats["complete"], stats["running"], stats["output_tokens"]) == (40, 0, 40 * TOKENS)


def test_errors_are_those_of_the_sdks(model: weir.Service) -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    with openai_client(model, api_key="wrong") as client, pytest.raises(openai.AuthenticationError) as wrong_key:
        client.chat.completions.create(model="weir-llm", messages=messages)
    assert wrong_key.value.code == "invalid_api_key"
    with openai_client(model) as client, pytest.raises(openai.NotFoundError) as wrong_model:
        client.chat.completions.create(model="other", messages=messages)
    assert wrong_model.value.code == "model_not_found"
    with openai_client(model) as client, pytest.raises(openai.BadRequestError, match="'n' is not 1"):
        client.chat.completions.create(model="weir-llm", messages=messages, n=2)
    with anthropic_client(model, api_key="wrong") as other, pytest.raises(anthropic.AuthenticationError):
        other.messages.create(model="weir-llm", max_tokens=4, messages=messages)
    with anthropic_client(model) as other, pytest.raises(anthropic.NotFoundError):
        other.messages.create(model="other", max_tokens=4, messages=messages)


def test_a_rate_limit_is_one_of_the_sdks() -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    with weir.serve("llm", requests_per_minute=1, prefill="0ms", output_tokens=1) as model:
        with openai_client(model) as client:
            first = client.chat.completions.with_raw_response.create(model="weir-llm", messages=messages)
            assert first.headers["x-ratelimit-remaining-requests"] == "0"
            with pytest.raises(openai.RateLimitError) as limited:
                client.chat.completions.create(model="weir-llm", messages=messages)
        assert limited.value.code == "rate_limit_exceeded"
        assert 0 < int(limited.value.response.headers["retry-after-ms"]) <= 60_000
        with anthropic_client(model, api_key="other") as other:
            other.messages.create(model="weir-llm", max_tokens=4, messages=messages)
            with pytest.raises(anthropic.RateLimitError):
                other.messages.create(model="weir-llm", max_tokens=4, messages=messages)


def test_a_stream_that_breaks_off_is_an_error() -> None:
    messages: Any = [{"role": "user", "content": "hi"}]
    with weir.serve("llm", cut="100%", prefill="0ms", decode="0ms") as model, openai_client(model) as client:
        stream = client.chat.completions.create(model="weir-llm", messages=messages, stream=True)
        with pytest.raises(openai.APIConnectionError):
            list(stream)
        assert model.records()[0]["end"] == "cut"
