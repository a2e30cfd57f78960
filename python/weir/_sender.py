"""`weir.Sender`: delivers jobs through the rate limits of a service, for threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from weir import _weir
from weir._errors import SenderEnded
from weir._job import JobOptions, JobResult, JobTypes
from weir._sending import ACCEPTED, ANY, FRONT, Base, Calls, Stream, chunks
from weir._ticket import Batch, Ticket

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Sender"]


class Sender(Base):
    """Delivers jobs through the rate limits of a service, as fast as the limits allow; threads may share it.

    >>> with weir.Sender("https://api.example.com/v1/orders", limits="20/1s", store="orders.db") as sender:
    ...     result = sender.submit(json={"amount": 3})
    ...     for result in sender.as_completed({"json": {"amount": n}} for n in range(1000)):
    ...         print(result.state, result.status)

    Leaving the block waits until no job is left; leaving it with an error waits at most `grace` seconds for requests in
    flight, and unsent jobs stay in the store. The GIL is released while it waits, and Ctrl-C works.
    """

    __module__ = "weir"

    def _set_up(self) -> None:
        self._calls = Calls(self._handle, self._on_result)

    def submit(self, url: str | None = None, **job: Unpack[JobOptions]) -> JobResult:
        """Deliver a job, and wait for its end.

        Ctrl-C ends the wait; an accepted job goes on.

        Args:
            url: Request URL; default: the sender's.
            job: The other fields of a `Job`.

        Returns:
            The result, also of a job that was not delivered: see `JobResult.ok` and `JobResult.raise_for_state`.

        Raises:
            UsageError: The job is invalid, or the sender is closed.
            NotAccepted: The queue does not take it.
            SenderEnded: The sender ended before the job did.
        """
        group = self._accepted(url, job)
        group.wait(0, None)
        outcome = group.outcome(0)
        assert outcome is not None
        return JobResult(outcome)

    def enqueue(self, url: str | None = None, **job: Unpack[JobOptions]) -> Ticket:
        """Submit a job, and return when it is accepted: with a store in a file, when it is on disk.

        Waits while the queue is full. See `submit`.

        Returns:
            A ticket, to wait for the result.
        """
        return Ticket(self, self._accepted(url, job))

    def enqueue_many(self, jobs: Iterable[JobTypes]) -> Batch:
        """Submit jobs, and return when all are accepted; much faster than one by one. See `submit`.

        Returns:
            The batch, to wait for the results.
        """
        group = self._group()
        for chunk in chunks(jobs):
            self._enter(group, chunk, True)
        return Batch(self, group)

    def map(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[JobResult]:
        """Deliver jobs, and iterate over their results in the order of the jobs.

        Args:
            jobs: Jobs; consumed during the iteration.
            ahead: Maximum jobs submitted ahead of the first result that was not taken.

        Returns:
            An iterator of results.
        """
        return self._results(jobs, FRONT, ahead)

    def as_completed(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[JobResult]:
        """Deliver jobs, and iterate over their results as they complete; otherwise as `map`.

        Returns:
            An iterator of results.
        """
        return self._results(jobs, ANY, ahead)

    def close(self) -> None:
        """Take no more jobs, and wait until none is left.

        Raises:
            SenderEnded: It ended before that: all keys are disabled, or the store failed.
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
        """Take no more jobs, send no more requests, and wait at most `grace` seconds for those in flight.

        Unsent jobs stay in the store.
        """
        self._drain(self._grace if grace is None else grace)

    def __enter__(self) -> Self:
        """Return the sender."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait until no job is left; after an error, only for requests in flight."""
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
            # A second Ctrl-C.
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
            group.wait(ACCEPTED, None)
        except BaseException:
            group.withdraw()
            raise

    def _results(self, jobs: Iterable[JobTypes], need: int, ahead: int) -> Iterator[JobResult]:
        group = self._group()
        stream = Stream(group, jobs, need, ahead)
        while stream.goes_on():
            if (chunk := stream.chunk()) is not None:
                self._enter(group, chunk, True)
            elif len(group):
                group.wait(need, None)
            yield from stream.results()
