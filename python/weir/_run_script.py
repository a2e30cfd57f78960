"""What a script of k6 has measured itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCheck:
    """Check of a script.

    Attributes:
        group: Group, with two colons before each name; empty for none.
        name: Name.
        passed: Number of results that are true.
        failed: Number of results that are false.
    """

    group: str
    name: str
    passed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptMetric:
    """Metric of a script, in all or for some tags.

    Attributes:
        name: Name, with the tags in braces: ``http_req_duration{scenario:a}``.
        kind: ``counter``, ``gauge``, ``rate`` or ``trend``.
        unit: ``number``, ``milliseconds`` or ``bytes``.
        custom: Whether the script itself has made it.
        values: Statistics by their names: ``avg``, ``p(95)``, ``count``, ``rate``.
    """

    name: str
    kind: Literal["counter", "gauge", "rate", "trend"]
    unit: Literal["number", "milliseconds", "bytes"]
    custom: bool
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptException:
    """Exceptions of a script with the same words.

    Attributes:
        message: One line with the place.
        count: How many there were.
    """

    message: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a script of k6 has measured itself. Its thresholds are objectives of the run.

    Attributes:
        checks: Checks, in the order of their first results.
        metrics: Metrics, in the order of their names.
        exceptions: Exceptions that have ended iterations.
        interrupted: Number of iterations that were cut off.
        interrupted_at: Places of the script that computed when they were cut off.
        failure: Reason of the script why the run is a failure; None without one.
    """

    checks: tuple[ScriptCheck, ...]
    metrics: tuple[ScriptMetric, ...]
    exceptions: tuple[ScriptException, ...]
    interrupted: int
    interrupted_at: tuple[str, ...]
    failure: str | None
