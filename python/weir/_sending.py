"""Base of both senders: options, conditions of waits, and callbacks."""

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
from weir._job import Job, JobResult, JobTypes, SenderStats
from weir._ticket import Ticket
from weir._time import Time

__all__ = ["ACCEPTED", "ANY", "FRONT", "MORE", "Base", "Calls", "Stream", "call", "chunks"]

# Conditions of a wait, by the codes of the core; an index from 0 waits for that job.
ACCEPTED: Final = -1
ANY: Final = -2
FRONT: Final = -3
MORE: Final = -4

# Maximum jobs of a chunk, and maximum time to collect one.
_MAX_CHUNK_JOBS: Final = 512
_MAX_CHUNK_S: Final = 0.002

_log = logging.getLogger("weir")


class Base:
    """Base of both senders: options, and methods that do not wait."""

    def __init__(
        self,
        url: str | None = None,
        *,
        keys: str | Iterable[str] | Mapping[str, str] = (),
        key_hosts: str | Iterable[str] = (),
        limits: str | Iterable[str] = (),
        weight_limits: str | Iterable[str] = (),
        delay_bound: Time | Literal["learn"] | None = "learn",
        ordered: bool = False,
        max_pause: Time = 3600.0,
        method: str | None = None,
        headers: HeaderTypes | None = None,
        url_fields: bool = False,
        body_fields: bool = False,
        timeout: Time = 30.0,
        verify: bool | str | PathLike[str] = True,
        keepalive: bool = True,
        max_concurrency: int = 256,
        success: int | str | Iterable[int | str] | None = "200-299",
        store: str | PathLike[str] | None = None,
        max_queue: int | None = None,
        max_queue_bytes: int | None = None,
        ttl: Time | None = None,
        retries: int = 5,
        backoff: tuple[Time, Time] = (0.5, 60.0),
        give_up_after: Time | None = None,
        renew_expired: bool = False,
        order: Literal["deadline", "arrival"] = "deadline",
        at_most_once: bool = False,
        grace: float = 5.0,
        on_result: Callable[[JobResult], object] | None = None,
    ) -> None:
        """Open the store and start sending its jobs.

        Args:
            url: Default URL, and the host of jobs whose URL begins with ``/``; a template with the fields ``{key}``,
                ``{nonce}`` and ``{id}``.
            keys: API keys, filled in as ``{key}``; limits are per key. A mapping gives them names.
            key_hosts: Other hosts that may have the keys and default credentials: ``"host"``, ``"host:port"`` or
                ``"https://host"``. Default: only the origin of `url`.
            limits: Rate limits of each key at each host: ``"20/1s"``, ``["100/1m", "concurrency:5"]``; all apply. Of
                one host: ``"host=api.example.com 20/1s"``. Default: learned from responses; ``"none"`` is unlimited.
            weight_limits: The same for the jobs' weights: ``"30000/1m"`` tokens, for example.
            delay_bound: Maximum one-way delay to the service; ``"learn"``, or None if only a response shows that a
                request has arrived.
            ordered: Whether requests of a key arrive in nonce order.
            max_pause: Longest pause of a key by ``Retry-After`` or a reset.
            method: Request method. Default: GET, or POST with a body.
            headers: Headers of all jobs; their values are templates.
            url_fields: Whether the URLs of jobs are templates; otherwise they are sent as they are.
            body_fields: Whether the bodies of jobs are templates; otherwise they are sent byte for byte.
            timeout: Timeout of a request.
            verify: Whether certificates are verified; or a PEM file of CA certificates to trust, instead of the
                system's.
            keepalive: Whether connections are reused.
            max_concurrency: Maximum requests in flight.
            success: Statuses of success: ``"200-299,404"``, ``(200, 404)``, ``"2xx"``; None for any.
            store: Job store: a file, or a queue on a Redis server that several senders share
                (``"redis://host:6379?queue=orders"``); None is memory.
            max_queue: Maximum open jobs; submission waits above it. Default: 100,000 in memory, unlimited in a file.
            max_queue_bytes: Maximum size of open jobs. Default: 256 MiB in memory, unlimited in a file.
            ttl: Time to live of a job; None is unlimited.
            retries: Maximum retries per job; only failures while the host responded to others count.
            backoff: First and longest wait before a retry, doubling; also bounds the probes of a down host.
            give_up_after: Time until a down host's jobs are dead-lettered; None is never.
            renew_expired: Whether expired jobs get `ttl` again, at most `retries` times.
            order: ``"deadline"``: earliest deadline first; ``"arrival"``: first in, first out.
            at_most_once: Whether jobs that a crashed process may have sent are dead-lettered instead of sent again.
            grace: Graceful-shutdown timeout for requests in flight, in seconds, when a block is left with an error.
            on_result: Callback for the result of each job, those of earlier processes included.

        Raises:
            UsageError: A value is invalid.
            SetupError: The store cannot be opened, or another process sends from it.
        """
        self._closed = True
        self._handle = _weir.SenderHandle(
            {
                "url": url,
                "keys": dict(keys) if isinstance(keys, Mapping) else keys,
                "key_hosts": key_hosts,
                "limits": limits,
                "weight_limits": weight_limits,
                "delay_bound": delay_bound,
                "ordered": ordered,
                "max_pause": max_pause,
                "method": method,
                "headers": headers,
                "url_fields": url_fields,
                "body_fields": body_fields,
                "timeout": timeout,
                "cacert": None if isinstance(verify, bool) else fspath(verify),
                "insecure": verify is False,
                "keepalive": keepalive,
                "max_concurrency": max_concurrency,
                "success": success,
                "store": store,
                "max_queue": max_queue,
                "max_queue_bytes": max_queue_bytes,
                "ttl": ttl,
                "retries": retries,
                "backoff": backoff,
                "give_up_after": give_up_after,
                "renew_expired": renew_expired,
                "order": order,
                "at_most_once": at_most_once,
            }
        )
        self._closed = False
        self._grace = grace
        self._on_result = on_result
        # At the end of the program, or without references, requests in flight are not waited for.
        self._abandon = weakref.finalize(self, self._handle.abandon)
        self._set_up()

    def _set_up(self) -> None:
        """Initialize the parts of a subclass."""

    def __del__(self) -> None:
        """Warn if it was not closed."""
        if not getattr(self, "_closed", True):
            why = f"unclosed {type(self).__name__}; use it in a with block"
            warnings.warn(why, ResourceWarning, stacklevel=2, source=self)

    @property
    def is_closed(self) -> bool:
        """Whether it is closed and takes no more jobs."""
        return self._closed

    @property
    def recovered(self) -> tuple[int, int]:
        """Number of jobs that a crashed sender left leased, and of those that may have been sent."""
        return self._handle.recovered

    def stats(self) -> SenderStats:
        """Count jobs and requests since the start.

        Returns:
            The counters, and the current state.
        """
        return SenderStats(**self._handle.stats())

    def _group(self) -> _weir.GroupHandle:
        if self._closed:
            raise UsageError("the sender is closed; make a new one")
        return _weir.GroupHandle(self._handle)

    def _ended(self) -> None:
        """Release the core sender; raise the error that ended it."""
        self._abandon.detach()
        why = self._handle.join()
        if why is not None:
            raise SenderEnded(why)


