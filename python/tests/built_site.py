"""The documentation's site, built once for all tests of it, however many processes run them."""

import fcntl
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from naming import ROOT
from programs import finished

MAKE_SITE = ROOT / "docs" / "site" / "make_site.py"
TIMEOUT_S = 550


def needs_sphinx() -> None:
    """Skip a test where the site cannot be built."""
    missing = [
        name for name in ("sphinx", "furo", "myst_parser", "sphinx_copybutton") if not importlib.util.find_spec(name)
    ]
    if missing:
        pytest.skip(f"no {', '.join(missing)}; scripts/setup.sh test-all installs the group docs")


def folder_of_the_run(factory: pytest.TempPathFactory) -> Path:
    """Folder that all workers of this run share, and no other run."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def site_built_once(factory: pytest.TempPathFactory) -> Path:
    """Folder of the site; the first process that asks builds it, the others wait."""
    needs_sphinx()
    work = folder_of_the_run(factory) / "site"
    work.mkdir(exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Only what was built without a fault is taken, so that each process fails with the fault.
        is_whole = work / "whole"
        if not is_whole.exists():
            done = finished(sys.executable, str(MAKE_SITE), "--out", str(work / "html"), timeout_s=TIMEOUT_S, cwd=ROOT)
            assert done.returncode == 0, done.stdout + done.stderr
            is_whole.touch()
    return work / "html"


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Address of a folder, as `python -m http.server` serves it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
