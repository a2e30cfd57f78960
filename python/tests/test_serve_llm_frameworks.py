"""`weir serve llm` with LiteLLM and LangChain, as their users call them."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

import weir

# Neither asks anything but the service: no list of prices, no traces.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"}

# Warnings of their own.
pytestmark = [pytest.mark.wide, pytest.mark.filterwarnings("ignore")]

TOKENS = 5
ASKED: list[dict[str, str]] = [{"role": "user", "content": "hello"}]


@pytest.fixture
def model() -> Iterator[weir.Service]:
    with weir.serve("llm", api_key="secret", prefill="1ms", decode="1ms", output_tokens=TOKENS, seed=1) as service:
        yield service


@pytest.fixture(scope="module")
def litellm() -> Any:
    module = pytest.importorskip("litellm")
    module.telemetry = False
    module.suppress_debug_info = True
    return module


def words(text: str) -> int:
    return len(text.split())


def test_litellm_has_responses_in_one_piece_and_as_streams(litellm: Any, model: weir.Service) -> None:
    target = {"model": "openai/weir-llm", "api_base": model.url + "/v1", "api_key": "secret", "messages": ASKED}
    whole = litellm.completion(**target)
    assert (words(whole.choices[0].message.content), whole.usage.completion_tokens) == (TOKENS, TOKENS)
    parts = [chunk.choices[0].delta.content for chunk in litellm.completion(**target, stream=True, max_tokens=3)]
    assert words("".join(part for part in parts if part)) == 3
    assert [record["stream"] for record in model.records()] == [False, True]


def test_litellm_reaches_the_api_of_anthropic_and_embeddings(litellm: Any, model: weir.Service) -> None:
    said = litellm.completion(
        model="anthropic/weir-llm", api_base=model.url, api_key="secret", messages=ASKED, max_tokens=4
    )
    assert (words(said.choices[0].message.content), said.usage.completion_tokens) == (4, 4)
    found = litellm.embedding(
        model="openai/weir-llm", api_base=model.url + "/v1", api_key="secret", input=["one", "two"]
    )
    assert [len(item["embedding"]) for item in found.data] == [64, 64]


def test_errors_are_those_of_litellm(litellm: Any, model: weir.Service) -> None:
    target = {"api_base": model.url + "/v1", "messages": ASKED, "num_retries": 0, "max_retries": 0}
    with pytest.raises(litellm.exceptions.NotFoundError):
        litellm.completion(model="openai/unknown", api_key="secret", **target)
    with pytest.raises(litellm.exceptions.AuthenticationError):
        litellm.completion(model="openai/weir-llm", api_key="wrong", **target)


def test_langchain_invokes_streams_and_embeds(model: weir.Service) -> None:
    langchain = pytest.importorskip("langchain_openai")
    target = {"model": "weir-llm", "base_url": model.url + "/v1", "api_key": "secret", "max_retries": 0}
    chat = langchain.ChatOpenAI(**target, stream_usage=True)
    said = chat.invoke("hello")
    assert (words(said.content), said.usage_metadata["output_tokens"]) == (TOKENS, TOKENS)
    chunks = list(chat.stream("hello"))
    assert words("".join(chunk.content for chunk in chunks)) == TOKENS
    assert sum(chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata) == TOKENS
    embeddings = langchain.OpenAIEmbeddings(**target, check_embedding_ctx_length=False)
    assert len(embeddings.embed_query("hello")) == 64
