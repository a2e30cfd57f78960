"""Jobs that were accepted, and whose results can be waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

from weir._job import Result
from weir._load import Time

if TYPE_CHECKING:
    from weir import _weir

__all__ = ["AsyncBatch", "AsyncTicket", "Batch", "Ticket"]

# All jobs of a group, as Rust knows it; a place waits for that job.
_ALL: Final = -5


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
