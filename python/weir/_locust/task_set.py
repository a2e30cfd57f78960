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
        self._weir_begun_s = time.monotonic()
        try:
            self.on_start()
            while True:
                _run_next(self)
        except InterruptTaskSet as interrupt:
            self.on_stop()
            raise (RescheduleTaskImmediately if interrupt.reschedule else RescheduleTask)() from interrupt
        except (StopUser, UserEnd):
            self.on_stop()
            raise

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
        return self._user._weir_player.random.choice(self.tasks)

    def wait_time(self) -> float:
        """Return the wait after a task in seconds."""
        if self._user.wait_time:
            return float(self._user.wait_time())
        if self.min_wait is not None and self.max_wait is not None:
            return float(self._user._weir_player.random.randint(int(self.min_wait), int(self.max_wait))) / 1000
        raise MissingWaitTimeError(f"{type(self).__name__} has no wait_time")

    def wait(self) -> None:
        """End the iteration, and wait for the next one."""
        self._user._weir_player.wait(self, _owner(self), has_failed=False)

    def interrupt(self, reschedule: bool = True) -> NoReturn:
        """End the set; with `reschedule` the next task of the set around it follows at once."""
        raise InterruptTaskSet(reschedule)


class SequentialTaskSet(TaskSet):
    """Set of tasks that are done in their order, again and again."""

    def __init__(self, parent: Any) -> None:
        """Begin the set within a user or another set."""
        super().__init__(parent)
        self._weir_next_index = 0

    def get_next_task(self) -> Any:
        """Return the next task of the order."""
        if not self.tasks:
            raise LookupError(f"{type(self).__name__} has no task; mark a method with @task")
        one = self.tasks[self._weir_next_index % len(self.tasks)]
        self._weir_next_index += 1
        return one


class DefaultTaskSet(TaskSet):
    """Tasks of a user outside of any set."""

    def get_next_task(self) -> Any:
        """Choose a task of the user."""
        user = self._user
        if not user.tasks:
            raise LookupError(f"{type(user).__name__} has no task; mark a method with @task")
        return user._weir_player.random.choice(user.tasks)

    def execute_task(self, one: Any) -> None:
        """Do a task of the user."""
        if isinstance(one, type):
            one(self._user).run()
        else:
            one(self._user)


def _run_next(tasks: TaskSet) -> None:
    """Do the next task, and wait."""
    player = tasks._user._weir_player
    name = "task"
    try:
        if not tasks._task_queue:
            tasks.schedule_task(tasks.get_next_task())
        one = tasks._task_queue.pop(0)
        name = getattr(one, "__name__", name)
        tasks.execute_task(one)
    except RescheduleTaskImmediately:
        player.end_task(False, 0.0)
    except RescheduleTask:
        tasks.wait()
    except (InterruptTaskSet, StopUser, StopTest):
        raise
    except Exception as error:
        player.add_error(f"{type(_owner(tasks)).__name__}.{name}", error, tasks)
        player.wait(tasks, _owner(tasks), has_failed=True)
    else:
        tasks.wait()


def _owner(tasks: TaskSet) -> Any:
    """Return the object whose class has the tasks."""
    return tasks._user if isinstance(tasks, DefaultTaskSet) else tasks
