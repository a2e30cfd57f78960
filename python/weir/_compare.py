"""`weir.compare`: is one side worse than the other, and is the difference real?

Each class here is one object of `docs/compare.schema.json`, field by field; a test holds the two and Rust's own form of
them together. Names carry their units; shares are in [0, 1].
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

from weir import _weir
from weir._flags import Flag, arguments
from weir._page import write_page
from weir._run import Run, _read

__all__ = ["ComparedRun", "ComparedSide", "Comparison", "Pair", "Side", "Verdict", "compare"]

Side: TypeAlias = Run | Iterable[Run] | str | PathLike[str]
"""Runs of the same thing: one, several, or a file or a folder of them, also those of other tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run of a side."""

    file: str
    """Its file, or the side's letter with a number."""
    tool: Literal["weir", "wrk", "ab", "oha", "k6", "jmeter", "vegeta"]
    """The tool that made it."""
    doubts: tuple[str, ...]
    """What speaks against it, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """Runs of the same thing."""

    letter: str
    """Its name in the pairs; A is the first."""
    name: str
    """The path that was given, or its letter."""
    runs: tuple[ComparedRun, ...]
    """Its runs."""
    doubtful: bool
    """Whether more than one run in five is not to be trusted: then it neither wins nor draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is found about a metric of the other side."""

    name: str
    """The metric: rate, mean, p50 (any percentile), max, errors."""
    unit: str
    """Its unit; empty for shares."""
    better: Literal["higher", "lower"]
    """Which way is the good one."""
    scale: Literal["ratio", "points"]
    """How two figures are compared: as a ratio, or as a difference."""
    finding: Literal["better", "worse", "same", "unclear"]
    """What is found."""
    why: str | None
    """Why it is unclear."""
    base: float | None
    """The first side's figure: the mean over its runs, of ratios the geometric one."""
    other: float | None
    """The other side's figure."""
    effect: float | None
    """The other as a multiple of the first; of points, the difference."""
    low: float | None
    """The lower end of the interval that holds the true effect with the confidence asked for."""
    high: float | None
    """Its upper end."""
    p: float | None
    """How likely a difference this large would be if there were none; corrected for all verdicts."""
    sure: float | None
    """How sure the finding is: 1 less the chance of finding it where it is not."""
    base_runs: int
    """Runs of the first side that were used."""
    other_runs: int
    """Runs of the other side that were used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A side against the first."""

    base: str
    """The first side's letter."""
    other: str
    """The letter of the side that the findings are about."""
    finding: Literal["better", "worse", "mixed", "same", "unclear"]
    """All metrics in a word; mixed is better in some and worse in others."""
    by_round: bool
    """Whether runs were compared with those of the same round."""
    verdicts: tuple[Verdict, ...]
    """One per metric."""

    def verdict(self, metric: str) -> Verdict:
        """Return the verdict on a metric.

        Raises:
            KeyError: It was not compared.
        """
        for verdict in self.verdicts:
            if verdict.name == metric:
                return verdict
        raise KeyError(metric)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison:
    """Sides held against the first of them. `print` shows it as the text report."""

    weir: str
    """The version of weir that made it."""
    schema: int
    """The version of this object's form in JSON."""
    minimum: float
    """The least effect that matters, as a share: a ratio within 1 +- this is the same."""
    minimum_points: float
    """The same for metrics that are compared as differences of shares."""
    confidence: float
    """How sure a verdict has to be, over all verdicts together."""
    sides: tuple[ComparedSide, ...]
    """What was compared; the first is what all others are held against."""
    notes: tuple[str, ...]
    """What a reader should know before the verdicts, a sentence each."""
    pairs: tuple[Pair, ...]
    """Each other side against the first."""
    _texts: tuple[str, str, str, str] = field(compare=False)

    @property
    def is_worse(self) -> bool:
        """Whether some side is worse than the first in some metric: what ``weir compare`` ends with code 1 for."""
        return any(pair.finding in ("worse", "mixed") for pair in self.pairs)

    def to_json(self) -> str:
        """Return all of it as JSON (`docs/compare.schema.json`)."""
        return self._texts[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the object of `to_json` as a new dictionary."""
        data: dict[str, Any] = json.loads(self.to_json())
        return data

    def markdown(self) -> str:
        """Return it as Markdown, for a comment on a pull request."""
        return self._texts[2]

    def html(self, path: str | PathLike[str] | None = None) -> str:
        """Return it as a page to look at (`docs/page.md`): one HTML file that asks no network for anything.

        Args:
            path: A file to write it to, too.

        Raises:
            OSError: The file cannot be written.
        """
        return write_page(self._texts[3], path)

    def __str__(self) -> str:
        """Return the text report."""
        return self._texts[1]

    def __repr__(self) -> str:
        """Say in one line what was found."""
        found = ", ".join(f"{pair.other} against {pair.base}: {pair.finding}" for pair in self.pairs)
        return f"<weir.Comparison {found}>"


def compare(base: Side, *others: Side, **flags: Flag) -> Comparison:
    """Hold runs against each other: better, worse, the same, or not to be told.

    Args:
        base: What all others are held against.
        others: One side at least. Three runs a side are the least for a verdict; ten are better, made in turns.
        flags: The flags of ``weir compare``, with ``_`` for ``-``: ``metric=["rate", "p99"]``, ``minimum="3%"``,
            ``confidence="95%"``, ``force=True``, ``seed=1``.

    Raises:
        UsageError: A side cannot be read, or is of another machine, plan or tool; or a flag makes no sense.
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
    texts = _weir.compare([*arguments(flags), "--", *names], given)
    return _read(Comparison, json.loads(texts[0]), _texts=texts)
