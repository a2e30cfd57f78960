"""`self.environment`: the run as locustfiles see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weir._locust.event import Events
from weir._locust.run_stats import RunStats, StepMethods
from weir._task_errors import TaskErrors

__all__ = ["Environment", "LocalRunner", "Runner"]


class Runner:
    """Runner of a locustfile: weir's own loop, of which little is there."""

    def __init__(self, environment: Any) -> None:
        """Stand for the run of an environment."""
        self.environment = environment
        self.state = "ready"
        self.target_user_count = 0
        self.exceptions: dict[str, Any] = {}
        self.worker_count = 0
        self.clients: dict[str, Any] = {}
        self.is_quitting = False

    @property
    def user_count(self) -> int:
        """Number of users."""
        return self.target_user_count

    @property
    def stats(self) -> RunStats:
        """Statistics of the run."""
        return self.environment.stats  # type: ignore[no-any-return]

    @property
    def user_classes_count(self) -> dict[str, int]:
        """Number of users of each class."""
        return dict(self.environment._class_counts)

    def quit(self) -> None:
        """End the run at the next task."""
        self.environment._is_stopped = True

    def stop(self) -> None:
        """End the run at the next task."""
        self.quit()

    def register_message(self, name: str, listener: Any, concurrent: bool = False) -> None:
        """Ignore messages between processes: there are none."""

    def send_message(self, name: str, data: Any = None, client_id: Any = None) -> None:
        """Ignore messages between processes: there are none."""

    def __getattr__(self, name: str) -> Any:
        """Reject what is not there."""
        raise AttributeError(f"environment.runner.{name} is not there in weir")


class LocalRunner(Runner):
    """Runner of a load in one process."""


class MasterRunner(Runner):
    """Runner of the process that coordinates others."""


class WorkerRunner(Runner):
    """Runner of a process that drives a part of the users."""

    def __init__(self, environment: Any, number: int) -> None:
        """Stand for the part of this number, from 0."""
        super().__init__(environment)
        self.worker_index = number
        self.client_id = f"weir_{number}"


class Environment:
    """Run of a locustfile."""

    def __init__(
        self,
        *,
        user_classes: Sequence[type] | None = None,
        events: Events | None = None,
        host: str | None = None,
        parsed_options: Any = None,
        **_: Any,
    ) -> None:
        """Make the environment of a run."""
        self.user_classes = list(user_classes or ())
        self.events = events or Events()
        self.host = host
        self.parsed_options = parsed_options
        self.shape_class: Any = None
        self.tags: Any = None
        self.exclude_tags: Any = None
        self.reset_stats = False
        self.stop_timeout: float | None = None
        self.catch_exceptions = True
        self.process_exit_code: int | None = None
        self.available_user_classes = {one.__name__: one for one in self.user_classes}
        self.runner: Any = LocalRunner(self)
        self.stats = RunStats()
        self.web_ui: Any = None
        self.locustfile: str | None = None
        self._task_errors = TaskErrors()
        self._step_methods = StepMethods()
        self._given_headers: list[tuple[str, str]] = []
        self._class_counts: dict[str, int] = {}
        self._is_stopped = False

    def create_local_runner(self) -> Any:
        """Reject a run within the file: weir runs it."""
        raise NotImplementedError("create_local_runner: weir runs the file itself: weir load -s FILE.py URL --users 10")

    create_master_runner = create_worker_runner = create_web_ui = create_local_runner
