"""`weir.load`: from Python arguments to the options that Rust reads."""

import json as json_module
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias

from weir import _weir
from weir._errors import Interrupted, UsageError
from weir._grpc_call import is_of_calls, message_of
from weir._headers import HeaderTypes, pairs_of, shown_name
from weir._load_script import driver_of
from weir._processes import is_agent
from weir._run import Run
from weir._scenario import Scenario
from weir._script_summary import write_summaries
from weir._time import Time
from weir._user import User
from weir._user_script import UserScript

__all__ = ["Stage", "load", "load_form"]

Stage: TypeAlias = tuple[float, float, Time]
"""Stage of an open loop: requests per second at its start, at its end, and its length."""

_Path: TypeAlias = str | PathLike[str]
_Body: TypeAlias = str | bytes | PathLike[str]

_LONGEST_SHOWN = 200


def load(
    url: str | type[User] | Sequence[type[User]] = "",
    *,
    host: str | None = None,
    scenario: Scenario | Sequence[Scenario] | None = None,
    script: _Path | None = None,
    env: Mapping[str, object] | None = None,
    variables: Mapping[str, object] | None = None,
    data: _Path | Sequence[Mapping[str, object]] | None = None,
    data_order: Literal["circular", "unique", "random", "once"] = "circular",
    check: str | Sequence[str] | None = None,
    success: str | None = None,
    template: bool = True,
    redact: str | Sequence[str] = (),
    connections: int | None = None,
    threads: int | None = None,
    requests: int | None = None,
    duration: Time | None = None,
    users: int | None = None,
    ramp_up: Time | None = None,
    loops: int | None = None,
    rate: float | None = None,
    arrivals: str = "constant",
    stages: str | Sequence[Stage] | None = None,
    rate_from: _Path | Sequence[_Path] | None = None,
    scale: float | None = None,
    speed: float | None = None,
    mix_from: _Path | Sequence[_Path] | None = None,
    log_pattern: str | None = None,
    method: str | None = None,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    body: _Body | Mapping[str, object] | Sequence[_Body | Mapping[str, object]] | None = None,
    weights: Sequence[float] | None = None,
    json: object = None,
    auth: tuple[str, str] | str | None = None,
    timeout: Time | None = None,
    keepalive: bool = True,
    pipeline: int | None = None,
    http2: bool | Literal["only"] = False,
    h2c: bool = False,
    streams: int | None = None,
    h2_window: int | None = None,
    proto: _Path | Sequence[_Path] | None = None,
    proto_path: _Path | Sequence[_Path] | None = None,
    protoset: _Path | None = None,
    stream: bool | Literal["sse", "ndjson", "chunks", "json"] = False,
    stall_timeout: Time | None = None,
    max_events: int | None = None,
    binary: bool = False,
    subprotocols: str | Sequence[str] = (),
    deflate: bool | Literal["no-context"] = False,
    first_message: _Body | Sequence[_Body] | None = None,
    first_replies: int | None = None,
    message_interval: Time | None = None,
    reply: str | None = None,
    listen: bool = False,
    ping_interval: Time | None = None,
    unix_socket: _Path | None = None,
    connect_to: str | None = None,
    cacert: _Path | None = None,
    cert: _Path | None = None,
    cert_key: _Path | None = None,
    insecure: bool = False,
    sni: str | None = None,
    warmup: Time | None = None,
    seed: int | None = None,
    spin: bool = False,
    slo: str | Sequence[str] | None = None,
    on: str | None = None,
    agents: int | None = None,
    per_node: int = 1,
    processes: int | Literal["auto"] | None = None,
) -> Run:
    """Generate load for a service, wait for the end of the run, and return its result.

    There are three ways to set the load:

    - *closed loop*, as ab and wrk: `connections` that each send again after a response;
    - *closed loop*, as JMeter: `users` that start over `ramp_up` and send `loops` requests each;
    - *open loop*: requests start at `rate` (or as `stages` set), independent of responses.

    The call blocks, with the GIL released. A failed request is not an exception but a count in the result.

    Args:
        url: Target URL, e.g. ``http://localhost:8080/path?query``; http, https, grpc, grpcs, ws or wss. With a
            scenario or a script the URL before its paths; left out if its steps have hosts. Or a class of users, or
            several of them: see `User`. Then `requests`, `rate` and `loops` are tasks, and `connections` are users.
        host: URL before the paths of a class of users. Default: that of the class.
        scenario: What users do in place of one request: a `Scenario`, or several that are chosen by weight. `requests`,
            `rate` and `loops` are then iterations, and `connections` are users.
        script: Script of k6 (``.js``, ``.ts``), or collection of Postman with scripts (``.json``): what users do in
            place of one request. Without a load among the arguments it is that of the script's options, or one
            iteration. What it has measured itself is in `Run.script`, its thresholds in `Run.slo`. Its `handleSummary`
            is called after the load: what it returns is printed and written, and its errors are a RuntimeWarning.
        env: Variables of ``__ENV`` of the script; of a collection those of its environment.
        variables: Values of variables for templates of a single request; of a collection those of its environment.
        data: Rows for templates of a single request, as in `Scenario`; of a collection the file of its iteration data.
        data_order: Order of the rows.
        check: Predicates on each response to a single request in the format of hurl, such as
            ``'jsonpath "$.ok" == true'``; see `Run.steps`.
        success: Predicate that makes a response a success. Default: ``"status < 400"``, or what a step expects.
        template: Whether ``{{name}}`` in URL, headers and text bodies of a single request is a template.
        redact: Names of further secrets beside the known ones (``password``, ``token``, ...): headers, variables,
            parameters of the query, fields of JSON and forms. No result has their values.
        connections: Concurrent connections (default 50); in the open loop the maximum (default 1000).
        threads: Generator threads. Default: one per core; in the open loop one per 20,000 requests per second.
        requests: Number of requests.
        duration: Duration. Default: 10 s, unless `requests` or `loops` bounds the run.
        users: Closed-loop users, each with its own connection.
        ramp_up: Time over which users start, evenly.
        loops: Requests per user.
        rate: Open-loop arrival rate, in requests per second.
        arrivals: Arrival process: "constant" (evenly spaced), "poisson" (random, as of many independent visitors), or
            "gamma:BURSTINESS".
        stages: Arrival rate over time: ``"0-200/30s,200/1m"``, or tuples (from per second, to per second, time). With a
            ``u`` the number of users of a closed loop over time: ``"0-50u/30s,50u/1m"``.
        rate_from: Access log whose rate over time the load has, or several in order; `duration` cuts it off.
        scale: Factor of that rate (default 1).
        speed: Factor of its speed (default 1): 60 makes a minute of an hour.
        mix_from: Access log whose requests are sent, by how often it has them, in place of one request; or several.
        log_pattern: Format of the lines of a log: a name, or a pattern of nginx, Apache or Envoy. Default: told from
            the lines.
        method: Request method. Default: GET, or POST with a body.
        headers: Names and values. They replace default headers of the same name; an empty value removes one.
        body: Text (sent as UTF-8), bytes, or the path (`pathlib.Path`) of a file; of several, each request takes one at
            random. Of gRPC a dict is a message.
        weights: Weights of the bodies, in order.
        json: Body as an object for `json.dumps`; sets Content-Type.
        auth: User and password for basic authentication, as a tuple or as ``"user:password"``.
        timeout: Timeout of a request, and of waiting for a connection (default 30 s).
        keepalive: Whether connections are reused; False is a new connection for each request.
        pipeline: Requests in flight per connection (default 1).
        http2: HTTP/2 over TLS; ``True``: HTTP/1.1 with a service that does not offer it, ``"only"``: no load then.
        h2c: HTTP/2 without TLS (prior knowledge).
        streams: Streams per connection (default 1): requests at a time with `connections`, users that share a
            connection with `users` and with scenarios.
        h2_window: Window of flow control of each stream, in bytes (default 6291456).
        proto: ``.proto`` files of the service of a URL such as ``grpc://localhost:50051/shop.v1.Cart/Add``; without
            them it is described by its reflection. `body` and `json` are messages, and `headers` is metadata.
        proto_path: Folders of these files and of what they import (default the current one).
        protoset: File with a descriptor set of the service, in place of `proto`.
        stream: Reads responses as streams of events, by their Content-Type or as the format given; see `Run.streams`.
        stall_timeout: Longest time between two events; a response that stalls has failed.
        max_events: Events after which a response is ended.
        binary: Messages over WebSocket, to a URL of ``ws://`` or ``wss://``, as binary frames; text, if they are UTF-8,
            without it. Bodies are the messages.
        subprotocols: Subprotocols that are offered, the preferred one first.
        deflate: Offers compression (permessage-deflate); ``"no-context"``: each message of the service by itself.
        first_message: Message that each connection begins with, as `body` has them; or several, in order.
        first_replies: Messages that are awaited after each of these (default 1).
        message_interval: Time between the messages of a call of gRPC. Default: they are sent together.
        reply: Part of a message that its reply repeats, such as ``'jsonpath "$.id"'``. Default: replies come in order.
        listen: Connections that only listen to what the service pushes; see `Run.streams`.
        ping_interval: Time between two pings of a connection; see `Run.websocket`. Default: no pings.
        unix_socket: Unix socket to connect to.
        connect_to: ``host:port`` to connect to, instead of the URL's.
        cacert: File of CA certificates to trust, instead of the system's (PEM).
        cert: File of the client certificate (PEM); needs `cert_key`.
        cert_key: File of its private key (PEM); needs `cert`.
        insecure: No verification of certificates.
        sni: TLS server name. Default: the URL's host.
        warmup: Initial time excluded from the result.
        seed: Seed of arrivals and body choices (default 0).
        spin: Open loop: busy-wait for exact send times; one core per thread.
        slo: Objectives such as ``"p99<200ms"``, ``"errors<1%"``, ``"rate>1000"``; see `Run.slo`.
        on: Where agents generate the load: ``"local"`` (processes on this machine), ``"auto"`` (the Ray cluster of this
            machine) or ``"ray://host:port"``; see `Run.agents`. A run that loses an agent is not trusted.
        agents: Number of agents. Default: one per node of the cluster; local: 1.
        per_node: Maximum agents per node.
        processes: Number of processes that drive a class of users, ``"auto"`` for one per core (default 1): Python
            runs on one thread of each. They import the class from its file, so that a call in the same file stands
            under ``if __name__ == "__main__":``.

    Returns:
        The result of the run.

    Raises:
        UsageError: A value is invalid, or two arguments conflict.
        SetupError: The service cannot be reached, the system lacks resources for the run, or agents cannot be started.
        Interrupted: Ctrl-C, detected in the main thread only; its `run` is what was measured.

    >>> run = weir.load("http://localhost:8080/", rate=500, duration="30s", slo="p99<200ms")
    >>> run.response_ms.p99, run.trust.ok, run.slo[0].ok
    (12.4, True, True)
    """
    form, command, classes = load_form(locals(), "weir.load")
    try:
        handle, summaries, failure = _weir.load(form, command, classes)
    finally:
        if classes is not None:
            classes.report()
    run = Run._of(handle)
    write_summaries(summaries, failure)
    if run.interrupted:
        raise Interrupted(run)
    return run


