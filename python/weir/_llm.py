"""`weir.llm`: load of a language model's server."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Literal, TypeAlias

from weir import _weir
from weir._errors import Interrupted
from weir._load import Stage, _call, _header_lines, _json_text, _texts
from weir._run import Run
from weir._time import Time

__all__ = ["llm"]

_Path: TypeAlias = str | PathLike[str]


def llm(
    url: str,
    *,
    model: str | None = None,
    api: Literal[
        "chat", "completions", "responses", "embeddings", "messages", "ollama", "ollama-generate", "tgi", None
    ] = None,
    endpoint: str | None = None,
    api_key_env: str | None = None,
    stream: bool = True,
    extra_body: str | Mapping[str, object] | None = None,
    body_template: str | None = None,
    temperature: float | None = None,
    ignore_eos: bool = False,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    dataset: _Path = "random",
    input_tokens: int | str | None = None,
    output_tokens: int | str | None = None,
    prefix_tokens: int | None = None,
    prefixes: int | None = None,
    shuffle: bool = False,
    turns: int | None = None,
    think: Time | None = None,
    replies: Literal["dataset", "server", None] = None,
    trace: _Path | None = None,
    trace_format: Literal[
        "mooncake", "agentic", "bailian", "dynamo", "otel", "sharegpt", "burstgpt", "azure", "clients", None
    ] = None,
    trace_duration: Time | None = None,
    trace_block: int | None = None,
    trace_loop: Literal["open", "sessions", "closed", None] = None,
    speed: float | None = None,
    sample: float | None = None,
    concurrency: int | None = None,
    ramp_up: Time | None = None,
    rate: float | None = None,
    arrivals: str | None = None,
    stages: str | Sequence[Stage] | None = None,
    num_prompts: int | None = None,
    duration: Time | None = None,
    warmup: Time | None = None,
    threads: int | None = None,
    seed: int | None = None,
    goodput: str | Sequence[str] | None = None,
    slo: str | Sequence[str] | None = None,
    tokenizer: _Path | None = None,
    timeout: Time | None = None,
    stall_timeout: Time | None = None,
    keepalive: bool = True,
    http2: bool | Literal["only"] = False,
    h2c: bool = False,
    streams: int | None = None,
    h2_window: int | None = None,
    unix_socket: _Path | None = None,
    connect_to: str | None = None,
    cacert: _Path | None = None,
    cert: _Path | None = None,
    cert_key: _Path | None = None,
    insecure: bool = False,
    sni: str | None = None,
) -> Run:
    """Generate load for a language model's server, wait for the end of the run, and return its result.

    Prompts are sent and the streamed responses are read event by event, as ``weir llm`` does: `docs/llm.md` explains
    loads and prompts, `docs/llm/figures.md` each figure.

    The call blocks, with the GIL released. A failed request is not an exception but a count in the result.

    Args:
        url: URL of the server, e.g. ``http://localhost:8000``; the path of the API is added.
        model: Name of the model, as the server has it.
        api: API. Default: by the URL's path, or ``"chat"``.
        endpoint: Path of requests, in place of the API's.
        api_key_env: Environment variable with the API key; the key is never saved.
        stream: Whether responses are streamed; False is in one piece, without times of tokens.
        extra_body: Members that are added to each body or replace one, as JSON; None removes one.
        body_template: Body of another API, with ``{{prompt}}``, or ``@FILE``.
        temperature: Sampling temperature. Default: the server's.
        ignore_eos: Responses have as many tokens as they may (vLLM, SGLang).
        headers: Names and values. They replace default headers of the same name; an empty value removes one.
        dataset: File of prompts or conversations, or ``"random"`` for random words.
        input_tokens: Words of a random prompt: ``550``, ``"550+-150"``, ``"400..700"`` or
            ``"lognormal 500 2000"`` (default ``"550+-150"``).
        output_tokens: Maximum tokens of a response. Default: the file's; random: ``"150+-10"``.
        prefix_tokens: Random words in front of each prompt, which prompts share (default 0).
        prefixes: Number of different prefixes, in turn (default 1).
        shuffle: Conversations of the file in random order, by seed.
        turns: Maximum turns of a conversation. Default: all; random: 1.
        think: Think time between turns: ``"5s"``, ``"5s..20s"``, ``"exponential 8s"``. Default: the file's, or 0.
        replies: Whose replies the next turn repeats (default ``"dataset"``, where the file has them).
        trace: Trace whose requests are replayed at their times, in place of prompts and a rate (`docs/llm/traces.md`),
            or clients whose sessions are made up (`docs/llm/clients.md`).
        trace_format: Format of the trace. Default: by its first line.
        trace_duration: Length of the trace's part that is replayed. Default: all.
        trace_block: Tokens of a block with one hash. Default: the format's.
        trace_loop: What starts requests: recorded times (default "open"), in a session the response before
            ("sessions"), and of sessions a free user ("closed").
        speed: Time of the trace divided by that of the load (default 1).
        sample: Fraction of the trace's sessions, by seed. Default: all.
        concurrency: Closed loop: conversations at a time (default 8); open loop: maximum (default 1000).
        ramp_up: Closed loop: time over which conversations start, evenly.
        rate: Open loop: conversations per second, independent of responses.
        arrivals: Arrival process: "poisson" (default), "constant" or "gamma:BURSTINESS".
        stages: Rate over time: ``"0-8/1m,8/5m"``, or tuples (from per second, to per second, time).
        num_prompts: Number of conversations.
        duration: Duration. Default: 30 s, unless `num_prompts` or `stages` bounds the run.
        warmup: Initial time excluded from the result.
        threads: Generator threads (default 1).
        seed: Seed of arrivals, prompts, orders and think times (default 0).
        goodput: Objectives of each request, such as ``"ttft:500ms tpot:50ms e2e:5s"``; see `Run.llm`.
        slo: Objectives of the run, such as ``"ttft.p99<500ms"``, ``"goodput>99%"``, ``"errors<1%"``; see `Run.slo`.
        tokenizer: The model's ``tokenizer.json``, to count tokens that the server does not report.
        timeout: Timeout of a request, and of waiting for a connection (default 10 minutes).
        stall_timeout: Longest time between two events; a response that stalls has failed.
        keepalive: Whether connections are reused; False is a new connection for each request.
        http2: HTTP/2 over TLS; ``True``: HTTP/1.1 with a service that does not offer it, ``"only"``: no load then.
        h2c: HTTP/2 without TLS (prior knowledge).
        streams: Streams per connection (default 1).
        h2_window: Window of flow control of each stream, in bytes (default 6291456).
        unix_socket: Unix socket to connect to.
        connect_to: ``host:port`` to connect to, instead of the URL's.
        cacert: File of CA certificates to trust, instead of the system's (PEM).
        cert: File of the client certificate (PEM); needs `cert_key`.
        cert_key: File of its private key (PEM); needs `cert`.
        insecure: No verification of certificates.
        sni: TLS server name. Default: the URL's host.

    Returns:
        The result of the run; `Run.llm` has tokens, TTFT, TPOT, gaps and goodput, `Run.trace` the trace.

    Raises:
        UsageError: A value is invalid, two arguments conflict, or the data set has a mistake.
        SetupError: The server cannot be reached, or the system lacks resources for the run.
        Interrupted: Ctrl-C, detected in the main thread only; its `run` is what was measured.

    >>> run = weir.llm("http://localhost:8000", model="my-model", concurrency=8, num_prompts=200)
    >>> run.llm.ttft_ms.p99, run.llm.tpot_ms.p50, run.llm.output_tokens_per_s
    (85.2, 11.4, 669.0)
    """
    form: dict[str, object] = dict(locals())
    form["headers"] = lines = _header_lines(headers)
    command = _call("weir.llm", llm.__kwdefaults__ or {}, form | {"headers": lines or None})
    if isinstance(extra_body, Mapping):
        form["extra_body"] = _json_text(extra_body)
    form["goodput"] = [] if goodput is None else _texts(goodput)
    form["slo"] = [] if slo is None else _texts(slo)
    # A number of seconds with its unit, which the notation of think times needs.
    form["think"] = None if think is None else _seconds(think)
    handle, notes = _weir.llm(form, command)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    run = Run._of(handle)
    if run.interrupted:
        raise Interrupted(run)
    return run


def _seconds(time: Time) -> str:
    """Format a time with its unit."""
    if isinstance(time, timedelta):
        time = time / timedelta(seconds=1)
    return time if isinstance(time, str) else f"{time:.6f}s"
