"""Find out how much load an HTTP service can take.

>>> import weir
>>> run = weir.load("http://localhost:8080/", connections=50, duration="10s")  # doctest: +SKIP
>>> print(run)  # doctest: +SKIP

`load` drives a service and returns a `Run`: a typed, read-only record that prints as a report. The same load from a
shell is `weir load http://localhost:8080/ -c 50 -d 10s`. `serve` starts services that misbehave on purpose, to try
clients against: `with weir.serve("work") as upstream: ...`. `simulate` shows in virtual time what protection
from overload does. `compare` says whether one side of runs is worse than another. `Client` and `AsyncClient` make calls
that have an answer in time, whatever the upstream does; `get`, `post` and so on do so through one that is shared.
`Sender` and `AsyncSender` deliver jobs through the rate
limits of a service.
"""

from weir._async_sender import AsyncSender
from weir._client import AsyncClient, Client, Limits
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
    Manifest,
    Objective,
    Point,
    Rate,
    Requests,
    Responses,
    Run,
    Spread,
    Target,
    Trust,
)
from weir._sender import Sender
from weir._serve import Service, serve
from weir._shared import delete, get, head, options, patch, post, put, request
from weir._simulate import Duel, Figures, Moment, Simulation, SimulationRun, Standing, simulate
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
    "Client",
    "ClientError",
    "ComparedRun",
    "ComparedSide",
    "Comparison",
    "ConnectFailed",
    "Connections",
    "DeadlineExceeded",
    "DecodingError",
    "Duel",
    "Figures",
    "Flag",
    "HTTPStatusError",
    "Headers",
    "Hedge",
    "Interrupted",
    "Job",
    "JobExpired",
    "JobFailed",
    "JobResult",
    "JobTypes",
    "Limits",
    "Manifest",
    "Moment",
    "NotAccepted",
    "Objective",
    "Pair",
    "Point",
    "Rate",
    "Request",
    "Requests",
    "Response",
    "Responses",
    "Retry",
    "Run",
    "SendError",
    "Sender",
    "SenderEnded",
    "SenderStats",
    "Service",
    "SetupError",
    "Side",
    "Simulation",
    "SimulationRun",
    "Spread",
    "Stage",
    "Standing",
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
