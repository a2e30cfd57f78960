"""Errors of scripts that cannot be imported, in a line that names what to do."""

from __future__ import annotations

import os
import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

__all__ = ["import_failure", "page"]

_PACKAGES = {
    "Crypto": "pycryptodome",
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "confluent_kafka": "confluent-kafka",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "google.protobuf": "protobuf",
    "grpc": "grpcio",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "kafka": "kafka-python",
    "psycopg2": "psycopg2-binary",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "socketio": "python-socketio",
    "websocket": "websocket-client",
    "yaml": "PyYAML",
}
"""Packages whose name is not that of their module."""

_STAND_INS = frozenset({"gevent", "locust"})
_PARENTS = 4
"""Folders above a script in which its own modules are looked for."""


def import_failure(path: str, error: BaseException, is_shown: bool) -> SystemExit:
    """Return the error of a script that cannot be imported; with `is_shown` its traceback is printed."""
    if isinstance(error, SyntaxError):
        if is_shown:
            sys.stderr.write("".join(traceback.format_exception_only(type(error), error)))
        file = path if error.filename in {None, os.path.abspath(path)} else error.filename
        return SystemExit(f"{file} is not valid Python (line {error.lineno}); nothing was sent")
    tb = _from_script(error.__traceback__, path)
    line = tb.tb_lineno if tb is not None else 0
    if isinstance(error, SystemExit):
        code = "" if error.code is None else str(error.code)
        return SystemExit(f"{path} ended itself while it was imported (line {line}): exit({code}); nothing was sent")
    if is_shown:
        sys.stderr.write(_text(error, tb))
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name is None or error.args != (f"No module named {name!r}",):
        return SystemExit(f"{path} cannot be imported: {type(error).__name__}: {error}; nothing was sent")
    remedy = _remedy(name, path)
    return SystemExit(f"{path} cannot be imported: line {line} needs the module {name}, {remedy}; nothing was sent")


def page(name: str) -> str:
    """Return where a page of the documentation is: installed with the package, else in a checkout."""
    installed = Path(sysconfig.get_path("data"), "share", "doc", "weir", name)
    return str(installed) if installed.is_file() else f"docs/{name}"


def _remedy(name: str, path: str) -> str:
    """Return what to do about a module that is not there."""
    top = name.partition(".")[0]
    if top in _STAND_INS and name != top:
        return f"which is not there in weir; {page('scripts/python.md')} lists what is"
    folder = _folder_of(top, Path(path).resolve().parent)
    if folder is not None:
        return f"which is in {folder}; start weir there, or write PYTHONPATH={folder} before the command"
    package = _PACKAGES.get(name) or _PACKAGES.get(top, top)
    install = f"{sys.executable} -m pip install {package}"
    return f"which {sys.executable} does not have; write {install}, or PYTHONPATH=FOLDER if it is a file of yours"


def _folder_of(top: str, beside: Path) -> Path | None:
    """Return the folder of a module of the script's own project."""
    for folder in (beside, *beside.parents[:_PARENTS]):
        for one in (folder, folder / "src"):
            if str(one) not in sys.path and ((one / f"{top}.py").is_file() or (one / top / "__init__.py").is_file()):
                return one
    return None


def _from_script(tb: TracebackType | None, path: str) -> TracebackType | None:
    """Return the traceback from the script's line on."""
    while tb is not None and tb.tb_frame.f_code.co_filename != os.path.abspath(path):
        tb = tb.tb_next
    return tb


def _text(error: BaseException, tb: TracebackType | None) -> str:
    """Return a traceback without the lines within weir at its end."""
    shown = traceback.TracebackException(type(error), error, tb)
    within = os.path.dirname(os.path.abspath(__file__)) + os.sep
    while len(shown.stack) > 1 and shown.stack[-1].filename.startswith(within):
        shown.stack.pop()
    return "".join(shown.format())
