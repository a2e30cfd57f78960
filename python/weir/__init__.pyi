"""Names of the package, for type checkers; at run time each is imported when it is first used."""

from weir import aiohttp as aiohttp
from weir import httpx as httpx
from weir import httpx2 as httpx2
from weir import requests as requests
from weir._async_sender import AsyncSender
from weir._call_log import CallLog
from weir._client import AsyncClient, Client
from weir._client_base import CallOptions
from weir._compare import ComparedRun, ComparedSide, ComparedStep, Comparison, Pair, Side, Verdict, compare
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
    LimiterError,
    LimiterTimeout,
    NoResponse,
    NotAccepted,
    ResponseTooLarge,
    RetriesExhausted,
    SenderEnded,
    SendError,
    SetupError,
    TimedOut,
    UsageError,
    WeirError,
)
from weir._flags import Flag
from weir._grpc_call import GrpcResponse
from weir._headers import Headers
from weir._job import Job, JobResult, JobTypes, SenderStats
from weir._limiter import Limiter
from weir._limiter_slot import LimiterSlot
from weir._llm import llm
from weir._load import Stage, load
from weir._policy import Budget, Hedge, Retry, Success
from weir._response import Attempt, Request, Response
from weir._retry import retry
from weir._retry_call import RetryAttempt
from weir._retry_record import RetryEvent, RetryStatistics
from weir._run import (
    Agent,
    Bytes,
    Change,
    Changes,
    CheckResult,
    Connections,
    EndReason,
    FailureSample,
    Http2,
    Interval,
    Iterations,
    Llm,
    LlmPoint,
    Manifest,
    Objective,
    Percentiles,
    PointTimes,
    Rate,
    Replay,
    Requests,
    Responses,
    Run,
    ScenarioResult,
    StepInterval,
    StepResult,
    StreamPoint,
    Streams,
    Target,
    Trust,
    WebSocketPoint,
    WebSockets,
)
from weir._scenario import Scenario, Step
from weir._sender import Sender
from weir._serve import Service, serve
from weir._shared import delete, get, head, options, patch, post, put, request
from weir._shared_budget import SharedBudget
from weir._simulate import Metrics, Pairing, Rank, Sample, Simulation, SimulationRun, simulate
from weir._started_load import StartedLoad, start_load
from weir._study import Study
from weir._task import tag, task
from weir._ticket import AsyncBatch, AsyncTicket, Batch, Ticket
from weir._time import Time
from weir._user import User, sleep
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
    "CallLog",
    "CallOptions",
    "Change",
    "Changes",
    "CheckResult",
    "Client",
    "ClientError",
    "ComparedRun",
    "ComparedSide",
    "ComparedStep",
    "Comparison",
    "ConnectFailed",
    "Connections",
    "DeadlineExceeded",
    "DecodingError",
    "EndReason",
    "FailureSample",
    "Flag",
    "GrpcResponse",
    "HTTPStatusError",
    "Headers",
    "Hedge",
    "Http2",
    "Interrupted",
    "Interval",
    "Iterations",
    "Job",
    "JobExpired",
    "JobFailed",
    "JobResult",
    "JobTypes",
    "Limiter",
    "LimiterError",
    "LimiterSlot",
    "LimiterTimeout",
    "Llm",
    "LlmPoint",
    "Manifest",
    "Metrics",
    "NoResponse",
    "NotAccepted",
    "Objective",
    "Pair",
    "Pairing",
    "Percentiles",
    "PointTimes",
    "Rank",
    "Rate",
    "Replay",
    "Request",
    "Requests",
    "Response",
    "ResponseTooLarge",
    "Responses",
    "RetriesExhausted",
    "Retry",
    "RetryAttempt",
    "RetryEvent",
    "RetryStatistics",
    "Run",
    "Sample",
    "Scenario",
    "ScenarioResult",
    "SendError",
    "Sender",
    "SenderEnded",
    "SenderStats",
    "Service",
    "SetupError",
    "SharedBudget",
    "Side",
    "Simulation",
    "SimulationRun",
    "Stage",
    "StartedLoad",
    "Step",
    "StepInterval",
    "StepResult",
    "StreamPoint",
    "Streams",
    "Study",
    "Success",
    "Target",
    "Ticket",
    "Time",
    "TimedOut",
    "Trust",
    "UsageError",
    "User",
    "Verdict",
    "WebSocketPoint",
    "WebSockets",
    "WeirError",
    "__version__",
    "compare",
    "delete",
    "get",
    "head",
    "llm",
    "load",
    "options",
    "patch",
    "post",
    "put",
    "request",
    "retry",
    "serve",
    "simulate",
    "sleep",
    "start_load",
    "tag",
    "task",
]
