"""`weir send --results`: batch files, read by the types of the providers' own packages; costs beside LiteLLM."""

import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from programs import binary, finished

import weir

for package in ("anthropic", "openai"):
    pytest.importorskip(package, reason=f"no {package}; scripts/setup.sh test-all installs it")

from anthropic.types.messages import MessageBatchIndividualResponse  # noqa: E402
from openai.types import Completion, CreateEmbeddingResponse, ErrorObject  # noqa: E402
from openai.types.chat import ChatCompletion  # noqa: E402
from openai.types.responses import Response  # noqa: E402

# LiteLLM asks nothing but the program: no list of prices from elsewhere.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}

pytestmark = [pytest.mark.wide, pytest.mark.filterwarnings("ignore")]

MESSAGES = [{"role": "user", "content": "hello"}]
OPENAI_BODIES: dict[str, tuple[dict[str, Any], Any]] = {
    "/v1/chat/completions": ({"messages": MESSAGES, "max_tokens": 4}, ChatCompletion),
    "/v1/completions": ({"prompt": "hello", "max_tokens": 4}, Completion),
    "/v1/responses": ({"input": "hello", "max_output_tokens": 4}, Response),
    "/v1/embeddings": ({"input": "hello"}, CreateEmbeddingResponse),
}


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def send(folder: Path, form: str, jobs: list[Any], *args: str) -> tuple[int, Any]:
    (folder / "batch.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    common = ["--results", form, "--out", "out.jsonl", "--format", "json", "-q"]
    result = finished(str(binary()), "send", "batch.jsonl", *common, *args, cwd=folder)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


@pytest.mark.parametrize("mix", ["good=1", "good=8,error=1,garbage=1,reset=1"])
def test_lines_of_an_openai_batch_are_read_by_the_types_of_openai(mix: str, tmp_path: Path) -> None:
    paths = [list(OPENAI_BODIES)[number % len(OPENAI_BODIES)] for number in range(60)]
    jobs = [
        {
            "custom_id": f"j{number}",
            "method": "POST",
            "url": path,
            "body": {"model": "weir-llm", **OPENAI_BODIES[path][0]},
        }
        for number, path in enumerate(paths)
    ]
    jobs[7]["body"] = {"model": "no-such-model", "messages": MESSAGES}
    jobs[7]["url"] = "/v1/chat/completions"
    with weir.serve("llm", api_key="secret", prefill="1ms", decode="1ms", mix=mix, slots=32, seed=3) as model:
        code, summary = send(
            tmp_path,
            "openai-batch",
            jobs,
            *("--url", model.url + "/v1", "-H", "Authorization: Bearer secret", "--timeout", "1s"),
            *("--retries", "1", "--backoff", "1ms..20ms"),
        )
    output, errors = lines(tmp_path / "out.jsonl"), lines(tmp_path / "out.jsonl.errors")
    assert code == 1
    assert summary["done"] == len(output)
    assert sorted(line["custom_id"] for line in output + errors) == sorted(str(job["custom_id"]) for job in jobs)
    assert len({line["id"] for line in output + errors}) == len(jobs)
    for line in output:
        assert set(line) == {"id", "custom_id", "response", "error"}
        assert line["error"] is None
        assert set(line["response"]) == {"status_code", "request_id", "body"}
        assert line["response"]["status_code"] == 200
        kind: Any = OPENAI_BODIES[paths[int(line["custom_id"][1:])]][1]
        body = line["response"]["body"]
        # Usage of responses has a newer field, which compatible servers do not have; the package reads it like this.
        parsed = kind.construct(**body) if kind is Response else kind.model_validate(body, strict=True)
        assert parsed.model == "weir-llm"
    for line in errors:
        if line["response"] is None:
            assert isinstance(line["error"]["message"], str)
            assert line["error"]["code"] in {"request_timeout", "connection_error"}
        elif line["error"] is None:
            assert line["response"]["status_code"] >= 400
            ErrorObject.model_validate(line["response"]["body"]["error"])
        else:
            assert line["error"]["code"] == "check_failed"
    unknown = next(line for line in errors if line["custom_id"] == "j7")
    assert (unknown["response"]["status_code"], unknown["response"]["body"]["error"]["code"]) == (
        404,
        "model_not_found",
    )
    tokens = sum(line["response"]["body"]["usage"].get("total_tokens", 0) for line in output)
    assert summary["tokens"]["input"] + summary["tokens"]["output"] >= tokens > 0


@pytest.mark.parametrize("mix", ["good=1", "good=8,error=1,garbage=1,reset=1"])
def test_lines_of_an_anthropic_batch_are_read_by_the_types_of_anthropic(mix: str, tmp_path: Path) -> None:
    jobs = [
        {"custom_id": f"j{number}", "params": {"model": "weir-llm", "max_tokens": 4, "messages": MESSAGES}}
        for number in range(60)
    ]
    jobs[7]["params"]["model"] = "no-such-model"  # type: ignore[index]
    with weir.serve("llm", api_key="secret", prefill="1ms", decode="1ms", mix=mix, slots=32, seed=3) as model:
        code, summary = send(
            tmp_path,
            "anthropic-batch",
            jobs,
            *("--url", model.url, "-H", "x-api-key: secret", "--timeout", "1s"),
            *("--retries", "1", "--backoff", "1ms..20ms"),
        )
    assert code == 1
    results = [MessageBatchIndividualResponse.model_validate(line) for line in lines(tmp_path / "out.jsonl")]
    assert sorted(result.custom_id for result in results) == sorted(str(job["custom_id"]) for job in jobs)
    kinds: dict[str, int] = {}
    for result in results:
        kind: str = result.result.type
        if result.result.type == "succeeded":
            assert result.result.message.content[0].type == "text"
            assert result.result.message.usage.output_tokens == 4
        if result.result.type == "errored":
            kind = result.result.error.error.type
        kinds[kind] = kinds.get(kind, 0) + 1
    assert kinds["succeeded"] == summary["done"]
    assert kinds["not_found_error"] == 1
    if mix != "good=1":
        assert set(kinds) <= {"succeeded", "not_found_error", "api_error", "timeout_error"}


def test_a_batch_goes_as_fast_as_the_server_allows_and_no_job_fails_for_its_limit(tmp_path: Path) -> None:
    jobs = [
        {"custom_id": f"j{number}", "params": {"model": "weir-llm", "max_tokens": 4, "messages": MESSAGES}}
        for number in range(40)
    ]
    with weir.serve("llm", prefill="1ms", decode="1ms", slots=64, seed=3, requests_per_minute=1200) as model:
        code, summary = send(tmp_path, "anthropic-batch", jobs, "--url", model.url)
    assert (code, summary["done"]) == (0, 40)
    assert not (tmp_path / "out.jsonl.errors").exists()


@contextmanager
def echo() -> Iterator[str]:
    """Service that responds with the body of the request, as a response of that model with that usage."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_costs_are_those_of_litellm(tmp_path: Path) -> None:
    litellm: Any = pytest.importorskip("litellm", reason="no litellm; scripts/setup.sh test-all installs it")
    rng = random.Random(5)
    by_name = litellm.model_cost

    def names_of(provider: str) -> list[str]:
        """Models that have one price for tokens, whatever the length of the prompt."""
        own = [name for name, price in by_name.items() if price.get("litellm_provider") == provider]
        chats = [name for name in own if by_name[name].get("mode") == "chat" and "/" not in name and ":" not in name]
        return [name for name in chats if not any(key.endswith("k_tokens") for key in by_name[name])]

    models = {"openai": ["gpt-4o", "gpt-4o-mini", "gpt-4.1", "o3-mini"], "anthropic": names_of("anthropic")}
    assert all(models.values()), models
    (tmp_path / "prices.json").write_text(json.dumps(litellm.model_cost))
    for provider, names in models.items():
        jobs, expected = [], 0.0
        for number in range(40):
            name = rng.choice(names)
            read, write, fresh, output = (rng.randrange(1000) for _ in range(4))
            if provider == "openai":
                usage: dict[str, Any] = {
                    "prompt_tokens": fresh + read,
                    "completion_tokens": output,
                    "total_tokens": fresh + read + output,
                    "prompt_tokens_details": {"cached_tokens": read},
                }
                counted = litellm.Usage(**usage)
            else:
                cached = {"cache_read_input_tokens": read, "cache_creation_input_tokens": write}
                usage = {"input_tokens": fresh, "output_tokens": output, **cached}
                total = fresh + read + write
                counted = litellm.Usage(prompt_tokens=total, completion_tokens=output, **cached)
            expected += sum(litellm.cost_per_token(model=name, usage_object=counted))
            jobs.append({"id": f"{provider}{number}", "body": {"model": name, "usage": usage}})
        (tmp_path / f"{provider}.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
        with echo() as url:
            args = ["send", f"{provider}.jsonl", "--url", url, "--prices", "prices.json", "--format", "json", "-q"]
            result = finished(str(binary()), *args, cwd=tmp_path)
        tokens = json.loads(result.stdout)["tokens"]
        assert tokens["unpriced_responses"] == 0, tokens
        assert tokens["cost_usd"] == pytest.approx(expected, rel=1e-9)
