"""`weir load -s FILE.py`: the script's classes as users of the load."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from weir import _processes, _weir
from weir._errors import UsageError
from weir._import_failure import import_failure
from weir._task import choose_by_tags
from weir._user import User
from weir._user_script import UserScript

__all__: list[str] = []


def main() -> None:
    """Run the command line of this process, which has a Python script."""
    # The program has its own way to end at Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1:2] == ["agent-process"]:
        _processes.become_agent()
    elif sys.argv[1:2] == ["run"]:
        # What a task prints stands between its requests.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    code = _weir.run_script(["weir", *sys.argv[1:]], open_script)
    sys.stdout.flush()
    sys.exit(code)


def flush() -> None:
    """Write what Python has not written yet."""
    sys.stdout.flush()
    sys.stderr.flush()


def open_script(path: str | os.PathLike[str], **given: Any) -> Any:
    """Load a script; return its classes as a load needs them."""
    from weir._locust import script, stand_in  # noqa: PLC0415

    if given["classes"]:
        imported = _imported(os.fspath(path), given)
        return UserScript(imported, given["url"])
    stand_in.install()
    module = load_module(os.fspath(path), is_shown=not given["agent"])
    if script.is_locustfile(module):
        return script.LocustScript(module, os.fspath(path), given)
    classes = user_classes(module, User)
    if not classes:
        raise SystemExit(f"{path} has no class of users; write e.g. class Shopper(weir.User) with a @weir.task")
    classes = chosen(classes, given["user"], os.fspath(path))
    for one in classes:
        choose_by_tags(one, given["tags"], given["exclude_tags"])
    return UserScript([one for one in classes if one.tasks], given["url"])


def _imported(path: str, given: dict[str, Any]) -> list[type]:
    """Import classes that another process has named."""
    try:
        return _processes.import_classes(path, given["classes"], given["folders"], load_module)
    except UsageError:
        raise
    except Exception as error:
        if not given["agent"]:
            traceback.print_exc()
        raise SystemExit(f"{path} cannot be imported: {type(error).__name__}: {error}; nothing was sent") from error


def chosen(classes: Sequence[Any], name: str | None, path: str) -> list[Any]:
    """Return the class of a name, or all without one.

    Raises:
        SystemExit: There is none of this name.
    """
    found = [one for one in classes if name is None or one.__name__ == name]
    if not found:
        names = ", ".join(one.__name__ for one in classes)
        raise SystemExit(f"{path} has no class of users {name}; there are {names}")
    return found


def user_classes(module: ModuleType, base: type) -> list[Any]:
    """List the classes of users that a module has."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return [one for one in found if not one.abstract and one.tasks]  # type: ignore[attr-defined]


def load_module(path: str, is_shown: bool = True) -> ModuleType:
    """Import a file as a module of its name, with its folder on the path.

    Args:
        path: File.
        is_shown: Whether the traceback of an error is printed: of several processes, by the first.

    Raises:
        SystemExit: The file cannot be imported.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    # An interpreter that does not name files in UTF-8 (PYTHONUTF8=0 in the C locale) has their bytes as surrogates.
    file = os.fsdecode(path.encode("utf-8", "surrogateescape"))
    if not os.path.isfile(file):
        raise SystemExit(f"cannot read the script '{path}': no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise import_failure(path, error, is_shown) from error
    return module
