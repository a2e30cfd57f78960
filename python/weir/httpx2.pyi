"""Transports for httpx2: `httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))`."""

import httpx2 as _library
from typing_extensions import Unpack

from weir._call_log import attempts as attempts
from weir._httpx_options import HttpxOptions

__all__ = ["AsyncTransport", "Transport", "attempts"]

class Transport(_library.BaseTransport):
    def __init__(self, **options: Unpack[HttpxOptions[_library.Request, _library.Limits]]) -> None: ...

class AsyncTransport(_library.AsyncBaseTransport):
    def __init__(self, **options: Unpack[HttpxOptions[_library.Request, _library.Limits]]) -> None: ...
