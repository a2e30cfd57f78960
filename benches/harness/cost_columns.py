"""Columns of tables that say what a request costs a generator."""

from __future__ import annotations

from harness import results
from harness.results import Section
from harness.table import Row, number


def cpu(section: Section, case: str, name: str) -> float | None:
    """Return the CPU time per request."""
    return section.median(case, name, results.cpu)


def costs(section: Section, case: str, name: str) -> Row:
    """Return a generator's first columns: requests per second, and CPU time per request."""
    return [
        section.marked(case, name),
        number(section.median(case, name, results.rate), "{:,.0f}"),
        number(cpu(section, case, name), "{:.2f}"),
        number(section.median(case, name, lambda trial: trial.user_us_per_request), "{:.2f}"),
        number(section.median(case, name, lambda trial: trial.sys_us_per_request), "{:.2f}"),
    ]
