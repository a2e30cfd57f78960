"""JSON that servers send -> values."""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from typing import Any

__all__: list[str] = []


def parsed(content: bytes, options: Mapping[str, Any]) -> Any:
    """Parse JSON; options are passed to `json.loads`.

    Raises:
        json.JSONDecodeError: The content is not JSON, or nested too deep for Python's parser.
    """
    try:
        return json_module.loads(content, **options)
    except RecursionError:
        # Code that catches errors of a server's JSON does not expect it.
        raise json_module.JSONDecodeError("Nested too deep", "", 0) from None
