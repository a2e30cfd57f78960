"""Load tests of a pytest session: their outcomes, their reports, and the summary.

A worker of xdist runs tests and sends their reports, with the records of their loads in them, to the process that
prints the summary. Without xdist both are the same process.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from weir._load_test.options import LoadTestOptions
from weir._load_test.record import LoadRecord
from weir._load_test.saved_runs import SavedRuns

__all__ = ["LoadTestSession"]

_REPORTED = "weir_loads"
"""Attribute of test reports."""


class LoadTestSession:
    """Plugin object of a session with `--weir`.

    Attributes:
        options: Options of the session.
        saved: Saved runs.
        records: Records of the test that runs.
    """

    def __init__(self, config: pytest.Config) -> None:
        """Read the options of pytest.

        Raises:
            pytest.UsageError: An option is invalid.
        """
        self.options = LoadTestOptions.read(config)
        self.saved = SavedRuns(self.options.runs, self.options.keep)
        self.records: list[LoadRecord] = []
        self._reported: list[LoadRecord] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Add the outcome to the saved runs, and records to the report."""
        report: pytest.TestReport = (yield).get_result()
        # Loads of a fixture belong to the test that needs it.
        if not self.records or (report.when == "setup" and report.passed):
            return
        # A test that was expected to fail, and passed, is not what its author calls good.
        passed = report.passed and not hasattr(report, "wasxfail")
        for record in self.records:
            if passed:
                self.saved.mark_good(Path(record.folder))
            title = f"weir {record.load}" if record.load != "1" else "weir"
            report.sections.append((title, record.section))
        setattr(report, _REPORTED, [record.to_dict() for record in self.records])
        self.records = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the records of a report."""
        self._reported += map(LoadRecord.from_dict, getattr(report, _REPORTED, ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line per load, and what is to be known about them."""
        # An interrupted test has no report.
        records = self._reported + self.records
        if not records:
            return
        terminalreporter.write_sep("=", "weir")
        for line, is_bad in self._lines(records):
            terminalreporter.write_line(line, red=is_bad)
        for note in self._notes(records):
            terminalreporter.write_line(note, yellow=True)

    def _lines(self, records: list[LoadRecord]) -> list[tuple[str, bool]]:
        """Return the lines of the loads, in columns, each with whether it is worse."""
        has_changes = self.options.compare != "off"
        rows = [(*record.line, record.change if has_changes else "") for record in records]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            ("  ".join([*map(str.ljust, row, widths), _place(record)]), record.is_worse)
            for row, record in zip(rows, records, strict=True)
        ]

    def _notes(self, records: list[LoadRecord]) -> list[str]:
        notes = [f"{_place(record)}: {note}" for record in records for note in record.notes]
        if self.options.untrusted != "ignore":
            notes += [f"{_place(record)}: {record.distrust()}" for record in records if record.untrusted]
        without_verdict = sum(record.has_too_few for record in records)
        if self.options.compare == "fail" and without_verdict:
            notes.append(
                f"no verdict on {without_verdict} of {len(records)} loads: it needs 3 runs now, and 3 when the test "
                "passed last; write --weir-repeat 3"
            )
        return notes


def _place(record: LoadRecord) -> str:
    return record.test if record.load == "1" else f"{record.test} ({record.load})"
