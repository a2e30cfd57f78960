"""`weir gate` with a rate limit in tokens, between `weir serve llm` and the clients that people have."""

import json
import os
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from programs import TIMEOUT_S, binary, started

import weir

# LiteLLM asks nothing but the service.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}

for package in ("anthropic", "litellm", "openai"):
    pytest.importorskip(package, reason=f"no {package}; scripts/setup.sh test-all installs it")

import anthropic  # noqa: E402
import litellm  # noqa: E402
import openai  # noqa: E402

# Warnings of LiteLLM's own.
pytestmark = [pytest.mark.wide, pytest.mark.filterwarnings("ignore")]

BURST = 1000
#: A token comes back in 6 min.
SLOW = "10/1h"
#: Of "user", "hello" and "weir-llm".
TEXT = 5
ASKED: Any = [{"role": "user", "content": "hello"}]
#: As many tokens as no bucket holds.
TOO_MANY = 5 * BURST


@dataclass(frozen=True)
class Limited:
    """A model behind a gateway."""

    model: weir.Service
    url: str

    def openai(self, **options: Any) -> openai.OpenAI:
        """Return a client that does not retry."""
        return openai.OpenAI(**{"base_url": self.url + "/v1", "api_key": "secret", "max_retries": 0, **options})

    def rejections(self) -> int:
        """Calls over the rate limit."""
        with urllib.request.urlopen(self.url + "/metrics") as response:
            lines = response.read().decode().splitlines()
        counts = [line for line in lines if line.startswith("weir_gate_rejected_total") and "rate_limited" in line]
        return sum(int(float(line.rsplit(" ", 1)[1])) for line in counts)

    def left(self) -> int:
        """Tokens left to the caller, by the response to a call that asks for too many."""
        with self.openai() as client, pytest.raises(openai.RateLimitError) as limited:
            client.chat.completions.create(model="weir-llm", messages=ASKED, max_tokens=TOO_MANY)
        return int(limited.value.response.headers["x-ratelimit-remaining-tokens"])


Start = Callable[..., AbstractContextManager[Limited]]


