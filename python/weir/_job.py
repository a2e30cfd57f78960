"""Jobs of a sender, and their results."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from weir._errors import JobExpired, JobFailed
from weir._headers import HeaderTypes
from weir._json_text import parsed
from weir._redaction import representation
from weir._request import Params
from weir._time import Time

if TYPE_CHECKING:
    from typing_extensions import Self

    from weir import _weir

__all__ = ["Job", "JobOptions", "JobResult", "JobTypes", "SenderStats"]


class JobOptions(TypedDict, total=False):
    """Fields of a job besides its URL; the sender has the defaults. See `Job`."""

    json: Any
    content: str | bytes | None
    data: Params | None
    headers: HeaderTypes | None
    method: str | None
    id: str | int | None
    ttl: Time | None
    weight: int | None
    priority: int | None
    pinned_key: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Job:
    """One HTTP request to deliver. Fields that are left out have the sender's values.

    >>> sender.map(weir.Job(json={"amount": n}, id=f"order-{n}") for n in range(1000))

    Its parts are data and are sent as they are; the sender's URL and headers are templates with the fields ``{key}``,
    ``{nonce}`` and ``{id}``. See `url_fields` and `body_fields` of `Sender`.

    Attributes:
        url: Request URL; one that begins with ``/`` is at the host of the sender's.
        json: Body, as JSON.
        content: Body, as text or bytes.
        data: Body, as the fields of a form.
        headers: Headers; they replace the sender's of the same name.
        method: Request method. Default: the sender's, else GET, or POST with a body.
        id: Job ID, unique in a store: submitting it again returns the first one's result, and it is not sent twice.
        ttl: Time to live from now.
        weight: Weight in a weight limit: tokens, for example. Default: 1.
        priority: Priority; higher is sent first, a step counts as 10 s of waiting. Default: 0.
        pinned_key: The only API key that may send it: one of the sender's, or its name.
    """

    __module__ = "weir"

    url: str | None = None
    json: Any = None
    content: str | bytes | None = None
    data: Params | None = None
    headers: HeaderTypes | None = None
    method: str | None = None
    id: str | int | None = None
    ttl: Time | None = None
    weight: int | None = None
    priority: int | None = None
    pinned_key: str | None = None

    def __repr__(self) -> str:
        """Return the fields; secrets are hidden."""
        return representation(self)


JobTypes: TypeAlias = Job | Mapping[str, Any] | str
"""A job, a mapping with the names of a job's fields, or a URL."""


