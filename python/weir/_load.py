"""`weir.load`: arguments as Python has them -> the form that Rust reads."""

import json as json_module
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Literal, TypeAlias

from weir import _weir
from weir._errors import Interrupted, UsageError
from weir._run import Run

__all__ = ["Stage", "Time", "load"]

Time: TypeAlias = float | timedelta | str
"""A length of time: seconds, a `timedelta`, or text such as ``"300ms"``, ``"1.5s"``, ``"2m"``, ``"1h"``."""

Stage: TypeAlias = tuple[float, float, Time]
"""A stretch of an open loop: requests per second at its start, at its end, and its length."""

_Path: TypeAlias = str | PathLike[str]
_Body: TypeAlias = str | bytes | PathLike[str]

_SECRET_HEADERS = {"authorization", "cookie", "proxy-authorization", "x-api-key"}
_LONGEST_SHOWN = 200


def load(
    url: str,
    *,
    connections: int | None = None,
    threads: int | None = None,
    requests: int | None = None,
    duration: Time | None = None,
    users: int | None = None,
    ramp_up: Time | None = None,
    loops: int | None = None,
    fresh: bool = False,
    rate: float | None = None,
    arrivals: Literal["constant", "poisson"] = "constant",
    stages: str | Sequence[Stage] | None = None,
    method: str | None = None,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    body: _Body | Sequence[_Body] | None = None,
    weights: Sequence[float] | None = None,
    json: object = None,
    auth: tuple[str, str] | str | None = None,
    timeout: Time | None = None,
    keepalive: bool = True,
    pipeline: int | None = None,
    unix_socket: _Path | None = None,
    connect_to: str | None = None,
    cacert: _Path | None = None,
    cert: _Path | None = None,
    key: _Path | None = None,
    insecure: bool = False,
    sni: str | None = None,
    warmup: Time | None = None,
    seed: int | None = None,
    spin: bool = False,
    slo: str | Sequence[str] | None = None,
    on: str | None = None,
    agents: int | None = None,
    per_node: int = 1,
) -> Run:
    """Drive load at a service, wait for its end, and return what was measured.

    Three ways to say how much:

    - *closed loop*, as ab and wrk have it: `connections` that each wait for their answer and ask again;
    - *closed loop*, as JMeter has it: `users` that start over `ramp_up` and ask `loops` times each;
    - *open loop*: requests start at `rate` (or as `stages` say) whether or not answers come.

    It blocks, with the GIL released. A failed request is not an error but a number in the result.

    Args:
        url: Where to, e.g. ``http://localhost:8080/path?query``; http or https.
        connections: Closed loop: connections that ask all the time (default 50). Open loop: the most connections
            (default 1000).
        threads: Generator threads. Default: one per core; in the open loop one per 20,000 requests per second.
        requests: Stop after so many.
        duration: Stop after this time. Default: 10 s, unless `requests` or `loops` bounds the run.
        users: Users, each with a connection of its own.
        ramp_up: The time over which the users start, evenly.
        loops: Requests per user.
        fresh: A new connection for each request.
        rate: Requests per second.
        arrivals: How they are spread: evenly, or independently of each other as those of many users are.
        stages: Rates that change: ``"0-200/30s,200/1m"``, or tuples (from per second, to per second, time).
        method: Default: GET, or POST with a body.
        headers: Names and values. They replace weir's own of the same name; an empty value leaves that one out.
        body: Text (sent as UTF-8), bytes, or a path (`pathlib.Path`) of a file; of several, each request takes one at
            random.
        weights: How often each body is taken, in their order; any scale.
        json: Anything that `json.dumps` takes, as the body; sets Content-Type.
        auth: User and password for basic authentication, as a tuple or as ``"user:password"``.
        timeout: The longest wait for an answer, and for a free connection (default 30 s).
        keepalive: Whether a connection is used again.
        pipeline: Requests in flight on a connection at a time (default 1).
        unix_socket: Connect to this socket, whatever the URL's host.
        connect_to: Connect to this ``host:port``, whatever the URL's.
        cacert: Trust the certificates in this PEM file, and no others.
        cert: Our own certificate (PEM); needs `key`.
        key: Our own private key (PEM); needs `cert`.
        insecure: Accept any certificate.
        sni: The name to ask for in TLS. Default: the URL's host.
        warmup: Leave the requests of this first stretch out of the result.
        seed: The same seed gives the same arrivals and choices of bodies (default 0).
        spin: Open loop: never sleep. Sends as close to their time as the machine allows, for a whole core per thread.
        slo: Objectives such as ``"p99<200ms"``, ``"errors<1%"``, ``"rate>1000"``; see `Run.slo`.
        on: Have agents drive the load: ``"local"`` (processes here), ``"auto"`` (the Ray cluster that this machine
            belongs to) or ``"ray://host:port"``; see `Run.agents`. A run in which one is lost is not to be trusted.
        agents: How many. Default: one per node of the cluster; local: 1.
        per_node: How many of them a node of a cluster may have.

    Raises:
        UsageError: A value makes no sense, or two do not go together.
        SetupError: The service is not there, the system has no room for the run, or agents cannot be placed.
        Interrupted: Ctrl-C, noticed in the main thread only; its `run` is what was measured.

    >>> run = weir.load("http://localhost:8080/", rate=500, duration="30s", slo="p99<200ms")
    >>> run.response_ms.p99, run.trust.ok, run.slo[0].ok
    (12.4, True, True)
    """
    form: dict[str, object] = dict(locals())
    lines = _header_lines(headers)
    command = _call(form | {"headers": list(lines) or None})
    bodies = [] if body is None else [body] if isinstance(body, str | bytes | PathLike) else body
    if json is not None:
        if body is not None:
            raise UsageError("body and json do not go together; json is a body")
        bodies = [_json_text(json)]
        if not any(line.lower().startswith("content-type:") for line in lines):
            lines.append("Content-Type: application/json")
    del form["json"]
    form.update(
        headers=lines,
        body=bodies,
        auth=_user_and_password(auth),
        slo=[] if slo is None else [slo] if isinstance(slo, str) else slo,
        launcher=[sys.executable, "-m", "weir"],
    )
    run = Run._of(_weir.load(form, command))
    if run.interrupted:
        raise Interrupted(run)
    return run


