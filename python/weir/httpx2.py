"""Transports for httpx2: `httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))`."""

import httpx2 as _library

from weir._call_log import attempts
from weir._httpx_transport import AwaitedBodyStream, AwaitedTransport, BlockingTransport, BodyStream

__all__ = ["AsyncTransport", "Transport", "attempts"]


class _Body(BodyStream, _library.SyncByteStream):
    _library = _library


class _AwaitedBody(AwaitedBodyStream, _library.AsyncByteStream):
    _library = _library


class Transport(BlockingTransport, _library.BaseTransport):
    """Transport of calls with a deadline, hedging, retries and a budget for these.

    >>> client = httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0, retries=2))  # doctest: +SKIP

    `response.extensions["weir"]` is the call's `weir.CallLog`.
    """

    _library = _library
    _body = _Body


class AsyncTransport(AwaitedTransport, _library.AsyncBaseTransport):
    """The same for `httpx2.AsyncClient`: on asyncio's thread (uvloop's, too); under trio on a thread of weir's."""

    _library = _library
    _body = _AwaitedBody
