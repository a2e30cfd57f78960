"""Slots of a limiter: each is for one request."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from weir import _weir

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LimiterSlot", "response_of"]

_HEADERS = ("rate", "retry", "date")
"""Parts of the names of headers that report limits."""


def response_of(value: object) -> Any:
    """Return the value if it is a response, or an exception's; None for anything else."""
    for one in (value, getattr(value, "response", None)):
        if getattr(one, "headers", None) is not None and _status(one) is not None:
            return one
    return None


def _status(response: object) -> int | None:
    for name in ("status_code", "status"):
        status = getattr(response, name, None)
        if isinstance(status, int):
            return status
    return None


class LimiterSlot:
    """Slot for one request, which may be sent from now on.

    >>> with limiter("key") as slot:
    ...     response = httpx.get(url)
    ...     slot.update(response)

    A block ends it. Without a block call `done` when the response has come, or `cancel` if nothing was sent. A slot
    that is dropped counts as sent, and as arrived after the delay bound, or a second if none is known.

    Attributes:
        weight: Weight of the request.
    """

    __module__ = "weir"
    __slots__ = ("_slot", "_wake", "weight")

    weight: int

    def __init__(
        self, slot: _weir.LimiterSlotHandle, weight: int, wake: Callable[[tuple[list[int], str | None]], None]
    ) -> None:
        """Wrap a slot of the core; limiters make these."""
        self._slot = slot
        self._wake = wake
        self.weight = weight

    @property
    def is_open(self) -> bool:
        """Whether the slot has not ended."""
        return self._slot.is_open()

    def done(self) -> None:
        """End the slot: the response has come, so the request has arrived. A second end changes nothing."""
        self._wake(self._slot.done())

    def cancel(self) -> None:
        """Give the slot back: nothing was sent, and the next one may have it at once."""
        self._wake(self._slot.unsent())

    def update(self, response: object) -> None:
        """End the slot with its response, which reports limits.

        Read are the status (429, 503) and ``Retry-After``, ``RateLimit``, ``X-RateLimit-*`` and similar headers. They
        can lower the estimate of a limit and pause the key; they never raise a limit above the declared one.

        Args:
            response: Object with `headers` and `status_code` or `status`: of httpx, requests, aiohttp, weir.

        Raises:
            TypeError: It has no such attributes.
        """
        status, headers = _status(response), getattr(response, "headers", None)
        if status is None or headers is None:
            kind = type(response).__name__
            raise TypeError(f"response: an object with headers and status_code or status, not {kind}")
        pairs = [(str(name), str(value)) for name, value in headers.items()]
        reported = [pair for pair in pairs if any(part in pair[0].lower() for part in _HEADERS)]
        self._wake(self._slot.responded(min(max(status, 0), 999), reported))

    def _abandon(self) -> None:
        self._wake(self._slot.abandoned())

    def __enter__(self) -> Self:
        """Return the slot."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot; after an error without a response the request may have arrived or not, and counts."""
        if kind is None:
            self.done()
            return
        response = response_of(error)
        if response is None:
            self._abandon()
        elif self.is_open:
            self.update(response)

    async def __aenter__(self) -> Self:
        """Return the slot."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the slot, as `__exit__`."""
        self.__exit__(kind, error, trace)