class Calls:
    """Thread that calls callbacks; it starts with the first one."""

    def __init__(self, handle: _weir.SenderHandle, on_result: Callable[[JobResult], object] | None) -> None:
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
            # It may have ended before the thread listened.
            self._ended(number)

    def join(self) -> None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, args=(_weir.GroupHandle.of_all(self._handle),), name="weir-results", daemon=True
            )
            self._thread.start()

    def _run(self, group: _weir.GroupHandle) -> None:
        with contextlib.suppress(SenderEnded):
            while group.wait(MORE, None):
                for outcome in group.take_ended():
                    result = JobResult(outcome)
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


class Stream:
    """Jobs of an iterable, some of which are submitted ahead of their results."""

    def __init__(self, group: _weir.GroupHandle, jobs: Iterable[JobTypes], need: int, ahead: int) -> None:
        self._group = group
        self._take = group.take_front if need == FRONT else group.take_ended
        self._chunks, self._has_more, self._ahead = chunks(jobs), True, ahead

    def goes_on(self) -> bool:
        """Whether there are jobs to submit, or results to wait for."""
        return self._has_more or len(self._group) > 0

    def chunk(self) -> list[JobTypes] | None:
        """Return the next jobs to submit; None if there are none, or enough are ahead."""
        if not self._has_more or len(self._group) >= self._ahead:
            return None
        chunk = next(self._chunks, None)
        self._has_more = chunk is not None
        return chunk

    def results(self) -> list[JobResult]:
        """Return the results that are there."""
        return [JobResult(outcome) for outcome in self._take()]


def call(callback: Callable[[Any], object], argument: object) -> None:
    try:
        callback(argument)
    except Exception:
        _log.exception("a callback raised: %r", callback)


def chunks(jobs: Iterable[JobTypes]) -> Iterator[list[JobTypes]]:
    """Group jobs into chunks: large ones from a fast iterable, single jobs from a slow one."""
    if isinstance(jobs, str | Job) or not isinstance(jobs, Iterable):
        raise TypeError(f"jobs: an iterable of jobs, not {type(jobs).__name__}")
    most, chunk, since = 1, [], monotonic()
    for job in jobs:
        chunk.append(job)
        is_slow = monotonic() - since > _MAX_CHUNK_S
        if is_slow or len(chunk) >= most:
            yield chunk
            most = 1 if is_slow else min(2 * most, _MAX_CHUNK_JOBS)
            chunk, since = [], monotonic()
    if chunk:
        yield chunk
