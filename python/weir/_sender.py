"""`weir.Sender`: jobs through the rate limits of a service, by threads."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from weir import _weir
from weir._errors import SenderEnded
from weir._job import JobOptions, JobTypes, Result
from weir._sending import ACCEPTED, ANY, FRONT, Base, Calls, chunks
from weir._ticket import Batch, Ticket

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

__all__ = ["Sender"]


class Sender(Base):
    """Delivers jobs through the rate limits of a service, as fast as they allow. Threads may share it.

    >>> with weir.Sender("https://api.example.com/v1/orders", limits="20/1s", store="orders.db") as sender:
    ...     result = sender.submit(json={"amount": 3})
    ...     for result in sender.as_completed({"json": {"amount": n}} for n in range(1000)):
    ...         print(result.state, result.status)

    Leaving the block waits until no job is left; leaving it with an error waits `grace` seconds for the answers that
    are out, and what is not sent stays in the store's file. The GIL is released while it waits, and Ctrl-C works.
    """

    __module__ = "weir"

    def _set_up(self) -> None:
        self._calls = Calls(self._handle, self._on_result)

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
        for chunk in chunks(jobs):
            self._enter(group, chunk, True)
        return Batch(self, group)

    def map(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[Result]:
        """Deliver jobs, and return their results in the order of the jobs.

        Args:
            jobs: They are taken while one iterates.
            ahead: So many are taken before the first that has no result yet, or was not looked at.
        """
        return self._results(jobs, FRONT, ahead)

    def as_completed(self, jobs: Iterable[JobTypes], *, ahead: int = 10_000) -> Iterator[Result]:
        """Deliver jobs, and return their results as they come; otherwise as `map`."""
        return self._results(jobs, ANY, ahead)

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
            group.wait(ACCEPTED, None)
        except BaseException:
            group.withdraw()
            raise

    def _results(self, jobs: Iterable[JobTypes], need: int, ahead: int) -> Iterator[Result]:
        group = self._group()
        take = group.take_front if need == FRONT else group.take_ended
        source, more = chunks(jobs), True
        while more or len(group):
            if more and len(group) < ahead:
                chunk = next(source, None)
                if chunk is None:
                    more = False
                    continue
                self._enter(group, chunk, True)
            else:
                group.wait(need, None)
            for outcome in take():
                yield Result(outcome)
