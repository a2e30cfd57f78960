"""The package as installed: names, version, command, stubs, examples."""

import inspect
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from conftest import Service
from programs import finished

import weir

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sysconfig.get_path("scripts")) / "weir"
COMMANDS = [[str(SCRIPT)], [sys.executable, "-m", "weir"]]


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return finished(*command, timeout_s=400, cwd=ROOT)


def cargo_version() -> str:
    # tomllib requires Python 3.11; weir supports 3.10.
    workspace = (ROOT / "Cargo.toml").read_text("utf-8").partition("[workspace.package]")[2]
    return workspace.partition('version = "')[2].partition('"')[0]


def test_exported_names_are_sorted_and_complete() -> None:
    assert weir.__all__ == sorted(weir.__all__)
    names = {name for name in dir(weir) if not name.startswith("_") and not inspect.ismodule(getattr(weir, name))}
    assert names | {"__version__"} == set(weir.__all__)
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        weir.lod  # type: ignore[attr-defined]  # noqa: B018


def test_only_what_is_used_is_imported() -> None:
    code = "import sys, weir; print(*(name for name in sys.modules if name.startswith(('weir', 'asyncio'))))"
    assert finished(sys.executable, "-c", code).stdout.split() == ["weir"]


def test_every_exported_name_has_a_docstring() -> None:
    for name in weir.__all__:
        value = getattr(weir, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name


def test_every_option_of_load_is_documented_in_its_order() -> None:
    options = list(inspect.signature(weir.load).parameters)
    arguments = (inspect.getdoc(weir.load) or "").partition("Args:\n")[2].partition("Returns:")[0]
    lines = [line.strip() for line in arguments.splitlines() if line.startswith("    ") and line[4] != " "]
    assert [line.partition(":")[0] for line in lines] == options


def test_the_version_is_cargos() -> None:
    assert weir.__version__ == cargo_version()


@pytest.mark.parametrize("command", COMMANDS, ids=["script", "module"])
def test_the_command_is_installed(command: list[str]) -> None:
    done = run(*command, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"weir {cargo_version()}\n", "")


@pytest.mark.parametrize("command", COMMANDS, ids=["script", "module"])
def test_the_command_runs_a_load_and_returns_its_exit_code(command: list[str], service: Service) -> None:
    done = run(*command, "load", service.url, "-n", "20", "-c", "2", "--format", "json", "--slo", "rate>1e9")
    assert done.returncode == 1
    assert weir.Run.from_json(done.stdout).requests.ok == 20
    wrong = run(*command, "load", service.url, "--conections", "2")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--connections" in wrong.stderr


def test_the_command_and_python_read_each_others_runs(service: Service, tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    assert run(str(SCRIPT), "load", service.url, "-n", "20", "--out", str(saved)).returncode == 0
    report = run(str(SCRIPT), "report", str(saved))
    assert report.stdout == str(weir.Run.from_json(saved.read_text("utf-8")))


@pytest.mark.wide
def test_the_stubs_match_the_module() -> None:
    # What the configuration says of packages that need not be there.
    done = run(sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", str(ROOT / "pyproject.toml"), "weir")
    assert done.returncode == 0, done.stdout


def test_the_example_of_the_package_works(service: Service) -> None:
    result = weir.load(service.url, rate=500, duration="1s", slo=["p99<10s", "errors<1%"])
    assert all(objective.ok for objective in result.slo), result
    assert (result.response_ms.p99 or 0) > 0
    assert f"{result.rate_per_s.offered:.0f}" == "500"
