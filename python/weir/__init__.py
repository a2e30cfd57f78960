"""Load tests of HTTP services, and calls and jobs that respect deadlines and rate limits.

>>> import weir
>>> run = weir.load("http://localhost:8080/", connections=50, duration="10s")  # doctest: +SKIP
>>> print(run)  # doctest: +SKIP

- `load` generates load and returns a `Run`, a typed, read-only record that prints as a report; the same from a shell is
  `weir load http://localhost:8080/ -c 50 -d 10s`. `Scenario` and `Step` are what users do in place of one request.
  `compare` compares runs with statistics.
- `start_load` starts a load that is changed while it runs: a `StartedLoad`.
- `serve` starts a test server with fault injection: `with weir.serve("work") as upstream: ...`.
- `simulate` simulates overload protection in virtual time.
- `Client` and `AsyncClient` make calls with deadlines, hedging and retries; `get`, `post` and so on do so through one
  shared client.
- `retry` puts retries around any function or block. `weir.aiohttp` has a middleware for sessions of aiohttp.
- `Limiter` keeps any code within rate limits, over threads, tasks, processes and machines.
- `Sender` and `AsyncSender` deliver jobs through the rate limits of a service.
- The modules `weir.httpx2`, `weir.httpx` and `weir.requests` have the policies of `Client` as transports of these
  libraries, which each of them imports.

For pytest, which has a plugin here (`weir.pytest_plugin`): PYTEST_DONT_REWRITE.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

_NAMES = {
    module: tuple(names.split())
    for module, names in {
        "_async_sender": "AsyncSender",
        "_client": "AsyncClient Client",
        "_call_log": "CallLog",
        "_client_base": "CallOptions",
        "_compare": "ComparedRun ComparedSide ComparedStep Comparison Pair Side Verdict compare",
        "_errors": (
            "AllAttemptsFailed ClientError ConnectFailed DeadlineExceeded DecodingError HTTPStatusError "
            "Interrupted JobExpired JobFailed LimiterError LimiterTimeout NoResponse NotAccepted ResponseTooLarge "
            "RetriesExhausted SenderEnded SendError SetupError TimedOut UsageError WeirError"
        ),
        "_flags": "Flag",
        "_headers": "Headers",
        "_job": "Job JobResult JobTypes SenderStats",
        "_limiter": "Limiter",
        "_limiter_slot": "LimiterSlot",
        "_llm": "llm",
        "_load": "Stage load",
        "_policy": "Budget Hedge Retry Success",
        "_response": "Attempt Request Response",
        "_retry": "retry",
        "_retry_call": "RetryAttempt",
        "_retry_record": "RetryEvent RetryStatistics",
        "_run": (
            "Agent Bytes CheckResult Connections Change Changes EndReason FailureSample Http2 Interval Iterations "
            "Llm LlmPoint Manifest Objective Percentiles PointTimes Rate Replay ReplayedTrace Requests Responses "
            "Run ScenarioResult Script ScriptCheck ScriptException ScriptMetric StepInterval StepResult "
            "StreamPoint Streams Target TracedClient Trust WebSocketPoint WebSockets"
        ),
        "_scenario": "Scenario Step",
        "_sender": "Sender",
        "_serve": "Service serve",
        "_shared": "delete get head options patch post put request",
        "_shared_budget": "SharedBudget",
        "_simulate": "Metrics Pairing Rank Sample Simulation SimulationRun simulate",
        "_started_load": "StartedLoad start_load",
        "_study": "Study",
        "_task": "tag task",
        "_ticket": "AsyncBatch AsyncTicket Batch Ticket",
        "_time": "Time",
        "_grpc_call": "GrpcResponse",
        "_user": "User sleep",
        "_weir": "__version__",
    }.items()
}
"""Modules and the public names that they define. A module is imported when one of its names is first used, since all
together take ten times as long as any program needs of them; `__init__.pyi` has the names for type checkers."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)  # noqa: PLE0605


_LIBRARIES = frozenset({"aiohttp", "httpx", "httpx2", "requests"})
"""Modules with the names of the libraries that they are for; imported when they are first used."""


def __getattr__(name: str) -> _Any:
    if name in _LIBRARIES:
        return _import_module(f"weir.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'weir' has no attribute {name!r}")
    value = getattr(_import_module(f"weir.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
