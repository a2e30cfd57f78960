"""Options of load tests: from the command line, or else from pytest's configuration file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["LoadTestOptions"]

COMPARE = ("off", "report", "fail")
UNTRUSTED = ("fail", "warn", "ignore")


@dataclass(frozen=True)
class LoadTestOptions:
    """Options of load tests.

    Attributes:
        runs: Folder of saved runs.
        keep: Number of saved recordings per load.
        compare: What a regression does: nothing is compared, it is reported, or it fails the test.
        min_effect: Smallest change that matters, as a fraction in [0, 1]; None is the default of `weir.compare`.
        repeat: Runs per load.
        untrusted: What a run that is not trusted does.
    """

    runs: Path
    keep: int
    compare: str
    min_effect: float | None
    repeat: int
    untrusted: str

    @classmethod
    def read(cls, config: pytest.Config) -> LoadTestOptions:
        """Read the options.

        Raises:
            pytest.UsageError: A value is invalid.
        """
        return cls(
            runs=_folder(config),
            keep=_count(config, "keep", 10),
            compare=_choice(config, "compare", COMPARE, "report"),
            min_effect=_fraction(config, "min-effect"),
            repeat=_count(config, "repeat", 1),
            untrusted=_choice(config, "untrusted", UNTRUSTED, "warn"),
        )


def _value(config: pytest.Config, name: str) -> tuple[str, str]:
    """Return where an option was set, for messages, and its value."""
    key = "weir_" + name.replace("-", "_")
    given = config.getoption(key)
    return (key, config.getini(key)) if given is None else (f"--weir-{name}", given)


def _folder(config: pytest.Config) -> Path:
    place, value = _value(config, "runs")
    # As pytest's own: a path on the command line is of the working directory, one of the file is of its folder.
    base = config.invocation_params.dir if place.startswith("--") else config.rootpath
    return base / (value or ".weir/runs")


def _choice(config: pytest.Config, name: str, choices: tuple[str, ...], default: str) -> str:
    place, value = _value(config, name)
    if value and value not in choices:
        raise pytest.UsageError(f"{place}: unknown value {value!r}; choose {', '.join(choices[:-1])} or {choices[-1]}")
    return value or default


def _count(config: pytest.Config, name: str, default: int) -> int:
    place, value = _value(config, name)
    if value and not (value.isascii() and value.isdigit() and int(value) > 0):
        raise pytest.UsageError(f"{place}: invalid value {value!r}: not a number above 0; write e.g. {default}")
    return int(value or default)


def _fraction(config: pytest.Config, name: str) -> float | None:
    place, value = _value(config, name)
    if not value:
        return None
    found = re.fullmatch(r"(\d*\.?\d+)(%?)", value, re.ASCII)
    fraction = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    if fraction > 1:
        raise pytest.UsageError(f"{place}: invalid percentage {value!r}: not in 0% to 100%; write e.g. 3%")
    return fraction
