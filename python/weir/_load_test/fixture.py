"""`weir_load`: a load, and the assertions on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weir._compare import Comparison, compare
from weir._errors import Interrupted, UsageError, WeirError
from weir._load import load
from weir._load_test import findings
from weir._load_test.record import LoadRecord
from weir._load_test.turn import turn
from weir._run import Run
from weir._user import User

if TYPE_CHECKING:
    from weir._load_test.session import LoadTestSession

__all__ = ["WeirLoad"]


class WeirLoad:
    """Load function of a test: the value of the fixture `weir_load`.

    Attributes:
        base_url: URL before paths; empty without one.
    """

    base_url: str

    def __init__(self, session: LoadTestSession, test: str, base_url: str) -> None:
        """Make the function of one test; the fixture does."""
        self._session = session
        self._test = test
        self._names: set[str] = set()
        self.base_url = base_url

    def __repr__(self) -> str:
        """Return the test."""
        return f"<weir_load of {self._test}>"

    def __call__(
        self,
        url: str | type[User] | Sequence[type[User]] = "",
        *,
        name: str | None = None,
        repeat: int | None = None,
        asserts: bool = True,
        **options: Any,
    ) -> Run:
        """Generate load, and fail the test if an objective is missed or not one request succeeded.

        Args:
            url: Path, to which the fixture `weir_url` is prepended; or what `weir.load` takes.
            name: Name of the load in saved runs and reports. Default: its number in the test, from 1.
            repeat: Number of runs; each must meet the objectives. Default: `--weir-repeat`.
            asserts: Whether anything about the runs fails the test; otherwise they are only measured, saved and
                compared.
            options: Options of `weir.load`.

        Returns:
            The result; of several runs, the last one.

        Raises:
            AssertionError: An objective is missed, no request succeeded; or, as options of pytest say, a run is not
                trusted or worse than the last good one.
            UsageError: An option is invalid, or the folder of saved runs cannot be written.
            SetupError: The service cannot be reached, or the system lacks resources for the run.
            Interrupted: Ctrl-C during the load.
        """
        __tracebackhide__ = True
        try:
            problems, run = self._load(url, name, repeat, options)
        except (WeirError, TypeError, Interrupted) as error:
            # One frame, the test's own, instead of those between it and the cause.
            raise error.with_traceback(None) from None
        if asserts and problems:
            raise AssertionError("\n".join(problems))
        return run

    def _load(
        self, url: object, name: str | None, repeat: int | None, options: dict[str, Any]
    ) -> tuple[list[str], Run]:
        """Generate load, save it and compare it.

        Returns:
            What fails the test, in lines; and the last run.
        """
        session, saved = self._session, self._session.saved
        name = self._name(name)
        repeat = session.options.repeat if repeat is None else repeat
        if repeat < 1:
            raise UsageError(f"repeat: invalid value {repeat}: not a number above 0; write e.g. 3")
        options = self._with_base_url(url, options)
        with ExitStack() as stack:
            with self._saving():
                stack.enter_context(turn(saved.prepare()))
            good, damaged = saved.last_good(self._test, name) if session.options.compare != "off" else (None, [])
            runs: list[Run] = []
            try:
                # One by one: those before an exception are saved.
                for _ in range(repeat):
                    runs.append(load(**options))
            except Interrupted as interrupt:
                runs.append(interrupt.run)
                raise
            finally:
                if runs:
                    with self._saving():
                        folder = saved.save(self._test, name, runs)
                    record = LoadRecord.of(self._test, name, runs, folder)
                    session.records.append(replace(record, notes=tuple(damaged)))
        comparison: Comparison | str | None = None
        if good:
            comparison = _compared(good.runs, runs, session.options.min_effect)
            session.records[-1] = session.records[-1].compared(comparison, good.folder)
        return findings.problems(runs, session.options, comparison, folder), runs[-1]

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """Turn errors of the folder of saved runs into one that has the remedy."""
        try:
            yield
        except OSError as error:
            place, reason = error.filename or self._session.saved.root, error.strerror or error
            raise UsageError(
                f"cannot save runs in {place}: {reason}; --weir-runs DIR chooses another folder"
            ) from error

    def _name(self, name: str | None) -> str:
        """Return the name of the next load, unique in the test."""
        if name is None:
            name = str(len(self._names) + 1)
        elif not isinstance(name, str):
            raise TypeError(f"name: text is needed, not {type(name).__name__}")
        if not name or name in self._names:
            raise UsageError(f"name: invalid name {name!r}: empty, or of another load in this test; write another one")
        self._names.add(name)
        return name

    def _with_base_url(self, url: object, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of `weir.load`, with the base URL before a path."""
        if not isinstance(url, str):
            if self.base_url and "host" not in options:
                return {"url": url, "host": self.base_url, **options}
        elif url.startswith(("/", "?")) or (not url and self.base_url):
            if not self.base_url:
                raise UsageError(
                    f"url: {url!r} is a path, and there is no base URL; write --weir-url http://localhost:8080, "
                    "weir_url in the configuration of pytest, or a fixture weir_url"
                )
            return {"url": self.base_url.rstrip("/") + url if url else self.base_url, **options}
        return {"url": url, **options}


def _compared(good: Sequence[Run], runs: Sequence[Run], min_effect: float | None) -> Comparison | str:
    """Compare runs with the last good ones; a text is the reason why they cannot be compared."""
    try:
        return compare(good, runs, min_effect=min_effect)
    except UsageError as error:
        return " ".join(str(error).split())
