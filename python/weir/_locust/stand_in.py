"""Modules `locust...` while a locustfile is loaded, whether or not Locust is installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from weir._errors import UsageError
from weir._import_failure import page
from weir._locust import (
    arguments,
    client,
    environment,
    event,
    exception,
    gevent_parts,
    greenlets,
    markov,
    response_parts,
    run_stats,
    shape,
    task_set,
    users,
    wait_time,
)

__all__ = ["events", "install"]

events = event.Events()
"""Hooks of the locustfile."""

_VERSION = "2.43.0"

_BEFORE_1 = {
    "FastHttpLocust": "FastHttpUser, and tasks = [Tasks] for task_set = Tasks",
    "HttpLocust": "HttpUser, and tasks = [Tasks] for task_set = Tasks",
    "Locust": "User, and tasks = [Tasks] for task_set = Tasks",
    "TaskSequence": "SequentialTaskSet",
    "seq_task": "task in a SequentialTaskSet",
}
"""Names that Locust 1.0 took away, and what stands for them since."""


def install() -> None:
    """Put the modules in the place of Locust's, for good: what a task imports later is weir's as well."""
    for name in [name for name in sys.modules if name == "locust" or name.startswith("locust.")]:
        del sys.modules[name]
    for name, members in _modules().items():
        module = ModuleType(name, "Part of Locust that weir stands in for.")
        vars(module).update(members)
        module.__path__ = []
        module.__getattr__ = _missing(name)  # type: ignore[method-assign]
        sys.modules[name] = module
    for name in _modules():
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])
    _install_gevent()
    response_parts.install()


def _modules() -> dict[str, dict[str, Any]]:
    tasks = {name: getattr(task_set, name) for name in task_set.__all__}
    waits = {name: getattr(wait_time, name) for name in wait_time.__all__}
    errors = {name: getattr(exception, name) for name in exception.__all__ if name not in {"RunOver", "UserEnd"}}
    kinds: dict[str, Any] = {name: getattr(users, name) for name in users.__all__}
    context = {"ResponseContextManager": object, "HttpSession": client.HttpSession, "LocustResponse": object}
    fast = {
        "FastHttpUser": users.FastHttpUser,
        "FastHttpSession": client.HttpSession,
        "FastResponse": object,
        "ResponseContextManager": object,
        "RestResponseContextManager": object,
        "RestUser": users.FastHttpUser,
    }
    runners: dict[str, Any] = {
        "LocalRunner": environment.LocalRunner,
        "MasterRunner": environment.MasterRunner,
        "WorkerRunner": environment.WorkerRunner,
        "Runner": environment.Runner,
        **{f"STATE_{name}": name.lower() for name in ("INIT", "SPAWNING", "RUNNING", "CLEANUP", "STOPPING", "STOPPED")},
        "STATE_INIT": "ready",
        "STATE_MISSING": "missing",
    }
    chains = {name: getattr(markov, name) for name in markov.__all__}
    public = {
        **chains,
        **{name: kinds[name] for name in ("FastHttpUser", "HttpUser", "User")},
        **{name: tasks[name] for name in ("SequentialTaskSet", "TaskSet", "tag", "task")},
        **waits,
        "Events": event.Events,
        "LoadTestShape": shape.LoadTestShape,
        "events": events,
        "run_single_user": run_single_user,
        "__version__": _VERSION,
        "version": _VERSION,
    }
    return {
        "locust": public,
        "locust.argument_parser": {"LocustArgumentParser": arguments.LocustArgumentParser},
        "locust.clients": context,
        "locust.contrib": {},
        "locust.contrib.fasthttp": fast,
        "locust.debug": {"run_single_user": run_single_user},
        "locust.env": {"Environment": environment.Environment},
        "locust.event": {"EventHook": event.EventHook, "Events": event.Events},
        "locust.exception": errors,
        "locust.log": {"setup_logging": lambda *_, **__: None},
        "locust.runners": runners,
        "locust.shape": {"LoadTestShape": shape.LoadTestShape},
        "locust.stats": {
            "CSV_STATS_INTERVAL_SEC": 1,
            "CONSOLE_STATS_INTERVAL_SEC": 2,
            "PERCENTILES_TO_REPORT": [0.5, 0.95, 0.99],
            "PERCENTILES_TO_CHART": [0.5, 0.95],
            "RequestStats": run_stats.RunStats,
        },
        "locust.user": {**{name: kinds[name] for name in ("HttpUser", "User")}, **tasks, **waits},
        "locust.user.markov_taskset": chains,
        "locust.user.sequential_taskset": {"SequentialTaskSet": task_set.SequentialTaskSet},
        "locust.user.task": tasks,
        "locust.user.users": kinds,
        "locust.user.wait_time": waits,
        "locust.util": {},
    }


def run_single_user(user_class: Any, *_: Any, **__: Any) -> None:
    """Reject to run a user within the file."""
    name = getattr(user_class, "__name__", "a user")
    raise UsageError(f"run_single_user({name}): weir runs the file: weir load -s FILE.py URL --users 1 --loops 1")


def _missing(name: str) -> Any:
    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        remedy = _BEFORE_1.get(attribute)
        if remedy is not None:
            raise ImportError(
                f"{name}.{attribute} is of Locust before 1.0, whose files neither weir nor Locust since then plays; "
                f"write {remedy}"
            )
        raise ImportError(f"{name}.{attribute} is not there in weir; {page('scripts/python.md')} lists what is")

    return missing


def _install_gevent() -> None:
    """Put a module in the place of gevent whose `sleep` waits in the task; greenlets beside the users are not there."""
    module = ModuleType("gevent", "Part of gevent that weir stands in for.")
    module.sleep = greenlets.sleep  # type: ignore[attr-defined]
    module.__path__ = []
    module.__getattr__ = _missing("gevent")  # type: ignore[method-assign]
    for name in [name for name in sys.modules if name == "gevent" or name.startswith("gevent.")]:
        del sys.modules[name]
    sys.modules["gevent"] = module
    parts = {"event": ("Event",), "lock": ("BoundedSemaphore", "Semaphore")}
    for name, members in parts.items():
        part = ModuleType(f"gevent.{name}", "Part of gevent that weir stands in for.")
        vars(part).update({member: getattr(gevent_parts, member) for member in members})
        part.__getattr__ = _missing(f"gevent.{name}")  # type: ignore[method-assign]
        sys.modules[f"gevent.{name}"] = part
        setattr(module, name, part)
