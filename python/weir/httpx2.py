"""Transports for httpx2: `httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))`."""

import httpx2 as _library

from weir._call_log import attempts
from weir._httpx_transport import transports_for

__all__ = ["AsyncTransport", "Transport", "attempts"]

Transport, AsyncTransport = transports_for(_library)
