"""`weir.llm` against `weir serve llm`: figures that agree with the server's record, arguments, errors, Ctrl-C."""

import json
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from programs import started

import weir

TIMEOUT_S = 30


@pytest.fixture
def server() -> Iterator[weir.Service]:
    flags = {"prefill": "3ms", "decode": "1ms", "jitter": "0%", "batch_effect": "0%", "output_tokens": 6}
    with weir.serve("llm", model="m", **flags) as running:  # type: ignore[arg-type]
        yield running


@pytest.fixture
def arrival_times() -> Iterator[None]:
    """Let packets have arrival times: the kernel begins with them a while after a first socket asks for it."""
    so_timestampns = 35
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as held:
        held.setsockopt(socket.SOL_SOCKET, so_timestampns, 1)
        peer, _ = listener.accept()
        with peer:
            for _ in range(100_000):
                peer.sendall(b"x")
                if held.recvmsg(1, 64)[1]:
                    break
            else:
                pytest.fail("no arrival times")
            yield


@pytest.mark.usefixtures("arrival_times")
def test_figures_are_those_of_the_servers_record(server: weir.Service) -> None:
    run = weir.llm(
        server.url,
        model="m",
        concurrency=2,
        num_prompts=8,
        input_tokens="4..9",
        goodput=["ttft:20s", "e2e:30s"],
        slo=["goodput>99%", "ttft.p99<20s"],
    )
    records = server.records()
    assert (run.requests.ok, run.requests.failed, len(records)) == (8, 0, 8)
    assert run.llm is not None
    assert run.llm.output_tokens == sum(record["output_tokens"] for record in records) == 48
    assert run.llm.input_tokens == sum(record["input_tokens"] for record in records)
    assert (run.llm.good, run.llm.objectives) == (8, "ttft:20s e2e:30s")
    assert (run.llm.ttft_ms.min or 0) >= 2.9
    assert (run.llm.ttft_lateness_ms.max or 0) < (run.llm.ttft_ms.max or 0)
    assert (run.llm.ttft_read_delay_ms.max or 0) > 0
    assert run.llm.ttft_unstamped == 0
    assert [objective.ok for objective in run.slo] == [True, True]
    assert sum(point.streams.llm.requests for point in run.series if point.streams and point.streams.llm) == 8
    assert "TTFT" in str(run)
    assert weir.Run.from_json(run.to_json()) == run


def test_arguments_are_the_flags_and_the_call_is_in_the_manifest(server: weir.Service, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "b"}]
    lines = [{"messages": said}, {"messages": said[1:2]}]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.warns(UserWarning, match="1 conversations without a message of a user are left out"):
        run = weir.llm(
            server.url,
            model="m",
            dataset=prompts,
            replies="server",
            think=timedelta(milliseconds=5),
            output_tokens=2,
            stages=[(20, 20, 0.2)],
            arrivals="constant",
            concurrency=3,
            extra_body={"user": "ä"},
            headers={"Authorization": "Bearer secret"},
            keepalive=False,
            seed=7,
        )
    assert run.model == "open"
    assert [step.name for step in run.steps] == ["first turn", "later turns"]
    assert run.iterations is not None
    # On a busy machine the end comes before the second turn of some, and before others have begun.
    cut, dropped = run.iterations.unfinished, run.iterations.dropped
    assert (run.iterations.ok, run.requests.ok) == (4 - cut - dropped, 8 - cut - 2 * dropped)
    assert run.llm is not None
    assert run.llm.output_tokens == 2 * run.requests.ok
    call = run.manifest.command
    assert call[0] == "weir.llm"
    assert "seed=7" in call
    assert not any("secret" in word or word.startswith(("model=None", "stream=")) for word in call)


def test_responses_in_one_piece_have_no_times_of_tokens(server: weir.Service) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = weir.llm(server.url, model="m", stream=False, num_prompts=3, concurrency=1, input_tokens=3, ramp_up=0.01)
    assert run.llm is not None
    assert (run.llm.requests, run.llm.output_tokens, run.llm.tpot_ms.max) == (3, 18, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": None}, "model is missing"),
        ({"input_tokens": "many"}, "input_tokens"),
        ({"api": "soap"}, "api"),
        ({"dataset": "missing.txt"}, "cannot read the data set 'missing.txt'"),
        ({"goodput": "itl:5ms"}, "goodput: unknown objective 'itl'"),
        ({"slo": "p99<soon"}, "slo"),
        ({"rate": 5, "ramp_up": "1s"}, "ramp_up is for a closed loop"),
        ({"tokenizer": "missing.json"}, "tokenizer: cannot read 'missing.json'"),
        ({"extra_body": {"a": float("nan")}}, "json: "),
    ],
)
def test_invalid_arguments_name_themselves(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(weir.UsageError) as caught:
        weir.llm("http://127.0.0.1:9", **({"model": "m"} | arguments))
    assert message in str(caught.value)
    assert "--" not in str(caught.value).replace("--help", "")


def test_a_trace_is_replayed_with_its_lengths(server: weir.Service, tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    lengths = [(700, 3), (20, 1), (1024, 9)]
    lines = [
        {"timestamp": 10 * at, "input_length": i, "output_length": o, "hash_ids": [at] * (i // 512)}
        for at, (i, o) in enumerate(lengths)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = weir.llm(server.url, model="m", trace=file, speed=2, seed=3)
    assert run.trace is not None
    assert (run.trace.format, run.trace.requests, run.trace.speed, run.trace.blocks) == ("mooncake", 3, 2, 3)
    found = sorted((record["input_tokens"], record["output_tokens"]) for record in server.records())
    assert found == sorted(lengths)
    assert weir.llm(server.url, model="m", trace=file, trace_duration="15ms").requests.ok == 2
    for arguments, message in [
        ({"speed": 2}, "are for a trace"),
        ({"trace": file, "rate": 5}, "rate"),
        ({"trace": tmp_path / "missing"}, "cannot read"),
    ]:
        with pytest.raises(weir.UsageError, match=message):
            weir.llm(server.url, model="m", **arguments)  # type: ignore[arg-type]


def test_a_server_that_is_not_there_is_a_setup_error() -> None:
    with pytest.raises(weir.SetupError):
        weir.llm("http://127.0.0.1:9", model="m", num_prompts=1)


def test_ctrl_c_keeps_what_was_measured(server: weir.Service) -> None:
    script = f"""
import weir
print("running", flush=True)
try:
    weir.llm("{server.url}", model="m", duration="10m", concurrency=2, input_tokens=3)
except weir.Interrupted as interrupt:
    print(interrupt.run.to_json())
"""
    with started(sys.executable, "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        while not server.records():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    run = json.loads(out)
    assert (process.returncode, err, run["interrupted"]) == (0, "", True)
    assert run["llm"]["requests"] > 0
