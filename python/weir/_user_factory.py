"""Users of a load: objects of their classes, and the loops that drive them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator, Sequence
from typing import Any

from weir import _weir
from weir._errors import UsageError
from weir._grpc_call import http_url, is_of_calls, schemas_of
from weir._task import ClassDeal, user_random
from weir._task_errors import TaskErrors
from weir._think import think_time
from weir._user import User

__all__: list[str] = []

_Driver = tuple[object, Callable[[object], object], int]


class StopUser(Exception):  # noqa: N818  the name that Locust has
    """A user ends; raised by a task."""


class UserFactory:
    """Users by their numbers, as the load asks for them.

    Attributes:
        scenarios: Names of the classes.
        makes_calls: Whether their hosts are of gRPC.
        shape: Number of users over time: pairs of seconds and count; empty if all are always there.
    """

    def __init__(
        self, classes: Sequence[type], seed: int, head: HeadLines, url: str | None, route: _weir.CallRoute
    ) -> None:
        """Make users of these classes; `url` stands in place of their hosts, `route` leads to them."""
        self.classes = classes
        self.scenarios = [one.__name__ for one in classes]
        self.shape: list[tuple[float, int]] = []
        self.seed = seed
        self.head = head
        self.url = url
        self.errors = TaskErrors()
        self._deal = ClassDeal(classes)
        self._users: dict[int, tuple[Any, Any]] = {}
        hosts = [url or getattr(one, "host", None) for one in classes]
        self.makes_calls = any(is_of_calls(host) for host in hosts)
        if self.makes_calls and not all(is_of_calls(host) for host in hosts):
            raise UsageError("classes of users have hosts of gRPC and of HTTP; load them one after the other")
        self._calls: dict[type, _weir.CallSchemas] = {}
        for one in classes:
            if not one.tasks:  # type: ignore[attr-defined]
                raise UsageError(f"{one.__name__} has no task; mark a method with @weir.task")
            if not callable(one.think):  # type: ignore[attr-defined]
                think_time(one.think)  # type: ignore[attr-defined]
            head.of(one.headers)  # type: ignore[attr-defined]
        if self.makes_calls:
            for one, host in zip(classes, hosts, strict=True):
                self._calls[one] = schemas_of(one, host or "", head.named(one.headers), route)  # type: ignore[attr-defined]

    def user(self, number: int) -> _Driver:
        """Make a user; return its driver, the function that resumes it, and the index of its class."""
        index = self._deal.index(number)
        user: Any = self.classes[index]()
        user._weir_random = user_random(self.seed, number)
        host = self.url or user.host or ""
        user._weir_session = _weir.ScriptSession(http_url(host), self.head.of(user.headers), self.head.given)
        if self.makes_calls:
            user._weir_calls = self._calls[self.classes[index]]
        # For the tasks alone: a class may have these names for values of its own.
        for name, value in (("number", number), ("random", user._weir_random), ("session", user._weir_session)):
            if not hasattr(user, name):
                setattr(user, name, value)
        user._weir_prepare()
        driver = drive(user, self.errors)
        if type(user).on_stop is not User.on_stop:
            self._users[number] = user, driver
        return driver, driver.send, index

    def ending(self, number: int) -> tuple[object, Callable[[object], object]] | None:
        """Return the driver of the end of a user and the function that resumes it, if there is something to do.

        A task that the end of the load has interrupted is closed.
        """
        found = self._users.pop(number, None)
        if found is None:
            return None
        user, task = found
        try:
            task.close()
        except Exception as error:
            self.errors.add(f"{type(user).__name__}.task", error)
        driver = end(user, self.errors)
        return driver, driver.send

    def stop(self) -> None:
        """Call `on_stop` of users that have not ended. Nothing is sent any more: a request ends the method."""
        for user, _ in self._users.values():
            try:
                called = user.on_stop()
                if inspect.iscoroutine(called):
                    _finish(called)
            except Exception as error:
                self.errors.add(f"{type(user).__name__}.on_stop", error)


def _finish(called: Any) -> None:
    try:
        called.send(None)
    except StopIteration:
        return
    called.close()


@types.coroutine
def drive(user: Any, errors: TaskErrors) -> Generator[Any, Any, None]:
    """Play a user: `on_start`, and then one task after the other."""
    owner = type(user).__name__
    has_started = False
    while True:
        has_failed = False
        name = "on_start"
        try:
            if not has_started:
                called = user.on_start()
                if called is not None:
                    yield from called
                has_started = True
            one = user._weir_choose()
            name = getattr(one, "__name__", "task")
            called = one(user)
            if called is not None:
                yield from called
        except StopUser:
            yield from _left(user)
            yield False, None
        except Exception as error:
            has_failed = True
            errors.add(f"{owner}.{name}", explained(error))
        if user._weir_stream is not None:
            yield from _left(user)
        try:
            wait_s = user._weir_wait()
        except Exception as error:
            errors.add(f"{owner}.think", error)
            wait_s = 1.0
        yield has_failed, wait_s


@types.coroutine
def _left(user: Any) -> Generator[Any, Any, None]:
    """Leave the block of a stream that the task has entered by hand and not left."""
    if user._weir_stream is not None:
        yield from user._weir_stream.leave()


@types.coroutine
def end(user: Any, errors: TaskErrors) -> Generator[Any, Any, None]:
    """Play the end of a user: `on_stop`."""
    has_failed = False
    try:
        called = user.on_stop()
        if called is not None:
            yield from called
    except Exception as error:
        has_failed = not isinstance(error, StopUser)
        if has_failed:
            errors.add(f"{type(user).__name__}.on_stop", explained(error))
    yield has_failed, None


def explained(error: Exception) -> Exception:
    """Return the exception, with a remedy where a task has asked for asyncio."""
    if isinstance(error, RuntimeError) and "no running event loop" in str(error):
        text = "a task has no loop of asyncio; await self.get() and weir.sleep() in place of asyncio's"
        return RuntimeError(text).with_traceback(error.__traceback__)
    return error


class HeadLines:
    """Header lines of all requests: defaults, those of a class, and those of the command line."""

    given: str
    """Lines of the headers of the command line."""

    def __init__(self, defaults: Sequence[tuple[str, str]], given: Sequence[tuple[str, str]]) -> None:
        """Take the defaults of a kind of user, and the headers of the command line, which replace others."""
        self._defaults = defaults
        self._given = given
        self.given = lines_of({name: value for name, value in given if value})

    def of(self, headers: Any) -> str:
        """Return the lines with the headers of a class."""
        return lines_of(self.merged(headers))

    def merged(self, headers: Any) -> dict[str, str]:
        """Return the headers by name, with those of a class."""
        return self._joined(self._defaults, headers)

    def named(self, headers: Any) -> dict[str, str]:
        """Return the headers of a class and of the command line by name."""
        return self._joined((), headers)

    def _joined(self, defaults: Sequence[tuple[str, str]], headers: Any) -> dict[str, str]:
        found: dict[str, tuple[str, str]] = {}
        own = headers.items() if hasattr(headers, "items") else headers or ()
        for name, value in (*defaults, *own, *self._given):
            if value is None or value == "":
                found.pop(str(name).lower(), None)
            else:
                found[str(name).lower()] = (str(name), str(value))
        return dict(found.values())


def lines_of(headers: dict[str, str]) -> str:
    """Return headers as lines."""
    for name, value in headers.items():
        if any(mark in f"{name}{value}" for mark in "\r\n\0") or ":" in name:
            raise UsageError(f"headers: invalid {name!r}; names have no colon and values no line break")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
