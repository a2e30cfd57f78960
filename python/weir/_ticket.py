"""Tickets and batches: accepted jobs whose results can be waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

from weir._job import JobResult
from weir._time import Time

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["AsyncBatch", "AsyncTicket", "Batch", "Ticket"]

# Condition of a wait: all jobs of a group have ended.
_ALL: Final = -5


class _Ticket:
    """An accepted job."""

    __slots__ = ("_group", "_sender")

    def __init__(self, sender: Any, group: _weir.GroupHandle) -> None:
        """Wrap a job of a sender; `enqueue` creates tickets."""
        self._sender = sender
        self._group = group

    @property
    def number(self) -> int:
        """Number of the job in the store."""
        number = self._group.number(0)
        assert number is not None
        return number

    def done(self) -> bool:
        """Return whether the job or its sender has ended."""
        return self._group.is_done(0)

    def __repr__(self) -> str:
        """Return number and state."""
        return f"<weir.{type(self).__name__} {self.number} {'done' if self.done() else 'open'}>"

    def _result(self) -> JobResult:
        outcome = self._group.outcome(0)
        assert outcome is not None
        return JobResult(outcome)


class Ticket(_Ticket):
    """Future of a job of `Sender.enqueue`."""

    __module__ = "weir"
    __slots__ = ()

    def result(self, timeout: Time | None = None) -> JobResult:
        """Wait for the end of the job.

        Returns:
            The result.

        Raises:
            TimeoutError: The job has not ended within the timeout; it goes on.
            SenderEnded: The sender ended before the job did.
        """
        if not self._group.wait(0, timeout):
            raise TimeoutError(f"job {self.number} has no result after {timeout} s")
        return self._result()

    def add_done_callback(self, callback: Callable[[Ticket], object]) -> None:
        """Call back with the ticket at the end of the job or sender: on a thread for callbacks, or at once."""
        self._sender._calls.add(self, callback)


class AsyncTicket(_Ticket):
    """Future of a job of `AsyncSender.enqueue`; it can be awaited any number of times."""

    __module__ = "weir"
    __slots__ = ()

    def __await__(self) -> Generator[Any, None, JobResult]:
        """Wait for the end of the job; see `Ticket.result`."""
        return self._awaited().__await__()

    async def _awaited(self) -> JobResult:
        await self._sender._until(self._group, 0)
        return self._result()


class _Batch:
    """Accepted jobs of one call."""

    __slots__ = ("_count", "_group", "_sender")

    def __init__(self, sender: Any, group: _weir.GroupHandle) -> None:
        """Wrap jobs of a sender; `enqueue_many` creates batches."""
        self._sender = sender
        self._group = group
        self._count = len(group)

    def __len__(self) -> int:
        """Count the jobs."""
        return self._count

    @property
    def open(self) -> int:
        """Number of jobs that have not ended."""
        return self._group.open

    def __repr__(self) -> str:
        """Return the numbers of jobs and of open jobs."""
        return f"<weir.{type(self).__name__} of {len(self)} jobs, {self.open} open>"

    def _result(self, place: int) -> JobResult:
        outcome = self._group.outcome(place)
        assert outcome is not None
        return JobResult(outcome)


class Batch(_Batch):
    """Jobs of `Sender.enqueue_many`; iteration waits for their results, in order."""

    __module__ = "weir"
    __slots__ = ()

    def __iter__(self) -> Iterator[JobResult]:
        """Iterate over the results, waiting for each."""
        for place in range(self._count):
            self._group.wait(place, None)
            yield self._result(place)

    def wait(self, timeout: Time | None = None) -> bool:
        """Wait until all jobs have ended.

        Returns:
            False if the timeout came first.
        """
        return self._group.wait(_ALL, timeout)


class AsyncBatch(_Batch):
    """Jobs of `AsyncSender.enqueue_many`; ``async for`` waits for their results, in order."""

    __module__ = "weir"
    __slots__ = ()

    async def __aiter__(self) -> AsyncIterator[JobResult]:
        """Iterate over the results, waiting for each."""
        for place in range(self._count):
            await self._sender._until(self._group, place)
            yield self._result(place)

    async def wait(self) -> None:
        """Wait until all jobs have ended."""
        await self._sender._until(self._group, _ALL)
