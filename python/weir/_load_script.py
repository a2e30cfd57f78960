"""What drives the users of `weir.load`: a script of a file, or classes of users with their processes."""

import os
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from weir._errors import UsageError
from weir._grpc_call import form_of_calls
from weir._processes import LAUNCHER, script_of
from weir._user import User
from weir._user_script import UserScript

__all__: list[str] = []


class LoadDriver(NamedTuple):
    """What drives the users of a load."""

    script: UserScript | None
    """Classes of users."""
    shown: dict[str, object]
    """Arguments as the manifest has them."""
    form: dict[str, object]
    """What Rust reads: a script of a file, agents, the command of their processes."""


def driver_of(arguments: Mapping[str, Any]) -> LoadDriver:
    """Return what drives the users, by the arguments of `weir.load`."""
    url, host, processes, env = (arguments[key] for key in ("url", "host", "processes", "env"))
    is_of_classes = isinstance(url, type | Sequence) and not isinstance(url, str)
    form: dict[str, object] = {"script": None, "launcher": [sys.executable, "-m", "weir"]}
    if arguments["script"] is None and env is not None:
        raise UsageError("env is for a script; write script='FILE.js'")
    if is_of_classes:
        if arguments["script"] is not None:
            raise UsageError("script cannot be used with classes of users; write the URL, or leave it out")
        script = _users_script(url, host, arguments["threads"])
        users = arguments["connections"] if arguments["users"] is None else arguments["users"]
        shown = {"url": script.url, "threads": 1, **form_of_calls(script.url)}
        return LoadDriver(script, shown, _users_agents(script, arguments["on"], arguments["agents"], processes, users))
    if host is not None:
        raise UsageError("host is for classes of users; write the URL")
    if processes is not None:
        raise UsageError("processes is for classes of users; write threads, or on='local' and agents")
    if arguments["script"] is None:
        return LoadDriver(None, {}, form)
    # Any of its variables may be a secret.
    shown = {"env": dict.fromkeys(env or (), "***") or None, "variables": None, "data": None}
    return LoadDriver(None, shown, form | {"script": _file_script(arguments)})


_NOT_OF_SCRIPTS = {
    "scenario": "the script has its own steps",
    "check": "write check() in it",
    "success": "write responseCallback in it",
    "method": "its requests have theirs",
    "body": "its requests have theirs",
    "json": "its requests have theirs",
    "weights": "choose in the script",
    "pipeline": "a user waits for each response",
    "mix_from": "the script has its own requests",
}


def _file_script(arguments: Mapping[str, Any]) -> dict[str, object]:
    """Script of a file as Rust reads it."""
    for name, remedy in _NOT_OF_SCRIPTS.items():
        if arguments[name] is not None:
            raise UsageError(f"{name} cannot be used with a script; {remedy}")
    path, data = os.fspath(arguments["script"]), arguments["data"]
    is_collection = path.endswith(".json")
    if not is_collection and arguments["variables"] is not None:
        raise UsageError("variables cannot be used with a script of k6; write env")
    if data is not None and not (is_collection and isinstance(data, str | PathLike)):
        raise UsageError(
            "data cannot be used with a script of k6; write open() in it, or of a collection the file of rows"
        )
    if arguments["data_order"] != "circular":
        raise UsageError("data_order cannot be used with a script; a collection takes its rows in order")
    return _script_of_file(path, arguments["env"], arguments["variables"], None if data is None else os.fspath(data))


def _script_of_file(
    path: str, env: Mapping[str, object] | None, variables: Mapping[str, object] | None, data: str | None
) -> dict[str, object]:
    """Return what Rust reads of a script of k6, or a collection of Postman with scripts.

    Raises:
        UsageError: It is none.
    """
    if not os.path.isfile(path):
        raise UsageError(f"script: no file {path!r}")
    if not path.endswith((".js", ".mjs", ".cjs", ".ts", ".json")):
        raise UsageError(
            f"script: {path!r} is neither a script of k6 (.js, .ts) nor a collection of Postman (.json); one in Lua "
            "runs by 'weir load -s FILE', classes of users by weir.load(CLASS)"
        )
    return {
        "path": path,
        "scenarios": [os.path.basename(path).rpartition(".")[0]],
        "url": "",
        "classes": [],
        "folders": [],
        "env": [(name, str(value)) for name, value in (env or {}).items()],
        "variables": [(name, str(value)) for name, value in (variables or {}).items()],
        "data": None if data is None else os.path.abspath(data),
    }


def _users_script(classes: type[User] | Sequence[type[User]], host: str | None, threads: int | None) -> UserScript:
    script = UserScript([classes] if isinstance(classes, type) else list(classes), host or "")
    if threads not in (None, 1):
        raise UsageError(f"threads: {threads} cannot be used with classes of users; write processes={threads}")
    if script.url is None:
        raise UsageError("no class has a host; write it there, or host='http://localhost:8080'")
    return script


def _users_agents(
    script: UserScript, on: str | None, agents: int | None, processes: int | str | None, users: int | None
) -> dict[str, object]:
    """Agents that drive classes of users, if there are any."""
    if processes is not None:
        if on is not None:
            raise UsageError("processes and on cannot be combined; processes=N is on='local', agents=N")
        is_number = isinstance(processes, int) and not isinstance(processes, bool) and processes >= 1
        if not is_number and processes != "auto":
            raise UsageError(f"processes: invalid number {processes!r}; write a whole number from 1 on, or 'auto'")
        agents = min(len(os.sched_getaffinity(0)), users or sys.maxsize) if processes == "auto" else int(processes)
        on = "local" if agents > 1 else None
        agents = agents if agents > 1 else None
    if on is None:
        return {"on": None, "agents": agents, "script": None, "launcher": LAUNCHER}
    if on != "local":
        raise UsageError(f"on={on!r} cannot be used with classes of users; write processes=N")
    form = script_of(script.classes, script.host)
    return {"on": on, "agents": agents, "script": form, "launcher": LAUNCHER}
