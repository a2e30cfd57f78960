"""Names of the package, for type checkers; at run time each is imported when it is first used."""

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
from weir._load import Stage, load
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
from weir._scenario import RowOrder, Scenario, Step
from weir._sender import Sender
from weir._serve import Service, serve
from weir._shared import delete, get, head, options, patch, post, put, request
from weir._simulate import Metrics, Pairing, Rank, Sample, Simulation, SimulationRun, simulate
from weir._ticket import AsyncBatch, AsyncTicket, Batch, Ticket
from weir._time import Time
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
    "RowOrder",
    "Run",
    "Sample",
    "Scenario",
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
    "Step",
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
