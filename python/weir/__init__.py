"""Load tests of HTTP services, and calls and jobs that respect deadlines and rate limits.

>>> import weir
>>> run = weir.load("http://localhost:8080/", connections=50, duration="10s")  # doctest: +SKIP
>>> print(run)  # doctest: +SKIP

- `load` generates load and returns a `Run`, a typed, read-only record that prints as a report; the same from a shell is
  `weir load http://localhost:8080/ -c 50 -d 10s`. `compare` compares runs with statistics.
- `serve` starts a test server with fault injection: `with weir.serve("work") as upstream: ...`.
- `simulate` simulates overload protection in virtual time.
- `Client` and `AsyncClient` make calls with deadlines, hedging and retries; `get`, `post` and so on do so through one
  shared client.
- `Sender` and `AsyncSender` deliver jobs through the rate limits of a service.
"""

from weir._async_sender import AsyncSender
from weir._client import AsyncClient, Client
from weir._client_base import CallOptions
from weir._compare import ComparedRun, ComparedSide, Comparison, Pair, Side, Verdict, compare
from weir._errors import (
    AllAttemptsFailed,
    ClientError,
    ConnectFailed,
    DeadlineExceeded,
    DecodingError,
    HTTPStatusError,
    Interrupted,
    JobExpired,
    JobFailed,
    NotAccepted,
    SenderEnded,
    SendError,
    SetupError,
    TimedOut,
    UsageError,
    WeirError,
)
from weir._flags import Flag
from weir._headers import Headers
from weir._job import Job, JobResult, JobTypes, SenderStats
from weir._load import Stage, Time, load
from weir._policy import Budget, Hedge, Retry, Success
from weir._response import Attempt, Request, Response
from weir._run import (
    Agent,
    Bytes,
    Connections,
    Interval,
    Manifest,
    Objective,
    Percentiles,
    Rate,
    Requests,
    Responses,
    Run,
    Target,
    Trust,
)
from weir._sender import Sender
from weir._serve import Service, serve
from weir._shared import delete, get, head, options, patch, post, put, request
from weir._simulate import Metrics, Pairing, Rank, Sample, Simulation, SimulationRun, simulate
from weir._ticket import AsyncBatch, AsyncTicket, Batch, Ticket
from weir._weir import __version__

__all__ = [
    "Agent",
    "AllAttemptsFailed",
    "AsyncBatch",
    "AsyncClient",
    "AsyncSender",
    "AsyncTicket",
    "Attempt",
    "Batch",
    "Budget",
    "Bytes",
    "CallOptions",
    "Client",
    "ClientError",
    "ComparedRun",
    "ComparedSide",
    "Comparison",
    "ConnectFailed",
    "Connections",
    "DeadlineExceeded",
    "DecodingError",
    "Flag",
    "HTTPStatusError",
    "Headers",
    "Hedge",
    "Interrupted",
    "Interval",
    "Job",
    "JobExpired",
    "JobFailed",
    "JobResult",
    "JobTypes",
    "Manifest",
    "Metrics",
    "NotAccepted",
    "Objective",
    "Pair",
    "Pairing",
    "Percentiles",
    "Rank",
    "Rate",
    "Request",
    "Requests",
    "Response",
    "Responses",
    "Retry",
    "Run",
    "Sample",
    "SendError",
    "Sender",
    "SenderEnded",
    "SenderStats",
    "Service",
    "SetupError",
    "Side",
    "Simulation",
    "SimulationRun",
    "Stage",
    "Success",
    "Target",
    "Ticket",
    "Time",
    "TimedOut",
    "Trust",
    "UsageError",
    "Verdict",
    "WeirError",
    "__version__",
    "compare",
    "delete",
    "get",
    "head",
    "load",
    "options",
    "patch",
    "post",
    "put",
    "request",
    "serve",
    "simulate",
]
