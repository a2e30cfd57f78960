"""`weir.AsyncSender`: delivers jobs through the rate limits of a service, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

from weir import _weir
from weir._errors import SenderEnded, UsageError
from weir._job import JobOptions, JobResult, JobTypes
from weir._sending import ACCEPTED, ANY, FRONT, MORE, Base, Stream, call, chunks
from weir._ticket import AsyncBatch, AsyncTicket

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["AsyncSender"]


class AsyncSender(Base):
    """Delivers jobs through the rate limits of a service, as fast as the limits allow; results are awaited.

    >>> async with weir.AsyncSender("https://api.example.com/v1/orders", limits="20/1s", store="orders.db") as sender:
    ...     result = await sender.submit(json={"amount": 3})
    ...     async for result in sender.as_completed({"json": {"amount": n}} for n in range(1000)):
    ...         print(result.state, result.status)

    A sender belongs to the asyncio loop (also uvloop's) that first uses it. Requests are sent on a thread of weir's,
    which wakes the loop once per batch of results. Everything else is as in `Sender`.
    """

    __module__ = "weir"

    def _set_up(self) -> None:
        self._over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._box: _weir.Mailbox | None = None
        self._results_task: asyncio.Task[None] | None = None

    def __del__(self) -> None:
        """Remove the reader from the loop, and warn if the sender was not closed."""
        loop: asyncio.AbstractEventLoop | None = getattr(self, "_loop", None)
        box: _weir.Mailbox | None = getattr(self, "_box", None)
        if loop is not None and box is not None and not loop.is_closed():
            if asyncio._get_running_loop() is loop:
                _unhook(loop, box)
            else:
                # The loop may run on another thread. A closed loop has no readers.
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(_unhook, loop, box)
        super().__del__()

    async def submit(self, url: str | None = None, **job: Unpack[JobOptions]) -> JobResult:
        """Deliver a job, and wait for its end; see `Sender.submit`.

        Cancelling ends the wait; an accepted job goes on.

        Returns:
            The result.
        """
        group = self._group()
        await self._enter(group, [{"url": url, **job}], False)
        await self._until(group, 0)
        outcome = group.outcome(0)
        assert outcome is not None
        return JobResult(outcome)

    async def enqueue(self, url: str | None = None, **job: Unpack[JobOptions]) -> AsyncTicket:
        """Submit a job, and return when it is accepted; see `Sender.enqueue`.

        Returns:
            A ticket that can be awaited.
        """
        group = self._group()
        await self._enter(group, [{"url": url, **job}], False)
        return AsyncTicket(self, group)

    async def enqueue_many(self, jobs: Iterable[JobTypes]) -> AsyncBatch:
        """Submit jobs, and return when all are accepted; much faster than one by one. See `submit`.

        Returns:
            The batch, to wait for the results.
        """
        group = self._group()
        for chunk in chunks(jobs):
            await self._enter(group, chunk, True)
        return AsyncBatch(self, group)

    def map(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> AsyncIterator[JobResult]:
        """Deliver jobs, and iterate over their results in the order of the jobs; see `Sender.map`.

        Returns:
            An async iterator of results.
        """
        return self._results(jobs, FRONT, ahead)

    def as_completed(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> AsyncIterator[JobResult]:
        """Deliver jobs, and iterate over their results as they complete; see `Sender.map`.

        Returns:
            An async iterator of results.
        """
        return self._results(jobs, ANY, ahead)

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
        """Take no more jobs, send no more requests, and wait for those in flight; see `Sender.stop`."""
        await self._drain(self._grace if grace is None else grace)

    async def __aenter__(self) -> Self:
        """Return the sender."""
        self._mailbox()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait until no job is left; after an error, only for requests in flight."""
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
        """Detach from the loop."""
        if self._results_task is not None and self._results_task is not asyncio.current_task():
            await self._results_task
        if self._loop is not None and self._box is not None:
            _unhook(self._loop, self._box)
            # Sets futures that are still awaited.
            self._box.on_readable()
        self._loop = self._box = self._results_task = None
        self._over = True

    def _mailbox(self) -> _weir.Mailbox:
        loop = asyncio.get_running_loop()
        if self._box is None:
            self._loop, self._box = loop, _weir.Mailbox(loop)
            loop.add_reader(self._box.fileno(), self._box.on_readable)
            if self._on_result is not None:
                group = _weir.GroupHandle.of_all(self._handle)
                self._results_task = loop.create_task(self._call_back(self._on_result, group))
        elif self._loop is not loop:
            raise UsageError("the sender belongs to another event loop; make one for each, or use weir.Sender")
        return self._box

    async def _call_back(self, on_result: Callable[[JobResult], object], group: _weir.GroupHandle) -> None:
        with contextlib.suppress(SenderEnded):
            while True:
                await self._until(group, MORE)
                for outcome in group.take_ended():
                    call(on_result, JobResult(outcome))

    async def _until(self, group: _weir.GroupHandle, need: int) -> None:
        if self._over:
            group.wait(need, 0)
            return
        box = self._box
        if box is None or self._loop is not asyncio.get_running_loop():
            box = self._mailbox()
        while (promise := group.watch(need, box)) is not None:
            await _await_promise(promise, box)

    async def _until_sender(self, for_end: bool) -> None:
        if self._over:
            return
        box = self._mailbox()
        while (promise := self._handle.watch(for_end, box)) is not None:
            await _await_promise(promise, box)

    async def _enter(self, group: _weir.GroupHandle, jobs: list[JobTypes], are_several: bool) -> None:
        group.submit(jobs, are_several)
        try:
            await self._until(group, ACCEPTED)
        except BaseException:
            group.withdraw()
            raise

    async def _results(self, jobs: Iterable[JobTypes], need: int, ahead: int) -> AsyncIterator[JobResult]:
        group = self._group()
        stream = Stream(group, jobs, need, ahead)
        while stream.goes_on():
            if (chunk := stream.chunk()) is not None:
                await self._enter(group, chunk, True)
                # Other tasks get their turn, however fast jobs are accepted.
                await asyncio.sleep(0)
            elif len(group):
                await self._until(group, need)
            for result in stream.results():
                yield result


async def _await_promise(promise: tuple[int, asyncio.Future[None]], box: _weir.Mailbox) -> None:
    number, future = promise
    try:
        await future
    except BaseException:
        box.forget(number)
        raise


def _unhook(loop: asyncio.AbstractEventLoop, box: _weir.Mailbox) -> None:
    loop.remove_reader(box.fileno())
