"""Transports for httpx: `httpx.Client(transport=weir.httpx.Transport(deadline=1.0))`."""

import httpx as _library

from weir._call_log import attempts
from weir._httpx_transport import transports_for

__all__ = ["AsyncTransport", "Transport", "attempts"]

Transport, AsyncTransport = transports_for(_library)
