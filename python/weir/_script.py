"""`weir load -s FILE.py`: the script's classes as users of the load."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import traceback
from types import ModuleType
from typing import Any

from weir import _weir
from weir._task import choose_by_tags
from weir._user import User
from weir._user_script import UserScript

__all__: list[str] = []


def main() -> None:
    """Run the command line of this process, which has a Python script."""
    # The program has its own way to end at Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = _weir.run_script(["weir", *sys.argv[1:]], open_script)
    sys.stdout.flush()
    sys.exit(code)


def open_script(path: str | os.PathLike[str], **given: Any) -> Any:
    """Load a script; return its classes as a load needs them."""
    from weir._locust import script, stand_in  # noqa: PLC0415

    stand_in.install()
    module = load_module(os.fspath(path))
    if script.is_locustfile(module):
        return script.LocustScript(module, os.fspath(path), given)
    classes = user_classes(module, User)
    if not classes:
        raise SystemExit(f"{path} has no class of users; write e.g. class Shopper(weir.User) with a @weir.task")
    for one in classes:
        choose_by_tags(one, given["tags"], given["exclude_tags"])
    return UserScript([one for one in classes if one.tasks], given["url"])


def user_classes(module: ModuleType, base: type) -> list[Any]:
    """List the classes of users that a module has."""
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]
    return [one for one in found if not one.abstract and one.tasks]  # type: ignore[attr-defined]


def load_module(path: str) -> ModuleType:
    """Import a file as a module of its name, with its folder on the path.

    Raises:
        SystemExit: The file cannot be imported; its traceback is printed.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isfile(path):
        raise SystemExit(f"cannot read the script '{path}': no such file")
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))
        raise SystemExit(f"{path} is not valid Python (line {error.lineno}); nothing was sent") from error
    except Exception as error:
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code.co_filename != spec.origin:
            tb = tb.tb_next
        sys.stderr.write("".join(traceback.format_exception(type(error), error, tb)))
        raise SystemExit(f"{path} cannot be imported: {type(error).__name__}: {error}; nothing was sent") from error
    return module
