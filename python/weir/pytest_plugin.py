"""`pytest --weir`: load tests among other tests, with their objectives as assertions.

>>> def test_load(weir_load):
...     run = weir_load("/", rate=200, duration=5, slo=["p99<200ms", "errors<1%"])

pytest loads this module by its entry point in every suite on a machine with weir, so it has only what a suite without
load tests needs: options, the marker, and the fixtures. All else is in `weir._load_test`, imported with `--weir` alone.
pytest is not a dependency of weir; nothing else imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from weir._load_test.fixture import WeirLoad

__all__ = ["WeirLoad", "weir_load", "weir_url"]

SKIPPED = "load test; pytest --weir runs it"
"""Reason of skipped load tests."""

OPTIONS = {
    "url": ("URL", "send paths in load tests to this base URL"),
    "runs": ("DIR", "save runs in this folder [default: .weir/runs]"),
    "keep": ("N", "keep N saved runs per load [default: 10]"),
    "compare": ("off|report|fail", "compare with the last good run [default: report]"),
    "min-effect": ("PERCENT", "ignore changes smaller than this in the comparison [default: 3%%]"),
    "repeat": ("N", "run each load N times; a verdict of the comparison needs 3 [default: 1]"),
    "untrusted": ("fail|warn|ignore", "fail, warn or pass when a run is not trusted [default: warn]"),
}
"""Options with `--weir-` before them: their value, and their help."""

_SESSION = "weir-session"


def __getattr__(name: str) -> Any:
    # For annotations of users, and not imported by others.
    if name == "WeirLoad":
        from weir._load_test.fixture import WeirLoad  # noqa: PLC0415

        return WeirLoad
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options, and their names in the configuration file."""
    group = parser.getgroup("weir", "load tests")
    group.addoption("--weir", action="store_true", help="run load tests (those with the fixture weir_load)")
    for name, (metavar, text) in OPTIONS.items():
        group.addoption(f"--weir-{name}", metavar=metavar, default=None, help=text)
        parser.addini(f"weir_{name.replace('-', '_')}", help=f"default of --weir-{name}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and with `--weir` what runs load tests."""
    config.addinivalue_line("markers", "load: load test, with the fixture weir_load; runs with --weir only")
    if config.getoption("weir"):
        from weir._load_test.session import LoadTestSession  # noqa: PLC0415

        config.pluginmanager.register(LoadTestSession(config), _SESSION)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark load tests, before `-m` selects; skip them without `--weir`."""
    if "weir_load" in getattr(item, "fixturenames", ()):
        item.add_marker("load")
        if not item.config.getoption("weir"):
            item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture(scope="session")
def weir_url(pytestconfig: pytest.Config) -> str:
    """Base URL of paths in load tests: `--weir-url`, or `weir_url` of the configuration; suites may override it."""
    return str(pytestconfig.getoption("weir_url") or pytestconfig.getini("weir_url") or "")


@pytest.fixture
def weir_load(request: pytest.FixtureRequest, weir_url: object) -> WeirLoad:
    """Function that generates load as `weir.load` does, and fails the test if an objective is missed."""
    session = request.config.pluginmanager.get_plugin(_SESSION)
    if session is None:
        # A test that asks for the fixture by name at run time.
        pytest.skip(SKIPPED)
    from weir._load_test.fixture import WeirLoad  # noqa: PLC0415

    return WeirLoad(session, request.node.nodeid, str(weir_url or ""))
