"""`weir.Sender` and `weir.AsyncSender`: jobs through the rate limits of a service, and none of them lost."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal

from weir import _weir
from weir._errors import SenderEnded, UsageError
from weir._headers import HeaderTypes
from weir._job import Job, JobOptions, JobTypes, Result, Tally
from weir._load import Time

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncBatch", "AsyncSender", "AsyncTicket", "Batch", "Sender", "Ticket"]

# What is waited for, as Rust knows it; a place in the group waits for that job.
_ACCEPTED: Final = -1
_ANY: Final = -2
_FRONT: Final = -3
_MORE: Final = -4
_ALL: Final = -5

# So many jobs are submitted together, and so long they may take to come together.
_MOST_TOGETHER: Final = 512
_TOGETHER_S: Final = 0.002

_log = logging.getLogger("weir")


class _Base:
    """What both senders share: options, and what needs no waiting."""

    def __init__(
        self,
        url: str | None = None,
        *,
        keys: Iterable[str] = (),
        limits: str | Iterable[str] = (),
        weight_limits: str | Iterable[str] = (),
        delay_bound: Time | Literal["learn"] | None = "learn",
        ordered: bool = False,
        method: str | None = None,
        headers: HeaderTypes | None = None,
        timeout: Time = 30.0,
        fresh: bool = False,
        concurrency: int = 256,
        success: int | str | Iterable[int | str] | None = "200-299",
        store: str | PathLike[str] | None = None,
        queue: int | None = None,
        queue_bytes: int | None = None,
        ttl: Time | None = None,
        retries: int = 5,
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
            keys: The keys, in place of ``{key}``; each has the limits for itself.
            limits: So many requests per time for each key: ``"20/1s"``, ``["100/1m", "concurrency:5"]``; all hold.
            weight_limits: So much weight per time for each key: ``"30000/1m"`` tokens, for example.
            delay_bound: The longest way of a request to the service; ``"learn"``, or None: only an answer tells that
                a request has arrived.
            ordered: Whether the requests of a key have to arrive in the order of their nonces.
            method: The method; GET, or POST with a body.
            headers: Headers of all jobs.
            timeout: A request without an answer after so long has failed.
            fresh: Whether each request has a connection of its own.
            concurrency: At most so many requests without an answer.
            success: Statuses of success: ``"200-299,404"``, ``(200, 404)``, ``"2xx"``; None for any.
            store: The file that keeps jobs over crashes and restarts; None keeps them in memory.
            queue: Who submits waits while so many jobs are to be delivered. Default: 100,000 in memory; no bound in a
                file.
            queue_bytes: The same by their size. Default: 256 MiB in memory.
            ttl: A job is of use for so long; None is for ever.
            retries: Tries after the first.
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
                "keys": keys,
                "limits": limits,
                "weight_limits": weight_limits,
                "delay_bound": delay_bound,
                "ordered": ordered,
                "method": method,
                "headers": headers,
                "timeout": timeout,
                "fresh": fresh,
                "concurrency": concurrency,
                "success": success,
                "store": store,
                "queue": queue,
                "queue_bytes": queue_bytes,
                "ttl": ttl,
                "retries": retries,
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
            warnings.warn(f"unclosed {type(self).__name__}; use it in a with block", ResourceWarning, source=self)

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
        return Tally(**self._handle.tally())

    def _group(self) -> _weir.GroupHandle:
        if self._closed:
            raise UsageError("the sender is closed; make a new one")
        return _weir.GroupHandle(self._handle)

    def _ended(self) -> None:
        """Let go of all that is behind it."""
        self._abandon.detach()
        why = self._handle.settle()
        if why is not None:
            raise SenderEnded(why)


class _Ticket:
    """A job that was accepted, and may have ended."""

    __slots__ = ("_group", "_sender")

    def __init__(self, sender: Any, group: _weir.GroupHandle) -> None:
        """Wrap a job of a sender's; `enqueue` makes them."""
        self._sender = sender
        self._group = group

    @property
    def number(self) -> int:
        """The store's number for the job."""
        number = self._group.number(0)
        assert number is not None
        return number

    def done(self) -> bool:
        """Tell whether the job has come to its end, or its sender has."""
        return self._group.is_done(0)

    def __repr__(self) -> str:
        """Say which job it is."""
        return f"<weir.{type(self).__name__} {self.number} {'done' if self.done() else 'open'}>"

    def _result(self) -> Result:
        outcome = self._group.outcome(0)
        assert outcome is not None
        return Result(outcome)


