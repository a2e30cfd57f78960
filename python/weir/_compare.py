"""`weir.compare`: verdicts on sides of saved runs.

Each class is an object of `docs/schema/compare.schema.json`, field by field; a test compares both with Rust's
structs. Names have their units; fractions are in [0, 1].
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

from weir import _weir
from weir._flags import Flag, texts_by_name
from weir._page import write_page
from weir._run import Run, _read

__all__ = ["ComparedRun", "ComparedSide", "ComparedStep", "Comparison", "Pair", "Side", "Verdict", "compare"]

Side: TypeAlias = Run | Iterable[Run] | str | PathLike[str]
"""Runs of the same thing: one, several, or a file or folder of runs, also of other tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """Run of a side.

    Attributes:
        file: File of the run, or the side's letter with a number.
        tool: Tool that wrote it.
        warnings: Reasons not to trust it, a sentence each.
    """

    file: str
    tool: Literal["weir", "wrk", "ab", "oha", "k6", "jmeter", "vegeta"]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """Runs of the same thing.

    Attributes:
        letter: Name in the pairs; A is the baseline.
        name: Path that was given, or the letter.
        runs: Runs of the side.
        untrusted: Whether more than one run in five is not trusted: then the side neither wins nor draws.
    """

    letter: str
    name: str
    runs: tuple[ComparedRun, ...]
    untrusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on a metric of the other side.

    Attributes:
        name: Metric: rate, mean, p50 (any percentile), max, errors; of steps also checks, the fraction that holds.
        unit: Unit; empty for fractions.
        better: Direction that is better.
        scale: Comparison as a ratio, or as a difference in points.
        finding: Finding about the other side.
        reason: Reason why it is inconclusive.
        base: Figure of the baseline: the mean over its runs, of ratios the geometric one.
        other: Figure of the other side.
        effect: Other divided by base; for points, the difference.
        ci_low: Lower end of the confidence interval of the effect, for this verdict alone.
        ci_high: Upper end of the confidence interval.
        p_value: Probability of such a difference without a real one, corrected by Holm's method for all verdicts.
        confidence: Confidence of the finding, in [0, 1].
        base_runs: Number of runs of the baseline that were used.
        other_runs: Number of runs of the other side that were used.
    """

    name: str
    unit: str
    better: Literal["higher", "lower"]
    scale: Literal["ratio", "points"]
    finding: Literal["better", "worse", "same", "inconclusive"]
    reason: str | None
    base: float | None
    other: float | None
    effect: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    confidence: float | None
    base_runs: int
    other_runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStep:
    """Step of a side and of the baseline, or of one of them.

    Attributes:
        name: Name of the step, as in the runs.
        only: Letter of the only side that has the step; None if both have it.
        verdicts: Verdicts on times, errors and checks, one per metric; empty if only one side has the step.
    """

    name: str
    only: str | None
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Side against the baseline.

    Attributes:
        base: Letter of the baseline.
        other: Letter of the other side.
        finding: Finding over all metrics, of steps too; mixed is better in some and worse in others.
        by_round: Whether runs were compared with those of the same round.
        verdicts: Verdicts, one per metric.
        steps: Steps of scenarios, in order; empty without scenarios.
    """

    base: str
    other: str
    finding: Literal["better", "worse", "mixed", "same", "inconclusive"]
    by_round: bool
    verdicts: tuple[Verdict, ...]
    steps: tuple[ComparedStep, ...]

    def verdict(self, metric: str) -> Verdict:
        """Look up the verdict on a metric.

        Args:
            metric: Name of the metric, e.g. ``p99``.

        Returns:
            Its verdict.

        Raises:
            KeyError: The metric was not compared.
        """
        for verdict in self.verdicts:
            if verdict.name == metric:
                return verdict
        raise KeyError(metric)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """Comparison of all sides with the first. `print` shows the text report.

    Attributes:
        weir: Version of weir that wrote it.
        schema: Version of this format; it grows when a field changes its meaning or is removed.
        min_effect: Smallest effect that matters, as a fraction: a ratio within 1 +- this is the same.
        min_effect_points: Smallest effect for metrics that are compared as differences of fractions.
        confidence: Confidence level of all verdicts together.
        sides: Sides of the comparison; the first is the baseline.
        notes: Notes on the verdicts, a sentence each.
        pairs: Each other side against the baseline.
    """

    weir: str
    schema: int
    min_effect: float
    min_effect_points: float
    confidence: float
    sides: tuple[ComparedSide, ...]
    notes: tuple[str, ...]
    pairs: tuple[Pair, ...]
    _texts: tuple[str, str, str, str] = field(compare=False)

    @property
    def is_worse(self) -> bool:
        """Whether a side is worse than the first in a metric, the condition for exit code 1 of ``weir compare``."""
        return any(pair.finding in ("worse", "mixed") for pair in self.pairs)

    def to_json(self) -> str:
        """Write the comparison as JSON.

        Returns:
            An object as `docs/schema/compare.schema.json` describes it.
        """
        return self._texts[0]

    def to_dict(self) -> dict[str, Any]:
        """Convert the comparison to plain data.

        Returns:
            The object of `to_json` as a new dictionary.
        """
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def markdown(self) -> str:
        """Write the comparison as Markdown, for a comment on a pull request.

        Returns:
            The Markdown.
        """
        return self._texts[2]

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """Write the comparison as an HTML report (`docs/html-report.md`), which sends no network request.

        Args:
            path: File to write, if any.

        Returns:
            The HTML.

        Raises:
            OSError: The file cannot be written.
        """
        return write_page(self._texts[3], path)

    def __str__(self) -> str:
        """Return the text report."""
        return self._texts[1]

    def __repr__(self) -> str:
        """Return the findings in one line."""
        found = ", ".join(f"{pair.other} vs {pair.base}: {pair.finding}" for pair in self.pairs)
        return f"<weir.Comparison {found}>"


def compare(base: Side, *others: Side, **flags: Flag) -> Comparison:
    """Compare sides of runs: better, worse, the same, or inconclusive.

    Args:
        base: Baseline of all others.
        others: At least one side. A verdict needs three runs per side; ten are better, made in turns.
        flags: Flags of ``weir compare``, with ``_`` for ``-``: ``metric=["rate", "p99"]``, ``min_effect="3%"``,
            ``confidence="95%"``, ``force=True``, ``seed=1``.

    Returns:
        The comparison, with a pair for each other side.

    Raises:
        UsageError: A side cannot be read, or is of another machine, plan or tool; or a flag is invalid.
    """
    names: list[str] = []
    given: list[list[_weir.RunHandle] | None] = []
    for number, side in enumerate((base, *others)):
        if isinstance(side, str | PathLike):
            names.append(fspath(side))
            given.append(None)
        else:
            names.append(chr(ord("A") + number) if number < 26 else str(number + 1))
            given.append([run._handle for run in ([side] if isinstance(side, Run) else side)])
    texts = _weir.compare(names, texts_by_name(flags), given)
    return _read(Comparison, json.loads(texts[0]), _texts=texts)
