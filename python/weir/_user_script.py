"""Classes of users for a load, as the generator asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir import _weir
from weir._user_factory import HeadLines, UserFactory

__all__: list[str] = []


class UserScript:
    """Classes of users for a load, as the generator asks for them.

    Attributes:
        url: URL of the first class that names a host.
        users: Number of users that the classes ask for, if they do.
        duration_s: Duration that they ask for.
    """

    users: int | None = None
    duration_s: float | None = None

    def __init__(self, classes: Sequence[type], url: str) -> None:
        """Take the classes; `url` stands in place of their hosts."""
        self._classes = classes
        self._url = url or None
        hosts = [host for one in classes if (host := getattr(one, "host", None))]
        self.url: str | None = url or (hosts[0] if hosts else None)
        self._factory: UserFactory | None = None

    def factory(
        self, *, users: int, seed: int, headers: Sequence[tuple[str, str]], until_s: float | None
    ) -> UserFactory:
        """Return what makes the users."""
        defaults = [("User-Agent", f"weir/{_weir.__version__}"), ("Accept", "*/*")]
        self._factory = UserFactory(self._classes, seed, HeadLines(defaults, headers), self._url)
        return self._factory

    def done(self, run: Any) -> int | None:
        """Report the exceptions of the tasks."""
        del run
        self.report()
        return None

    def report(self) -> None:
        """Print the exceptions of the tasks."""
        if self._factory is not None:
            self._factory.errors.report()
