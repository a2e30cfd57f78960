"""A locustfile as the generator asks for it."""

from __future__ import annotations

import inspect
import json
import logging
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from weir._locust import arguments, greenlets
from weir._locust.absent_parts import absent_parts
from weir._locust.class_deal import LocustClassDeal
from weir._locust.environment import Environment, MasterRunner, WorkerRunner
from weir._locust.exception import StopUser
from weir._locust.player import Player
from weir._locust.shape import LoadTestShape, played
from weir._locust.stand_in import events
from weir._locust.users import HttpUser, User, play
from weir._run import Run
from weir._task import choose_by_tags
from weir._task_errors import TaskErrors

__all__ = ["LocustScript", "is_locustfile"]


def is_locustfile(module: ModuleType) -> bool:
    """Return whether a module has classes of users of Locust."""
    return any(isinstance(one, type) and issubclass(one, User) and not one.abstract for one in vars(module).values())


class LocustScript:
    """Classes of a locustfile, as the generator asks for them.

    Attributes:
        scenarios: Names of the classes.
        url: URL of the first class that names a host.
        users: Number of users that a shape asks for at most.
        duration_s: End of the shape.
    """

    def __init__(self, module: ModuleType, path: str, given: dict[str, Any]) -> None:
        """Prepare the classes of a module."""
        greenlets.require_greenlet(path)
        logging.basicConfig(level=logging.INFO, format="[%(asctime)s] %(levelname)s/%(name)s: %(message)s")
        classes = _members(module, User)
        if given["user"] is not None:
            classes = [one for one in classes if one.__name__ == given["user"]]
            if not classes:
                names = ", ".join(one.__name__ for one in _members(module, User))
                raise SystemExit(f"{path} has no class of users {given['user']}; there are {names}")
        for one in classes:
            choose_by_tags(one, given["tags"], given["exclude_tags"])
        # A class may add its tasks when a user begins.
        self._classes = [one for one in classes if one.tasks] or [one for one in classes if _is_prepared(one)]
        if not self._classes:
            raise SystemExit(f"{path} has no class with a task; mark a method with @task")
        self._given = given
        options = arguments.parsed(events, given["args"], given)
        options.locustfile = path
        self._environment = Environment(
            user_classes=self._classes, events=events, host=given["url"].rstrip("/") or None, parsed_options=options
        )
        self._environment.locustfile = path
        if given["role"] == "coordinator":
            self._environment.runner = MasterRunner(self._environment)
        elif given["role"] == "agent":
            self._environment.runner = WorkerRunner(self._environment, given["agent"])
        if given["tags"] or given["exclude_tags"]:
            self._environment.tags = given["tags"] or None
            self._environment.exclude_tags = given["exclude_tags"] or None
        shapes = _members(module, LoadTestShape)
        self.shape: list[tuple[float, int]] = []
        self.users: int | None = None
        self.duration_s: float | None = None
        if shapes:
            self._set_shape(shapes[0](), path)
        environment = self._environment
        events.init.fire(environment=environment, runner=environment.runner, web_ui=None)
        # `init` may have chosen among the classes.
        self._classes = [one for one in environment.user_classes if one in self._classes] or self._classes
        self.scenarios = [one.__name__ for one in self._classes]
        if not given["agent"]:
            for note in absent_parts(module, path):
                sys.stderr.write(f"weir: {note}\n")
            _note_own_clients(self._classes)
        hosts = [host for one in self._classes if (host := one.host)]
        # `init` may have set the host.
        self.url: str | None = environment.host or (hosts[0] if hosts else None)
        self._factory: GreenletFactory | None = None

    def _set_shape(self, shape: LoadTestShape, path: str) -> None:
        shape.runner = self._environment.runner
        self._environment.shape_class = shape
        self.shape, self.duration_s = played(shape)
        self._environment.runner.target_user_count = 0
        if not self.shape:
            raise SystemExit(f"{path}: {type(shape).__name__}.tick() returns no users at the start")
        self.users = max(count for _, count in self.shape)
        if self._given["users"] and self._given["users"] < self.users and not self._given["agent"]:
            name, users = type(shape).__name__, self._given["users"]
            sys.stderr.write(f"weir: {name} asks for up to {self.users} users; there are {users} at most, as given\n")

    def factory(
        self, *, users: int, seed: int, headers: Sequence[tuple[str, str]], route: object, until_s: float | None
    ) -> GreenletFactory:
        """Return what makes the users; the run begins."""
        environment = self._environment
        environment._given_headers = list(headers)
        self._factory = GreenletFactory(environment, self._classes, seed, self.shape)
        greenlets.use_cooperative_sleep()
        self._begin(users)
        return self._factory

    def coordinate(self, users: int) -> None:
        """Begin the run, whose users other processes drive."""
        self._begin(users)

    def _begin(self, users: int) -> None:
        environment = self._environment
        options = environment.parsed_options
        options.num_users = options.users = users
        environment.runner.target_user_count = users
        environment.runner.state = "running"
        events.test_start.fire(environment=environment)
        events.spawning_complete.fire(user_count=users)

    def end_part(self) -> str:
        """Tell the listeners of the end; return the exceptions of the tasks for the process that reports them."""
        self._end()
        events.quit.fire(exit_code=self._environment.process_exit_code or 0)
        sys.stdout.flush()
        environment = self._environment
        errors, methods = environment._task_errors.to_json(), environment._step_methods.to_json()
        environment._task_errors = TaskErrors()
        return json.dumps([errors, methods])

    def end_search(self, reports: Sequence[str]) -> None:
        """Tell the listeners of the end of several loads, and report the exceptions of the tasks."""
        self._add_reports(reports)
        self._end()
        self._environment._task_errors.report()
        sys.stdout.flush()

    def done(self, handle: Any, reports: Sequence[str]) -> int | None:
        """Tell the listeners of the end, and report the exceptions of the tasks."""
        environment = self._environment
        self._add_reports(reports)
        environment.stats.take(Run._of(handle), environment._step_methods)
        self._end()
        environment._task_errors.report()
        code = environment.process_exit_code
        events.quit.fire(exit_code=code or 0)
        sys.stdout.flush()
        return code

    def _add_reports(self, reports: Sequence[str]) -> None:
        # A process whose script has blocked may have none.
        for errors, methods in filter(None, map(json.loads, reports)):
            self._environment._task_errors.add_json(errors)
            self._environment._step_methods.add_json(methods)

    def _end(self) -> None:
        environment = self._environment
        environment.runner.state = "stopped"
        events.test_stopping.fire(environment=environment)
        events.test_stop.fire(environment=environment)
        events.quitting.fire(environment=environment, reverse=True)