class Ticket(_Ticket):
    """A job of `Sender.enqueue`: it was accepted, and its result can be waited for."""

    __module__ = "weir"
    __slots__ = ()

    def result(self, timeout: Time | None = None) -> Result:
        """Wait for what becomes of the job.

        Raises:
            TimeoutError: The time is over; the job goes on.
            SenderEnded: The sender has ended before the job did.
        """
        if not self._group.wait(0, timeout):
            raise TimeoutError(f"job {self.number} has no result after {timeout} s")
        return self._result()

    def add_done_callback(self, callback: Callable[[Ticket], object]) -> None:
        """Have this called with the ticket at the job's end, or the sender's: on a thread of its own, or now."""
        self._sender._calls.add(self, callback)


class AsyncTicket(_Ticket):
    """A job of `AsyncSender.enqueue`: it was accepted, and its result can be awaited, as often as one likes."""

    __module__ = "weir"
    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Result]:
        """Wait for what becomes of the job; see `Ticket.result`."""
        return self._awaited().__await__()

    async def _awaited(self) -> Result:
        await self._sender._until(self._group, 0)
        return self._result()


class _Batch:
    """Jobs that were accepted together."""

    __slots__ = ("_count", "_group", "_sender")

    def __init__(self, sender: Any, group: _weir.GroupHandle) -> None:
        """Wrap jobs of a sender's; `enqueue_many` makes them."""
        self._sender = sender
        self._group = group
        self._count = len(group)

    def __len__(self) -> int:
        """Count the jobs."""
        return self._count

    @property
    def open(self) -> int:
        """How many of them have not come to their end."""
        return self._group.open

    def __repr__(self) -> str:
        """Say how many jobs there are."""
        return f"<weir.{type(self).__name__} of {len(self)} jobs, {self.open} open>"

    def _result(self, place: int) -> Result:
        outcome = self._group.outcome(place)
        assert outcome is not None
        return Result(outcome)


class Batch(_Batch):
    """Jobs of `Sender.enqueue_many`; iterating waits for their results, in their order."""

    __module__ = "weir"
    __slots__ = ()

    def __iter__(self) -> Iterator[Result]:
        """Go through the results, as each comes."""
        for place in range(self._count):
            self._group.wait(place, None)
            yield self._result(place)

    def wait(self, timeout: Time | None = None) -> bool:
        """Wait until all have come to their end; say whether they did in time."""
        return self._group.wait(_ALL, timeout)


class AsyncBatch(_Batch):
    """Jobs of `AsyncSender.enqueue_many`; ``async for`` waits for their results, in their order."""

    __module__ = "weir"
    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[Result]:
        """Go through the results, as each comes."""
        for place in range(self._count):
            await self._sender._until(self._group, place)
            yield self._result(place)

    async def wait(self) -> None:
        """Wait until all have come to their end."""
        await self._sender._until(self._group, _ALL)


