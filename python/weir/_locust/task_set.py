"""Sets of tasks."""

from __future__ import annotations

import time
from typing import Any, ClassVar, NoReturn

from weir._locust.exception import (
    InterruptTaskSet,
    MissingWaitTimeError,
    RescheduleTask,
    RescheduleTaskImmediately,
    StopTest,
    StopUser,
    UserEnd,
)
from weir._task import tag, task, tasks_of

__all__ = ["DefaultTaskSet", "SequentialTaskSet", "TaskSet", "TaskSetMeta", "tag", "task"]


class TaskSetMeta(type):
    """Class of sets of tasks: it lists their tasks."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> TaskSetMeta:
        """List the tasks of a class."""
        members["tasks"] = tasks_of(bases, members)
        return super().__new__(cls, name, bases, members)


class TaskSet(metaclass=TaskSetMeta):
    """Set of tasks, of which a user does one after the other until it is interrupted."""

    tasks: ClassVar[list[Any]] = []
    min_wait: float | None = None
    max_wait: float | None = None
    wait_function: Any = None

    def __init__(self, parent: Any) -> None:
        """Begin the set within a user or another set."""
        self._task_queue: list[Any] = []
        self._user: Any = parent if not isinstance(parent, TaskSet) else parent._user
        self._parent = parent
        if not hasattr(type(self), "wait_time") and hasattr(parent, "wait_time"):
            self.wait_time = parent.wait_time  # type: ignore[method-assign]

    @property
    def user(self) -> Any:
        """User that does the tasks."""
        return self._user

    @property
    def parent(self) -> Any:
        """User or set around the set."""
        return self._parent

    @property
    def client(self) -> Any:
        """Client of the user."""
        return self._user.client

    def on_start(self) -> None:
        """Prepare the set before its first task."""

    def on_stop(self) -> None:
        """Clean up when the set is interrupted."""

    def run(self) -> None:
        """Do tasks until the set is interrupted or the user ends."""
        self._begun_s = time.monotonic()
        try:
            self.on_start()
            while True:
                self._run_next()
        except InterruptTaskSet as interrupt:
            self.on_stop()
            raise (RescheduleTaskImmediately if interrupt.reschedule else RescheduleTask)() from interrupt
        except (StopUser, UserEnd):
            self.on_stop()
            raise

    def _run_next(self) -> None:
        name = "task"
        try:
            if not self._task_queue:
                self.schedule_task(self.get_next_task())
            one = self._task_queue.pop(0)
            name = getattr(one, "__name__", name)
            self.execute_task(one)
        except RescheduleTaskImmediately:
            self.user._end_task(False, 0.0)
        except RescheduleTask:
            self.wait()
        except (InterruptTaskSet, StopUser, StopTest):
            raise
        except Exception as error:
            self.user._task_failed(f"{type(self._owner()).__name__}.{name}", error, self)
            self.wait(has_failed=True)
        else:
            self.wait()

    def _owner(self) -> Any:
        """Return the object whose class has the tasks."""
        return self

    def execute_task(self, one: Any) -> None:
        """Do a task: a method, a function of the user, or a set of tasks."""
        if isinstance(one, type):
            one(self).run()
        elif hasattr(one, "__self__"):
            one()
        else:
            one(self)

    def schedule_task(self, task_callable: Any, first: bool = False) -> None:
        """Put a task into the queue."""
        self._task_queue.insert(0 if first else len(self._task_queue), task_callable)

    def get_next_task(self) -> Any:
        """Choose a task."""
        if not self.tasks:
            raise LookupError(f"{type(self).__name__} has no task; mark a method with @task")
        return self.user.random.choice(self.tasks)

    def wait_time(self) -> float:
        """Return the wait after a task in seconds."""
        if self.user.wait_time:
            return float(self.user.wait_time())
        if self.min_wait is not None and self.max_wait is not None:
            return float(self.user.random.randint(int(self.min_wait), int(self.max_wait))) / 1000
        raise MissingWaitTimeError(f"{type(self).__name__} has no wait_time")

    def wait(self, has_failed: bool = False) -> None:
        """End the iteration, and wait for the next one."""
        self.user._end_task(has_failed, float(self.wait_time()))

    def interrupt(self, reschedule: bool = True) -> NoReturn:
        """End the set; with `reschedule` the next task of the set around it follows at once."""
        raise InterruptTaskSet(reschedule)


class SequentialTaskSet(TaskSet):
    """Set of tasks that are done in their order, again and again."""

    def __init__(self, parent: Any) -> None:
        """Begin the set within a user or another set."""
        super().__init__(parent)
        self._next_index = 0

    def get_next_task(self) -> Any:
        """Return the next task of the order."""
        if not self.tasks:
            raise LookupError(f"{type(self).__name__} has no task; mark a method with @task")
        one = self.tasks[self._next_index % len(self.tasks)]
        self._next_index += 1
        return one


class DefaultTaskSet(TaskSet):
    """Tasks of a user outside of any set."""

    def _owner(self) -> Any:
        """Return the user."""
        return self.user

    def get_next_task(self) -> Any:
        """Choose a task of the user."""
        return self.user._next_task()

    def execute_task(self, one: Any) -> None:
        """Do a task of the user."""
        if isinstance(one, type):
            one(self.user).run()
        else:
            one(self.user)
