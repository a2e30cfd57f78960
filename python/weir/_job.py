"""Jobs of a sender, and what became of them."""

from __future__ import annotations

import json as json_module
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from weir._errors import JobExpired, JobFailed
from weir._headers import HeaderTypes
from weir._load import Time
from weir._request import Params

if TYPE_CHECKING:
    from typing_extensions import Self

    from weir import _weir

__all__ = ["Job", "JobOptions", "JobTypes", "Result", "Tally"]


class JobOptions(TypedDict, total=False):
    """What a job says for itself; its sender has the rest. See `Job`."""

    json: Any
    content: str | bytes | None
    data: Params | None
    headers: HeaderTypes | None
    method: str | None
    id: str | int | None
    ttl: Time | None
    weight: int | None
    priority: int | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Job:
    """One request to deliver. What it leaves out is its sender's.

    >>> sender.map(weir.Job(json={"amount": n}, id=f"order-{n}") for n in range(1000))

    URLs, header values and bodies may have the fields ``{key}``, ``{nonce}`` and ``{id}``, which are filled in when it
    is sent.
    """

    __module__ = "weir"

    url: str | None = None
    """Where it goes; one that begins with ``/`` is at the host of the sender's."""
    json: Any = None
    """A body, as JSON."""
    content: str | bytes | None = None
    """A body, as it is."""
    data: Params | None = None
    """A body: the fields of a form."""
    headers: HeaderTypes | None = None
    """They take the place of the sender's of the same name."""
    method: str | None = None
    """GET, or POST with a body, unless the sender says otherwise."""
    id: str | int | None = None
    """Its name. A store has a name once: who submits it again has the first one's result, and it is not sent twice."""
    ttl: Time | None = None
    """It is of use for so long from now on."""
    weight: int | None = None
    """What it counts in a weight limit: tokens, for example. Default: 1."""
    priority: int | None = None
    """Higher goes first; a step counts as 10 s of waiting. Default: 0."""
    key: str | None = None
    """The one key that may send it: one of the sender's, or its name."""


JobTypes: TypeAlias = Job | Mapping[str, Any] | str
"""A job, a mapping with the names of a job's fields, or a URL."""


class Result:
    """What became of a job. Its parts are made when they are asked for.

    A job that was not delivered is a result, too: see `ok`, or `raise_for_state`.
    """

    __module__ = "weir"
    __slots__ = ("_outcome",)

    def __init__(self, outcome: _weir.JobResultHandle) -> None:
        """Wrap an outcome of Rust's; senders make them."""
        self._outcome = outcome

    def __repr__(self) -> str:
        """Say what became of which job."""
        name = self.id if self.id is not None else self.number
        end = self.status if self.ok else self.failure
        return f"<weir.Result {name} {self.state}: {end}>"

    @property
    def id(self) -> str | None:
        """The job's name, if it was given one."""
        return self._outcome.id

    @property
    def number(self) -> int:
        """The store's number for the job."""
        return self._outcome.number

    @property
    def state(self) -> Literal["done", "graveyard", "expired"]:
        """``"done"``: delivered; ``"graveyard"``: failed for good; ``"expired"``: its time was over."""
        return self._outcome.state

    @property
    def ok(self) -> bool:
        """Whether it was delivered."""
        return self._outcome.state == "done"

    @property
    def status(self) -> int | None:
        """The last answer's status; None without an answer."""
        return self._outcome.status

    @property
    def content(self) -> bytes:
        """The last answer's body; empty without an answer."""
        return self._outcome.body

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none becomes U+FFFD."""
        return self.content.decode(errors="replace")

    def json(self, **options: Any) -> Any:
        """Read the body as JSON; options go to `json.loads`.

        Raises:
            json.JSONDecodeError: It is none.
        """
        return json_module.loads(self.content, **options)

    @property
    def failure(self) -> str | None:
        """Why it was not delivered; None if it was."""
        return self._outcome.failure

    @property
    def attempts(self) -> int:
        """How often it was sent."""
        return self._outcome.attempts

    @property
    def key(self) -> str | None:
        """The name of the key that it was sent by last: its last characters and a hash."""
        return self._outcome.key

    @property
    def maybe_sent(self) -> bool:
        """Whether it may have been sent before a crash, too."""
        return self._outcome.maybe_sent

    @property
    def created_ms(self) -> int:
        """When it was submitted, in milliseconds since 1970."""
        return self._outcome.created_ms

    @property
    def sent_ms(self) -> int | None:
        """When it was sent last, in milliseconds since 1970."""
        return self._outcome.sent_ms

    @property
    def ended_ms(self) -> int:
        """When it came to its end, in milliseconds since 1970."""
        return self._outcome.ended_ms

    @property
    def response_ms(self) -> int:
        """From its submission to its end."""
        return self.ended_ms - self.created_ms

    @property
    def service_ms(self) -> float | None:
        """From the last sending to its answer; None if it was never sent, or by a process before this one."""
        return self._outcome.service_ms

    def raise_for_state(self) -> Self:
        """Return the result if the job was delivered.

        Raises:
            JobExpired: Its time was over.
            JobFailed: It failed for good.
        """
        if self.ok:
            return self
        name = f"job {self.id if self.id is not None else self.number}"
        if self.state == "expired":
            raise JobExpired(f"{name} expired: {self.failure}", self)
        raise JobFailed(f"{name} failed: {self.failure}", self)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `weir send` writes as a line."""
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
        names = ("key", "created_ms", "sent_ms", "ended_ms", "service_ms")
        return line | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Where a sender is, and what it has done since it was made."""

    __module__ = "weir"

    done: int
    """Jobs that were delivered."""
    graveyard: int
    """Jobs that failed for good."""
    expired: int
    """Jobs whose time was over."""
    failed: int
    """Requests without success."""
    retried: int
    """Requests after the first of a job that has ended."""
    refused: Mapping[int, int]
    """Requests that were refused, by status: 429 (too many) and 400 (the nonce was overtaken, or another mistake)."""
    queued: int
    """Jobs that wait."""
    leased: int
    """Jobs in the sender's hands."""
    dead: int
    """Dead letters: jobs that failed and wait for their next try."""
    out: int
    """Requests without an answer, a moment ago."""
    delay_bound_ms: float | None
    """The longest way to the service that is reckoned with; None: only answers count."""
    lost_keys: Mapping[str, str]
    """Keys that the service takes no more, by their names, and why."""
