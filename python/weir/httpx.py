"""Transports for httpx: `httpx.Client(transport=weir.httpx.Transport(deadline=1.0))`."""

import httpx as _library

from weir._httpx_transport import transports as _transports

__all__ = ["AsyncTransport", "Transport"]

Transport, AsyncTransport = _transports(_library, __name__)