def until(what: str, holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a model that writes N tokens, and a gateway with this rate in front of it."""

    @contextmanager
    def both(rate: str = SLOW, output_tokens: int = 6, decode: str = "0ms") -> Iterator[Limited]:
        with weir.serve("llm", prefill="0ms", decode=decode, jitter="0%", output_tokens=output_tokens, seed=1) as model:
            config = tmp_path / "gate.toml"
            config.write_text(f"""
[upstreams.model]
urls = ["{model.url}"]
[[routes]]
match = {{ path = "/v1/{{*rest}}" }}
caller = {{ header = "authorization" }}
rate_limit = {{ rate = "{rate}", burst = {BURST}, weight = {{ tokens = "usage" }}, headers = true }}
""")
            command = [str(binary()), "gate", "--config", str(config), "--listen", "127.0.0.1:0"]
            with started(*command) as gate:
                assert gate.stdout
                yield Limited(model, json.loads(gate.stdout.readline())["listening"])

    return both


def test_what_was_not_used_comes_back_and_the_headers_say_so(start: Start) -> None:
    with start() as limited, limited.openai() as client:
        raw = client.chat.completions.with_raw_response.create(model="weir-llm", messages=ASKED, max_tokens=500)
        usage = raw.parse().usage
        assert usage
        assert usage.total_tokens < 20
        assert raw.headers["x-ratelimit-limit-tokens"] == str(BURST)
        assert raw.headers["x-ratelimit-remaining-tokens"] == str(BURST - usage.total_tokens)
        assert raw.headers["x-ratelimit-reset-tokens"].endswith("s")
        responded = client.responses.create(model="weir-llm", input="hello", max_output_tokens=500)
        assert responded.usage
        assert limited.left() == BURST - usage.total_tokens - responded.usage.total_tokens


def test_what_was_missing_is_waited_for_as_the_headers_say(start: Start) -> None:
    # 200 tokens more than there are, which come back in 4 s.
    with start("50/1s", output_tokens=BURST + 200) as limited:
        with limited.openai(max_retries=1) as client:
            first = client.chat.completions.create(model="weir-llm", messages=ASKED)
            assert first.usage
            assert first.usage.completion_tokens == BURST + 200
            # A slow machine may need none; one that heeds Retry-After needs no second one.
            second = client.chat.completions.with_raw_response.create(model="weir-llm", messages=ASKED, max_tokens=1)
        assert second.retries_taken == limited.rejections() <= 1
        assert len(limited.model.records()) == 2


def test_a_call_that_can_never_pass_is_one_error(start: Start) -> None:
    with start() as limited:
        # This SDK shows the message of an error, and nothing else of its body.
        asks = f"asks for {TEXT + TOO_MANY} tokens.* allows {BURST} at once"
        with limited.openai(max_retries=5) as client, pytest.raises(openai.RateLimitError, match=asks) as over:
            client.chat.completions.create(model="weir-llm", messages=ASKED, max_tokens=TOO_MANY)
        assert (over.value.code, over.value.param, over.value.type) == ("rate_limit_exceeded", None, "rate_limit_error")
        with (
            anthropic.Anthropic(base_url=limited.url, api_key="secret", max_retries=5) as other,
            pytest.raises(anthropic.RateLimitError, match=asks) as limit,
        ):
            other.messages.create(model="weir-llm", max_tokens=TOO_MANY, messages=ASKED)
        # As the SDK reads it from the body.
        assert limit.value.type == "rate_limit_error"
        assert limited.rejections() == 2
        assert limited.model.records() == []


def test_streams_cost_what_they_say_or_their_events(start: Start) -> None:
    with start(output_tokens=40) as limited, limited.openai() as client:
        options: Any = {"model": "weir-llm", "messages": ASKED, "stream": True}
        chunks = list(client.chat.completions.create(**options, max_tokens=30, stream_options={"include_usage": True}))
        usage = chunks[-1].usage
        assert usage
        assert usage.completion_tokens == 30
        left = BURST - usage.total_tokens
        until("the correction", lambda: limited.left() == left)
        # Without usage: the output that it allows, or what has passed if that is more.
        assert all(chunk.usage is None for chunk in client.chat.completions.create(**options, max_tokens=100))
        until("the estimate", lambda: limited.left() == left - TEXT - 100)
        list(client.chat.completions.create(**options))
        until("the events", lambda: left - TEXT - 100 - 60 <= limited.left() <= left - TEXT - 100 - TEXT - 40)


def test_a_stream_that_is_left_costs_what_it_allowed(start: Start) -> None:
    with start(output_tokens=400, decode="50ms") as limited:
        with limited.openai() as client:
            with client.chat.completions.create(
                model="weir-llm", messages=ASKED, stream=True, max_tokens=400
            ) as stream:
                next(iter(stream))
            until("the correction", lambda: limited.left() == BURST - TEXT - 400)
        with anthropic.Anthropic(base_url=limited.url, api_key="secret", max_retries=0) as other:
            key = {"authorization": "Bearer secret"}
            with other.messages.create(
                model="weir-llm", messages=ASKED, stream=True, max_tokens=300, extra_headers=key
            ) as events:
                # Its first event says what the input used.
                assert next(iter(events)).type == "message_start"
            until("the correction", lambda: limited.left() == BURST - TEXT - 400 - TEXT - 300)


def test_litellm_is_corrected_and_limited(start: Start) -> None:
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    with start() as limited:
        target: Any = {"model": "openai/weir-llm", "api_base": limited.url + "/v1", "api_key": "secret"}
        target |= {"messages": ASKED, "num_retries": 0, "max_retries": 0}
        said = litellm.completion(**target, max_tokens=500)
        left = BURST - said.usage.total_tokens
        assert limited.left() == left
        chunks = list(litellm.completion(**target, max_tokens=500, stream=True, stream_options={"include_usage": True}))
        (used,) = [chunk.usage.total_tokens for chunk in chunks if getattr(chunk, "usage", None)]
        until("the correction", lambda: limited.left() == left - used)
        with pytest.raises(litellm.exceptions.RateLimitError, match=f"allows {BURST} at once"):
            litellm.completion(**target, max_tokens=TOO_MANY)
        with pytest.raises(litellm.exceptions.RateLimitError) as over:
            litellm.completion(**target, max_tokens=left - used)
        assert int(over.value.response.headers["retry-after"]) > 0
        assert len(limited.model.records()) == 2