class GreenletFactory:
    """Users of a locustfile by their numbers, as the load asks for them."""

    def __init__(
        self, environment: Environment, classes: Sequence[Any], seed: int, shape: list[tuple[float, int]]
    ) -> None:
        """Make users of these classes."""
        self.scenarios = [one.__name__ for one in classes]
        self.shape = shape
        self._environment = environment
        self._classes = classes
        self._seed = seed
        self._deal = LocustClassDeal(classes)
        self._users: dict[int, tuple[Any, Any]] = {}

    def user(self, number: int) -> tuple[object, Any, int]:
        """Make a user; return its greenlet, the function that resumes it, and the index of its class."""
        index = self._deal.index(number)
        kind = self._classes[index]
        user = kind.__new__(kind)
        user._weir_player = Player(self._environment, self._seed, number)
        user.__init__(self._environment)
        counts = self._environment._class_counts
        counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        driver, resume = greenlets.start(user, play)
        self._users[number] = user, driver
        return driver, resume, index

    def add_step(self, index: int, step: str, name: str, method: str) -> None:
        """Take note of a step: requests of this name and method, by users of the class of this index."""
        self._environment._step_methods.add(self.scenarios[index], step, name, [method])

    def ending(self, number: int) -> tuple[object, Any] | None:
        """Return the greenlet of a user and a function that ends it: its task is left, and `on_stop` called."""
        found = self._users.pop(number, None)
        if found is None or not found[1]:
            return None
        return found[1], greenlets.Ending(found[1]).resume

    def stop(self) -> None:
        """Call `on_stop` of users that have not ended. Nothing is sent any more: a request ends the method."""
        for user, _ in self._users.values():
            client: Any = getattr(user, "client", None)
            if hasattr(client, "_is_over"):
                client._is_over = True
            if type(user).on_stop is not User.on_stop:
                _stop(user)


def _stop(user: Any) -> None:
    try:
        user.on_stop()
    except StopUser:
        return
    except Exception as error:
        user._weir_player.add_error(f"{type(user).__name__}.on_stop", error, user)


def _is_prepared(one: Any) -> bool:
    return not (one.on_start.__module__ == one.__init__.__module__ == User.__module__)


def _members(module: ModuleType, base: Any) -> list[Any]:
    found: list[Any] = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return list(dict.fromkeys(one for one in found if not one.abstract))


def _note_own_clients(classes: Sequence[Any]) -> None:
    for one in classes:
        if not issubclass(one, HttpUser):
            try:
                where = f"{inspect.getsourcefile(one)}:{inspect.getsourcelines(one)[1]}"
            except OSError:
                where = one.__module__
            sys.stderr.write(
                f"weir: {where}: {one.__name__} is a User without HTTP; what a client of its own sends is not counted, "
                "and blocks the other users\n"
            )