class Sender(_Base):
    """Delivers jobs through the rate limits of a service, as fast as they allow. Threads may share it.

    >>> with weir.Sender("https://api.example.com/v1/orders", limits="20/1s", store="orders.db") as sender:
    ...     result = sender.submit(json={"amount": 3})
    ...     for result in sender.as_completed({"json": {"amount": n}} for n in range(1000)):
    ...         print(result.state, result.status)

    Leaving the block waits until no job is left; leaving it with an error waits `grace` seconds for the answers that are
    out, and what is not sent stays in the store's file. The GIL is released while it waits, and Ctrl-C works.
    """

    __module__ = "weir"

    def _set_up(self) -> None:
        self._calls = _Calls(self._handle, self._on_result)

    def submit(self, url: str | None = None, **job: Unpack[JobOptions]) -> Result:
        """Deliver a job, and wait for its end.

        Args:
            url: Where it goes; the sender's own by default.
            job: The other fields of a `Job`.

        A job that was not delivered has a result, too: see `Result.ok`, or `Result.raise_for_state`. Ctrl-C ends the
        wait; a job that was accepted by then goes on.

        Raises:
            UsageError: The job makes no sense, or the sender is closed.
            NotAccepted: The queue does not take it.
            SenderEnded: The sender has ended before the job did.
        """
        group = self._accepted(url, job)
        group.wait(0, None)
        outcome = group.outcome(0)
        assert outcome is not None
        return Result(outcome)

    def enqueue(self, url: str | None = None, **job: Unpack[JobOptions]) -> Ticket:
        """Take a job in, and return when it is accepted: with a store in a file, when it is on disk.

        Waits while the queue is full. See `submit`.
        """
        return Ticket(self, self._accepted(url, job))

    def enqueue_many(self, jobs: Iterable[JobTypes]) -> Batch:
        """Take jobs in, and return when all are accepted; far quicker than one by one. See `submit`."""
        group = self._group()
        for chunk in _chunks(jobs):
            self._enter(group, chunk, True)
        return Batch(self, group)

    def map(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[Result]:
        """Deliver jobs, and return their results in the order of the jobs.

        Args:
            jobs: They are taken while one iterates.
            ahead: So many are taken before the first that has no result yet, or was not looked at.
        """
        return self._results(jobs, _FRONT, ahead)

    def as_completed(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[Result]:
        """Deliver jobs, and return their results as they come; otherwise as `map`."""
        return self._results(jobs, _ANY, ahead)

    def close(self) -> None:
        """Take no more jobs, and wait until none is left.

        Raises:
            SenderEnded: It had to end before that: the service takes none of the keys, or the store fails.
        """
        self._closed = True
        try:
            self._handle.wait(False, None)
            self._handle.finish()
            self._handle.wait(True, None)
        except BaseException:
            self._drain(self._grace)
            raise
        self._calls.join()
        self._ended()

    def stop(self, grace: float | None = None) -> None:
        """Take no more jobs, send none, and wait for the answers that are out; at most `grace` seconds.

        What is not sent stays in the store's file.
        """
        self._drain(self._grace if grace is None else grace)

    def __enter__(self) -> Self:
        """Hand out the sender."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until no job is left; with an error, only for the answers that are out."""
        if kind is None:
            self.close()
        else:
            self._drain(self._grace)

    def _drain(self, grace: float) -> None:
        self._closed = True
        try:
            self._handle.drain(grace)
            self._handle.wait(True, None)
        except BaseException:
            # Asked for a second time.
            self._handle.stop()
            raise
        self._calls.join()
        with contextlib.suppress(SenderEnded):
            self._ended()

    def _accepted(self, url: str | None, job: JobOptions) -> _weir.GroupHandle:
        group = self._group()
        self._enter(group, [{"url": url, **job}], False)
        return group

    def _enter(self, group: _weir.GroupHandle, jobs: list[JobTypes], are_several: bool) -> None:
        group.submit(jobs, are_several)
        try:
            group.wait(_ACCEPTED, None)
        except BaseException:
            group.give_up()
            raise

    def _results(self, jobs: Iterable[JobTypes], need: int, ahead: int) -> Iterator[Result]:
        group = self._group()
        take = group.take_front if need == _FRONT else group.take_ended
        chunks, more = _chunks(jobs), True
        while more or len(group):
            if more and len(group) < ahead:
                chunk = next(chunks, None)
                if chunk is None:
                    more = False
                    continue
                self._enter(group, chunk, True)
            else:
                group.wait(need, None)
            for outcome in take():
                yield Result(outcome)


class AsyncSender(_Base):
    """Delivers jobs through the rate limits of a service, as fast as they allow; results are awaited.

    >>> async with weir.AsyncSender("https://api.example.com/v1/orders", limits="20/1s", store="orders.db") as sender:
    ...     result = await sender.submit(json={"amount": 3})
    ...     async for result in sender.as_completed({"json": {"amount": n}} for n in range(1000)):
    ...         print(result.state, result.status)

    It belongs to the asyncio loop (uvloop's, too) that it is first used on. The requests are made on a thread of weir's,
    which wakes the loop once for all results that have come. Otherwise all is as with `Sender`.
    """

    __module__ = "weir"

    def _set_up(self) -> None:
        self._over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._box: _weir.Mailbox | None = None
        self._teller: asyncio.Task[None] | None = None

    async def submit(self, url: str | None = None, **job: Unpack[JobOptions]) -> Result:
        """Deliver a job, and wait for its end; see `Sender.submit`.

        To cancel it ends the wait; a job that was accepted by then goes on.
        """
        group = self._group()
        await self._enter(group, [{"url": url, **job}], False)
        await self._until(group, 0)
        outcome = group.outcome(0)
        assert outcome is not None
        return Result(outcome)

    async def enqueue(self, url: str | None = None, **job: Unpack[JobOptions]) -> AsyncTicket:
        """Take a job in, and return when it is accepted; see `Sender.enqueue`. The ticket can be awaited."""
        group = self._group()
        await self._enter(group, [{"url": url, **job}], False)
        return AsyncTicket(self, group)

    async def enqueue_many(self, jobs: Iterable[JobTypes]) -> AsyncBatch:
        """Take jobs in, and return when all are accepted; far quicker than one by one. See `submit`."""
        group = self._group()
        for chunk in _chunks(jobs):
            await self._enter(group, chunk, True)
        return AsyncBatch(self, group)

    def map(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> AsyncIterator[Result]:
        """Deliver jobs, and return their results in the order of the jobs; see `Sender.map`."""
        return self._results(jobs, _FRONT, ahead)

    def as_completed(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> AsyncIterator[Result]:
        """Deliver jobs, and return their results as they come; see `Sender.map`."""
        return self._results(jobs, _ANY, ahead)

    async def aclose(self) -> None:
        """Take no more jobs, and wait until none is left; see `Sender.close`."""
        self._closed = True
        try:
            await self._until_sender(False)
            self._handle.finish()
            await self._until_sender(True)
        except BaseException:
            await self._drain(self._grace)
            raise
        await self._leave()
        self._ended()

    async def stop(self, grace: float | None = None) -> None:
        """Take no more jobs, send none, and wait for the answers that are out; see `Sender.stop`."""
        await self._drain(self._grace if grace is None else grace)

    async def __aenter__(self) -> Self:
        """Hand out the sender."""
        self._mailbox()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until no job is left; with an error, only for the answers that are out."""
        if kind is None:
            await self.aclose()
        else:
            await self._drain(self._grace)

    async def _drain(self, grace: float) -> None:
        self._closed = True
        try:
            self._handle.drain(grace)
            await self._until_sender(True)
        except BaseException:
            self._handle.stop()
            raise
        await self._leave()
        with contextlib.suppress(SenderEnded):
            self._ended()

    async def _leave(self) -> None:
        """Let go of the loop."""
        if self._teller is not None and self._teller is not asyncio.current_task():
            await self._teller
        if self._loop is not None and self._box is not None:
            self._loop.remove_reader(self._box.fileno())
            # Whoever still waits is to know.
            self._box.look()
        self._loop = self._box = self._teller = None
        self._over = True

    def _mailbox(self) -> _weir.Mailbox:
        loop = asyncio.get_running_loop()
        if self._box is None:
            self._loop, self._box = loop, _weir.Mailbox(loop)
            loop.add_reader(self._box.fileno(), self._box.look)
            if self._on_result is not None:
                self._teller = loop.create_task(self._tell(self._on_result, self._handle.all()))
        elif self._loop is not loop:
            raise UsageError("the sender belongs to another event loop; make one for each, or use weir.Sender")
        return self._box

    async def _tell(self, on_result: Callable[[Result], object], group: _weir.GroupHandle) -> None:
        with contextlib.suppress(SenderEnded):
            while True:
                await self._until(group, _MORE)
                for outcome in group.take_ended():
                    _call(on_result, Result(outcome))

    async def _until(self, group: _weir.GroupHandle, need: int) -> None:
        if self._over:
            group.wait(need, 0)
            return
        box = self._box
        if box is None or self._loop is not asyncio.get_running_loop():
            box = self._mailbox()
        while (promise := group.watch(need, box)) is not None:
            await _kept(promise, box)

    async def _until_sender(self, for_end: bool) -> None:
        if self._over:
            return
        box = self._mailbox()
        while (promise := self._handle.watch(for_end, box)) is not None:
            await _kept(promise, box)

    async def _enter(self, group: _weir.GroupHandle, jobs: list[JobTypes], are_several: bool) -> None:
        group.submit(jobs, are_several)
        try:
            await self._until(group, _ACCEPTED)
        except BaseException:
            group.give_up()
            raise

    async def _results(self, jobs: Iterable[JobTypes], need: int, ahead: int) -> AsyncIterator[Result]:
        group = self._group()
        take = group.take_front if need == _FRONT else group.take_ended
        chunks, more = _chunks(jobs), True
        while more or len(group):
            if more and len(group) < ahead:
                chunk = next(chunks, None)
                if chunk is None:
                    more = False
                    continue
                await self._enter(group, chunk, True)
                # Others have their turn, however quickly jobs are accepted.
                await asyncio.sleep(0)
            else:
                await self._until(group, need)
            for outcome in take():
                yield Result(outcome)


class _Calls:
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
            while group.wait(_MORE, None):
                for outcome in group.take_ended():
                    result = Result(outcome)
                    if self._on_result is not None:
                        _call(self._on_result, result)
                    self._ended(result.number)
        for number in list(self._waiting):
            self._ended(number)

    def _ended(self, number: int) -> None:
        with self._lock:
            calls = self._waiting.pop(number, ())
        for ticket, callback in calls:
            _call(callback, ticket)


def _call(callback: Callable[[Any], object], argument: object) -> None:
    try:
        callback(argument)
    except Exception:
        _log.exception("a callback has failed: %r", callback)


async def _kept(promise: tuple[int, asyncio.Future[None]], box: _weir.Mailbox) -> None:
    letter, future = promise
    try:
        await future
    except BaseException:
        box.forget(letter)
        raise


def _chunks(jobs: Iterable[JobTypes]) -> Iterator[list[JobTypes]]:
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
