"""An API whose requests are limited, and what it has counted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import weir

KEY = "alpha-key-0123456789"


@contextmanager
def limited_service() -> Iterator[weir.Service]:
    """An API with 20 requests per 500 ms, whose ways take up to 20 ms."""
    limits: dict[str, Any] = {"key": [KEY], "limit": ["20/500ms"], "block_after": 0, "limit_headers": "all"}
    with weir.serve("ratelimit", latency_in="0ms..20ms", latency_out="0ms..20ms", **limits) as service:
        yield service


def url_of(service: weir.Service, number: int) -> str:
    """URL of a request of the key; one with a number that was used before is rejected, and counts."""
    return f"{service.url}/api/request?api_key={KEY}&nonce={number}&req_id={number}"


def counted(service: weir.Service) -> int:
    """Requests that counted; none was above the limit."""
    stats = service.stats()
    assert stats["rejected"]["rate_limited"] == stats["rejected"]["blocked"] == 0
    return int(stats["accepted"]) + int(stats["rejected"]["invalid_nonce"])