class JobResult:
    """Result of a job; its parts are converted on access.

    A job that was not delivered has a result, too: see `ok` and `raise_for_state`.
    """

    __module__ = "weir"
    __slots__ = ("_outcome",)

    def __init__(self, outcome: _weir.JobResultHandle) -> None:
        """Wrap a result of the core; senders create them."""
        self._outcome = outcome

    def __repr__(self) -> str:
        """Return ID or number, state, and status or failure."""
        name = self.id if self.id is not None else self.number
        end = self.status if self.ok else self.failure
        return f"<weir.JobResult {name} {self.state}: {end}>"

    @property
    def id(self) -> str | None:
        """Job ID; None without one."""
        return self._outcome.id

    @property
    def number(self) -> int:
        """Number of the job in the store."""
        return self._outcome.number

    @property
    def state(self) -> Literal["done", "dead_lettered", "expired"]:
        """``"done"``: delivered; ``"dead_lettered"``: failed permanently; ``"expired"``: its time to live ended."""
        return self._outcome.state

    @property
    def ok(self) -> bool:
        """Whether the job was delivered."""
        return self._outcome.state == "done"

    @property
    def status(self) -> int | None:
        """Status of the last response; None without one."""
        return self._outcome.status

    @property
    def content(self) -> bytes:
        """Body of the last response; empty without one."""
        return self._outcome.body

    @property
    def text(self) -> str:
        """Body as UTF-8; invalid bytes become U+FFFD."""
        return self.content.decode(errors="replace")

    def json(self, **options: Any) -> Any:
        """Parse the body as JSON; options go to `json.loads`.

        Returns:
            The parsed value.

        Raises:
            json.JSONDecodeError: The body is not JSON.
        """
        return parsed(self.content, options)

    @property
    def failure(self) -> str | None:
        """Reason why it was not delivered; None if it was."""
        return self._outcome.failure

    @property
    def attempts(self) -> int:
        """Number of attempts."""
        return self._outcome.attempts

    @property
    def last_key(self) -> str | None:
        """Name of the API key of the last attempt: its last characters and a hash, or its name in ``keys``."""
        return self._outcome.last_key

    @property
    def maybe_sent(self) -> bool:
        """Whether it may also have been sent before a crash."""
        return self._outcome.maybe_sent

    @property
    def created_ms(self) -> int:
        """Time of submission, in milliseconds since 1970."""
        return self._outcome.created_ms

    @property
    def sent_ms(self) -> int | None:
        """Time of the last attempt, in milliseconds since 1970."""
        return self._outcome.sent_ms

    @property
    def ended_ms(self) -> int:
        """Time of the end, in milliseconds since 1970."""
        return self._outcome.ended_ms

    @property
    def response_ms(self) -> int:
        """Time from submission to end, in milliseconds."""
        return self.ended_ms - self.created_ms

    @property
    def service_ms(self) -> float | None:
        """Time from the last attempt to its response, in milliseconds; None if another process sent it, or none did."""
        return self._outcome.service_ms

    def raise_for_state(self) -> Self:
        """Raise an error unless the job was delivered.

        Returns:
            The result itself.

        Raises:
            JobExpired: Its time to live ended.
            JobFailed: It was dead-lettered.
        """
        if self.ok:
            return self
        name = f"job {self.id if self.id is not None else self.number}"
        if self.state == "expired":
            raise JobExpired(f"{name} expired: {self.failure}", self)
        raise JobFailed(f"{name} failed: {self.failure}", self)

    def to_dict(self) -> dict[str, Any]:
        """Convert to the result line of ``weir send``.

        Returns:
            The fields of the line.
        """
        line: dict[str, Any] = {"id": self.id, "state": self.state, "status": self.status}
        if self.status is not None:
            try:
                line["body"] = self.content.decode()
            except UnicodeDecodeError:
                line["body_base64"] = b64encode(self.content).decode()
        if self.failure is not None:
            line["failure"] = self.failure
        line["attempts"] = self.attempts
        if self.maybe_sent:
            line["maybe_sent"] = True
        names = ("last_key", "created_ms", "sent_ms", "ended_ms", "service_ms")
        return line | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderStats:
    """Counters of a sender since its start, and its current state.

    Attributes:
        done: Delivered jobs.
        dead_lettered: Jobs that failed permanently.
        expired: Jobs whose time to live ended.
        failed: Requests without success.
        retried: Attempts after the first of a job.
        rejected: Rejected requests, by status: 429 (rate-limited) and 400 (overtaken nonce, or another mistake).
        queued: Jobs that wait to be sent.
        leased: Jobs that a sender has leased.
        retrying: Failed jobs that wait for their next attempt.
        in_flight: Requests in flight.
        delay_bound_ms: Maximum one-way delay to the service, in milliseconds; None if it is unknown.
        disabled_keys: Reasons why API keys were disabled, by name.
        paused: Pauses of keys by ``Retry-After`` or a rate-limit reset: key, end, header and host, in words.
        limited_by: What kept the next job from being sent for most of the last second: ``"rate_limit"``,
            ``"weight_limit"``, ``"concurrency_limit"``, ``"learned_rate"``, ``"learned_concurrency"``,
            ``"reported_quota"``, ``"ordered"``, ``"pause"``, ``"max_concurrency"``, ``"host_speed"``,
            ``"host_down"``, ``"keys"``, ``"retries"``, or ``"jobs"`` when none is left to send; None if nothing did.
    """

    __module__ = "weir"

    done: int
    dead_lettered: int
    expired: int
    failed: int
    retried: int
    rejected: Mapping[int, int]
    queued: int
    leased: int
    retrying: int
    in_flight: int
    delay_bound_ms: float | None
    disabled_keys: Mapping[str, str]
    paused: Sequence[str]
    limited_by: str | None