def load_form(arguments: Mapping[str, Any], name: str) -> tuple[dict[str, object], list[str], UserScript | None]:
    """Turn the arguments of `load` into the form that Rust reads, the call for the manifest, and a script of users."""
    form: dict[str, object] = dict(arguments)
    url, headers, body, json, variables, data, data_order = (
        arguments[key] for key in ("url", "headers", "body", "json", "variables", "data", "data_order")
    )
    auth, slo, redact, check, scenario = (arguments[key] for key in ("auth", "slo", "redact", "check", "scenario"))
    if is_agent():
        raise UsageError(
            "weir.load() was called by a process of a load that imports this file; put the call under if __name__ == "
            "'__main__':"
        )
    if isinstance(url, bytes):
        raise TypeError("url: text, or classes of users, not bytes")
    driver = driver_of(arguments)
    form.update(driver.shown)
    script = driver.script
    if arguments["script"] is not None:
        variables = data = None
    for given, value in (("variables", variables), ("data", data)):
        if value is not None and scenario is not None:
            raise UsageError(f"{given} is for single requests; give it to the scenario: Scenario(..., {given}=...)")
    del form["host"]
    lines = _header_lines(headers)
    command = _call(name, load.__kwdefaults__ or {}, form | {"headers": list(lines) or None})
    is_grpc = isinstance(url, str) and is_of_calls(url)
    bodies = [message_of(one, is_grpc) for one in _bodies(body)]
    if json is not None:
        if body is not None:
            raise UsageError("body and json cannot be combined; json is a body")
        bodies = [_json_text(json)]
        is_message = is_grpc or (isinstance(url, str) and url.lower().startswith(("ws://", "wss://")))
        if not is_message and not any(line.lower().startswith("content-type:") for line in lines):
            lines.append("Content-Type: application/json")
    has_rows = variables is not None or data is not None or data_order != "circular"
    rows = Scenario("", name="", variables=variables, data=data, data_order=data_order) if has_rows else None
    for key in ("json", "variables", "data", "data_order", "processes", "env"):
        del form[key]
    form.update(driver.form)
    form.update(
        headers=lines,
        body=bodies,
        first_message=_bodies(arguments["first_message"]),
        subprotocols=_texts(arguments["subprotocols"]),
        auth=_user_and_password(auth),
        slo=[] if slo is None else [slo] if isinstance(slo, str) else slo,
        redact=_texts(redact),
        rate_from=_paths(arguments["rate_from"]),
        mix_from=_paths(arguments["mix_from"]),
        proto=_paths(arguments["proto"]),
        proto_path=_paths(arguments["proto_path"]),
        check=[] if check is None else [check] if isinstance(check, str) else check,
        scenario=[_form(one) for one in _several(scenario)],
        request_scenario=_form(rows),
    )
    return form, command, script


