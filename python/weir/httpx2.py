"""Transports for httpx2: `httpx2.Client(transport=weir.httpx2.Transport(deadline=1.0))`."""

import httpx2 as _library

from weir._httpx_transport import transports as _transports

__all__ = ["AsyncTransport", "Transport"]

Transport, AsyncTransport = _transports(_library, __name__)
