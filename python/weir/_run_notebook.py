"""A run in a notebook: its HTML report inline, and its time series as a data frame."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from weir._run_parts import Interval
from weir._run_series import PointTimes

_HEIGHT_PX = 720
_HISTOGRAMS = ("histogram", "failed_histogram")


def framed(page: str) -> str:
    """Return an HTML report as a frame: its styles and scripts do not touch the notebook, nor those of others it.

    The report is in the notebook itself, so that it is there when the notebook is opened again, on any machine.
    """
    text = html.escape(page, quote=True)
    return (
        f'<iframe srcdoc="{text}" sandbox="allow-scripts" title="weir: report of a load test" '
        f'style="width: 100%; height: {_HEIGHT_PX}px; border: 0"></iframe>'
    )


def columns(series: Sequence[Interval]) -> dict[str, list[Any]]:
    """Return the time series by column: fields of `Interval` but histograms, and those of streams with a prefix."""
    found: dict[str, list[Any]] = {name: [] for name in Interval.__slots__ if name not in {*_HISTOGRAMS, "streams"}}
    for interval in series:
        for name, values in found.items():
            values.append(getattr(interval, name))
    if any(interval.streams for interval in series):
        found |= _stream_columns(series)
    return found


def _stream_columns(series: Sequence[Interval]) -> dict[str, list[Any]]:
    points = [interval.streams for interval in series]
    found: dict[str, list[Any]] = {"stream_events": [point.events if point else 0 for point in points]}
    for name in ("first_event_ms", "gap_ms"):
        found |= _times(f"stream_{name}", [getattr(point, name, None) for point in points])
    llm = [point.llm if point else None for point in points]
    if any(llm):
        for name in ("requests", "good", "output_tokens"):
            found[f"llm_{name}"] = [getattr(point, name, 0) for point in llm]
        for name in ("ttft_ms", "tpot_ms", "chunk_gap_ms"):
            found |= _times(f"llm_{name}", [getattr(point, name, None) for point in llm])
    return found


def _times(name: str, times: Sequence[PointTimes | None]) -> dict[str, list[float | None]]:
    """Return percentiles by column: `stream_gap_ms` becomes `stream_gap_p50_ms` and so on; None without any."""
    base = name.removesuffix("_ms")
    return {
        f"{base}_{which}_ms": [getattr(one, which) if one and one.count else None for one in times]
        for which in ("p50", "p90", "p99", "max")
    }


def data_frame(series: Sequence[Interval]) -> Any:
    """Return the time series as a data frame of pandas, with the start of each interval as the index."""
    try:
        # weir does not depend on it, nor do its types.
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError("to_pandas needs pandas; install it with: pip install pandas") from error
    return pandas.DataFrame(columns(series)).set_index("t_s")