def _several(scenario: Scenario | Sequence[Scenario] | None) -> Sequence[Scenario]:
    if scenario is None:
        return ()
    several = tuple(scenario) if isinstance(scenario, (list, tuple)) else (scenario,)
    if not all(isinstance(one, Scenario) for one in several):
        raise UsageError(
            "scenario: write weir.Scenario(...), or a list of such; a script of k6 is script='FILE.js', one in Lua "
            "runs by 'weir load -s FILE'"
        )
    return several


def _form(scenario: Scenario | None) -> dict[str, object] | None:
    """Scenario as Rust reads it."""
    if scenario is None:
        return None
    setup, teardown = scenario.settings["setup"], scenario.settings["teardown"]
    hooks = {
        name: _form(hook) if isinstance(hook, Scenario) else None
        for name, hook in (("setup", setup), ("teardown", teardown))
    }
    return {"name": scenario.name, "text": scenario.text, **scenario.settings, **hooks}


def _bodies(
    given: _Body | Mapping[str, object] | Sequence[_Body | Mapping[str, object]] | None,
) -> Sequence[_Body | Mapping[str, object]]:
    if given is None:
        return []
    return [given] if isinstance(given, str | bytes | PathLike | Mapping) else given


def _texts(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _paths(given: _Path | Sequence[_Path] | None) -> list[_Path]:
    if given is None:
        return []
    return [given] if isinstance(given, str | PathLike) else list(given)


def _header_lines(headers: HeaderTypes | None) -> list[str]:
    lines = []
    for name, value in pairs_of(headers):
        # "a:b" would be parsed as the header "a".
        if ":" in name:
            raise UsageError(f"headers: invalid name {shown_name(name)}; write it without a colon")
        if any(c < " " and c != "\t" for c in value.strip()):
            raise UsageError(f"headers: the value of {shown_name(name)} has a control character; remove it")
        lines.append(f"{name}: {value}")
    return lines


def _user_and_password(auth: tuple[str, str] | str | None) -> str | None:
    if auth is None or isinstance(auth, str):
        return auth
    user, password = auth
    if ":" in user:
        raise UsageError("auth: invalid user; a user name has no colon")
    return f"{user}:{password}"


def _json_text(value: object) -> str:
    try:
        return json_module.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UsageError(f"json: {error}") from error


def _call(function: str, defaults: Mapping[str, object], arguments: Mapping[str, object]) -> list[str]:
    """Return a call for the manifest: arguments other than defaults. The core leaves out the secrets of the load."""
    unset = object()
    given = [name for name, value in arguments.items() if value is not defaults.get(name, unset)]
    return [function, *(f"{name}={_shown(name, arguments[name])}" for name in given)]


def _shown(name: str, value: object) -> str:
    if name == "auth":
        return "'***'"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
