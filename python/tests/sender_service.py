"""A service for senders, which limits the rate of two keys."""

from contextlib import AbstractContextManager

import weir

TIMEOUT_S = 60
"""Longer than anything in a test takes."""
KEYS = ["alpha-key-0123456789", "beta-key-0123456789"]
API = "/api/request?api_key={key}&nonce={nonce}&req_id={id}"
"""Path of the service, as senders fill it in."""


def two_keys() -> AbstractContextManager[weir.Service]:
    """Start the service; a busy machine is late, and bounds of the way in are far above its ways."""
    return weir.serve("ratelimit", key=KEYS, limit=["20/1s"], latency_in="0ms..5ms", latency_out="0ms..5ms")
