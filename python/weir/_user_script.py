"""Classes of users for a load, as the generator asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir import _weir
from weir._task_errors import TaskErrors
from weir._user_factory import HeadLines, UserFactory

__all__: list[str] = []


class UserScript:
    """Classes of users for a load, as the generator asks for them.

    Attributes:
        classes: The classes.
        host: URL in place of their hosts; empty if they name them.
        url: URL of the first class that names a host.
        scenarios: Names of the classes.
        users: Number of users that the classes ask for, if they do.
        duration_s: Duration that they ask for.
    """

    users: int | None = None
    duration_s: float | None = None

    def __init__(self, classes: Sequence[type], url: str) -> None:
        """Take the classes; `url` stands in place of their hosts."""
        self.classes = classes
        self.scenarios = [one.__name__ for one in classes]
        self.host = url
        hosts = [host for one in classes if (host := getattr(one, "host", None))]
        self.url: str | None = url or (hosts[0] if hosts else None)
        self._factory: UserFactory | None = None
        self._errors = TaskErrors()

    def factory(
        self,
        *,
        users: int,
        seed: int,
        headers: Sequence[tuple[str, str]],
        route: _weir.CallRoute,
        until_s: float | None,
    ) -> UserFactory:
        """Return what makes the users."""
        defaults = [("User-Agent", f"weir/{_weir.__version__}"), ("Accept", "*/*")]
        self._factory = UserFactory(self.classes, seed, HeadLines(defaults, headers), self.host or None, route)
        return self._factory

    def coordinate(self, users: int) -> None:
        """Take note that other processes drive the users."""
        self._errors = TaskErrors()

    def end_part(self) -> str:
        """Return the exceptions of the tasks of this process, for the one that reports them."""
        return self._found().to_json()

    def end_search(self, reports: Sequence[str]) -> None:
        """Report the exceptions of the tasks of several loads."""
        self.add_reports(reports)
        self.report()

    def done(self, run: Any, reports: Sequence[str]) -> int | None:
        """Report the exceptions of the tasks."""
        del run
        self.add_reports(reports)
        self.report()
        return None

    def add_reports(self, reports: Sequence[str]) -> None:
        """Take over the exceptions of other processes."""
        for one in reports:
            self._found().add_json(one)

    def report(self) -> None:
        """Print the exceptions of the tasks."""
        self._found().report()

    def _found(self) -> TaskErrors:
        return self._errors if self._factory is None else self._factory.errors