def _header_lines(headers: Mapping[str, str] | Iterable[tuple[str, str]] | None) -> list[str]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    lines = []
    for name, value in pairs:
        # "a:b" would be read as the header "a".
        if ":" in name:
            raise UsageError(f"headers: {name!r} is not a header's name")
        lines.append(f"{name}: {value}")
    return lines


def _user_and_password(auth: tuple[str, str] | str | None) -> str | None:
    if auth is None or isinstance(auth, str):
        return auth
    user, password = auth
    if ":" in user:
        raise UsageError(f"auth: a user's name cannot hold a colon, as {user!r} does")
    return f"{user}:{password}"


def _json_text(value: object) -> str:
    try:
        return json_module.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UsageError(f"json: {error}") from error


def _call(arguments: Mapping[str, object]) -> list[str]:
    """Show the call as the manifest keeps it: what differs from the defaults, without passwords."""
    defaults, unset = load.__kwdefaults__ or {}, object()
    given = [name for name, value in arguments.items() if value is not defaults.get(name, unset)]
    return ["weir.load", *(f"{name}={_shown(name, arguments[name])}" for name in given)]


def _shown(name: str, value: object) -> str:
    if name == "auth":
        return "'***'"
    if name == "url":
        value = re.sub(r"^([^/?#]*://)?[^/?#]*@", r"\1***@", str(value))
    if name == "headers" and isinstance(value, list):
        value = [_without_secret(line) for line in value]
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _without_secret(line: str) -> str:
    name = line.partition(":")[0]
    return f"{name}: ***" if name.lower() in _SECRET_HEADERS else line
