"""What both senders share: options, what is waited for, and callbacks."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from time import monotonic
from typing import Any, Final, Literal

from weir import _weir
from weir._errors import SenderEnded, UsageError
from weir._headers import HeaderTypes
from weir._job import Job, JobTypes, Result, Tally
from weir._load import Time
from weir._ticket import Ticket

__all__ = ["ACCEPTED", "ANY", "FRONT", "MORE", "Base", "Calls", "call", "chunks"]

# What is waited for, as Rust knows it; a place in the group waits for that job.
ACCEPTED: Final = -1
ANY: Final = -2
FRONT: Final = -3
MORE: Final = -4

# So many jobs are submitted together, and so long they may take to come together.
_MOST_TOGETHER: Final = 512
_TOGETHER_S: Final = 0.002

_log = logging.getLogger("weir")


class Base:
    """What both senders share: options, and what needs no waiting."""

    def __init__(
        self,
        url: str | None = None,
        *,
        keys: str | Iterable[str] | Mapping[str, str] = (),
        limits: str | Iterable[str] = (),
        weight_limits: str | Iterable[str] = (),
        delay_bound: Time | Literal["learn"] | None = "learn",
        ordered: bool = False,
        method: str | None = None,
        headers: HeaderTypes | None = None,
        timeout: Time = 30.0,
        verify: bool | str | PathLike[str] = True,
        fresh: bool = False,
        concurrency: int = 256,
        success: int | str | Iterable[int | str] | None = "200-299",
        store: str | PathLike[str] | None = None,
        queue: int | None = None,
        queue_bytes: int | None = None,
        ttl: Time | None = None,
        retries: int = 5,
        backoff: Time = 0.5,
        longest_backoff: Time = 60.0,
        give_up_after: Time | None = None,
        renew_expired: bool = False,
        order: Literal["deadline", "arrival"] = "deadline",
        at_most_once: bool = False,
        grace: float = 5.0,
        on_result: Callable[[Result], object] | None = None,
    ) -> None:
        """Open the store and begin to send what is in it.

        Args:
            url: Where jobs go that do not say it, and the host of those that name a path. URLs, header values and
                bodies may have the fields ``{key}``, ``{nonce}`` and ``{id}``.
            keys: The keys, in place of ``{key}``; each has the limits for itself. A mapping gives them names.
            limits: So many requests per time for each key at each host: ``"20/1s"``, ``["100/1m", "concurrency:5"]``;
                all hold. Of one host alone: ``"host=api.example.com 20/1s"``. Without any, a sustainable pace is learnt
                from responses; ``"none"`` is unlimited.
            weight_limits: So much weight per time for each key at each host: ``"30000/1m"`` tokens, for example.
            delay_bound: The longest way of a request to the service; ``"learn"``, or None: only an answer tells that
                a request has arrived.
            ordered: Whether the requests of a key have to arrive in the order of their nonces.
            method: The method; GET, or POST with a body.
            headers: Headers of all jobs.
            timeout: A request without an answer after so long has failed.
            verify: Whether to check certificates; or a PEM file of those to trust, in place of the system's.
            fresh: Whether each request has a connection of its own.
            concurrency: At most so many requests without an answer.
            success: Statuses of success: ``"200-299,404"``, ``(200, 404)``, ``"2xx"``; None for any.
            store: What keeps jobs over crashes and restarts: a file, or a queue on a Redis server that several senders
                share (``"redis://host:6379?queue=orders"``); None keeps them in memory.
            queue: Who submits waits while so many jobs are to be delivered. Default: 100,000 in memory; no bound in a
                file.
            queue_bytes: The same by their size. Default: 256 MiB in memory.
            ttl: A job is of use for so long; None is for ever.
            retries: Tries after the first that failed while others at that host were answered; nothing else is a try.
            backoff: How long a job waits that has failed, at first; then twice as long each time. A host that is down
                is tried as often.
            longest_backoff: No wait is longer.
            give_up_after: The jobs of a host that has answered nobody for so long end in the graveyard; None: they
                wait for it.
            renew_expired: Whether jobs that expire get `ttl` once more and go on, `retries` times.
            order: Who goes first: who expires first (``"deadline"``), or who came first (``"arrival"``).
            at_most_once: Whether what may have been sent before a crash goes to the graveyard, and not out again.
            grace: How many seconds answers have that are out when a block is left with an error.
            on_result: Is called with the result of each job, also of those that an earlier process has submitted.

        Raises:
            UsageError: A value makes no sense.
            SetupError: The store cannot be opened, or another process sends from it.
        """
        self._closed = True
        self._handle = _weir.SenderHandle(
            {
                "url": url,
                "keys": dict(keys) if isinstance(keys, Mapping) else keys,
                "limits": limits,
                "weight_limits": weight_limits,
                "delay_bound": delay_bound,
                "ordered": ordered,
                "method": method,
                "headers": headers,
                "timeout": timeout,
                "cacert": None if isinstance(verify, bool) else fspath(verify),
                "insecure": verify is False,
                "fresh": fresh,
                "concurrency": concurrency,
                "success": success,
                "store": store,
                "queue": queue,
                "queue_bytes": queue_bytes,
                "ttl": ttl,
                "retries": retries,
                "backoff": backoff,
                "longest_backoff": longest_backoff,
                "give_up_after": give_up_after,
                "renew_expired": renew_expired,
                "order": order,
                "at_most_once": at_most_once,
            }
        )
        self._closed = False
        self._grace = grace
        self._on_result = on_result
        # A program that ends, or lets go of its sender, waits for no answers.
        self._abandon = weakref.finalize(self, self._handle.abandon)
        self._set_up()

    def _set_up(self) -> None:
        """Make what only this kind of sender has."""

    def __del__(self) -> None:
        """Tell whoever looks for it that nobody has closed it."""
        if not getattr(self, "_closed", True):
            why = f"unclosed {type(self).__name__}; use it in a with block"
            warnings.warn(why, ResourceWarning, stacklevel=2, source=self)

    @property
    def is_closed(self) -> bool:
        """Whether it takes no more jobs."""
        return self._closed

    @property
    def recovered(self) -> tuple[int, int]:
        """How many jobs a sender before it had in hand when it crashed, and how many of them may have been sent."""
        return self._handle.recovered

    def tally(self) -> Tally:
        """Return where it is, and what it has done since it was made."""
        return Tally(**self._handle.stats())

    def _group(self) -> _weir.GroupHandle:
        if self._closed:
            raise UsageError("the sender is closed; make a new one")
        return _weir.GroupHandle(self._handle)

    def _ended(self) -> None:
        """Let go of all that is behind it."""
        self._abandon.detach()
        why = self._handle.join()
        if why is not None:
            raise SenderEnded(why)


class Calls:
    """Calls callbacks on a thread of its own, which is there once there are any."""

    def __init__(self, handle: _weir.SenderHandle, on_result: Callable[[Result], object] | None) -> None:
        self._handle = handle
        self._on_result = on_result
        self._lock = threading.Lock()
        self._waiting: dict[int, list[tuple[Ticket, Callable[[Ticket], object]]]] = {}
        self._thread: threading.Thread | None = None
        if on_result is not None:
            self._start()

    def add(self, ticket: Ticket, callback: Callable[[Ticket], object]) -> None:
        number = ticket.number
        with self._lock:
            self._start()
            self._waiting.setdefault(number, []).append((ticket, callback))
        if ticket.done():
            # It may have been before anybody listened.
            self._ended(number)

    def join(self) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(self._handle.all(),), name="weir-results", daemon=True
            )
            self._thread.start()

    def _run(self, group: _weir.GroupHandle) -> None:
        with contextlib.suppress(SenderEnded):
            while group.wait(MORE, None):
                for outcome in group.take_ended():
                    result = Result(outcome)
                    if self._on_result is not None:
                        call(self._on_result, result)
                    self._ended(result.number)
        for number in list(self._waiting):
            self._ended(number)

    def _ended(self, number: int) -> None:
        with self._lock:
            calls = self._waiting.pop(number, ())
        for ticket, callback in calls:
            call(callback, ticket)


def call(callback: Callable[[Any], object], argument: object) -> None:
    try:
        callback(argument)
    except Exception:
        _log.exception("a callback has failed: %r", callback)


def chunks(jobs: Iterable[JobTypes]) -> Iterator[list[JobTypes]]:
    """Take jobs together: many if they come quickly, and each for itself if one has to wait for them."""
    if isinstance(jobs, str | Job) or not isinstance(jobs, Iterable):
        raise TypeError(f"jobs: several of them, not {type(jobs).__name__}")
    most, chunk, since = 1, [], monotonic()
    for job in jobs:
        chunk.append(job)
        is_slow = monotonic() - since > _TOGETHER_S
        if is_slow or len(chunk) >= most:
            yield chunk
            most = 1 if is_slow else min(2 * most, _MOST_TOGETHER)
            chunk, since = [], monotonic()
    if chunk:
        yield chunk
