"""Packages, their recipes, and the examples that people copy: each is run, or checked by what weir itself has."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from naming import ROOT
from programs import weir as run_weir

import weir

pytestmark = pytest.mark.wide

EXAMPLES = ROOT / "examples"
EXTRAS = ROOT / "packaging"
DOCS = ROOT / "docs"

FREE_LICENCES = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "MIT-0", "OFL-1.1",
    "Ubuntu-font-1.0", "Unicode-3.0", "Unlicense", "Zlib", "LLVM-exception",
}  # fmt: skip
"""Licences of libraries that a program under Apache-2.0 may contain; see docs/design/libraries.md."""


@pytest.fixture(scope="module")
def scripts() -> Iterator[Path]:
    """Folder of the scripts that make packages, importable."""
    folder = ROOT / "scripts" / "package"
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def service() -> Iterator[weir.Service]:
    with weir.serve("work", delay="1ms") as started:
        yield started


# --- Versions


def test_a_release_changes_the_version_wherever_it_is(scripts: Path) -> None:
    module = importlib.import_module("set_version")
    old = module.current()
    for name, patterns in module.PLACES.items():
        text = (ROOT / name).read_text("utf-8")
        changed = module.with_version(text, patterns, old, "9.8.7-rc.1")
        assert changed is not None, name
        assert f'"{old}"' not in changed or name != "Cargo.toml"
        assert module.with_version(changed, patterns, "9.8.7-rc.1", old) == text
        assert module.with_version(changed, patterns, old, "1.0.0") is None


def test_a_release_needs_changes_and_dates_them(scripts: Path) -> None:
    module = importlib.import_module("set_version")
    changes = "# Changes\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1.0] - 2026-01-01\n\n- Old.\n"
    assert module.with_section(changes, "0.2.0", "2026-02-02") == changes.replace(
        "## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-02-02\n"
    )
    assert module.with_section(changes.replace("### Added\n\n- A thing.\n", ""), "0.2.0", "2026-02-02") is None
    prepared = "# Changes\n\n## [0.2.0]\n\n- A thing.\n"
    assert module.with_section(prepared, "0.2.0", "2026-02-02") == prepared.replace("]", "] - 2026-02-02")
    assert module.with_section((ROOT / "CHANGELOG.md").read_text("utf-8"), module.current(), "2026-02-02") is not None


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3-foo", "01.2.3", ""])
def test_a_wrong_version_is_one_line_and_changes_nothing(scripts: Path, version: str) -> None:
    done = subprocess.run(
        [sys.executable, scripts / "set_version.py", version, "2026-01-01"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


# --- What packages contain


@pytest.fixture(scope="module")
def dependencies(scripts: Path) -> ModuleType:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo")
    return importlib.import_module("dependencies")


def test_the_bill_of_materials_has_each_library_once_with_a_free_licence(dependencies: ModuleType) -> None:
    bill = json.loads(dependencies.sbom())
    refs = [component["bom-ref"] for component in bill["components"]]
    assert len(refs) == len(set(refs)) > 200
    names = {component["name"] for component in bill["components"]}
    assert {"rustls", "clap", "luajit-src", "weir-load"} <= names
    assert not {"proptest", "tempfile", "weir-testing"} & names  # of tests
    known = {*refs, bill["metadata"]["component"]["bom-ref"]}
    assert all(known.issuperset(entry["dependsOn"]) for entry in bill["dependencies"])
    for component in bill["components"]:
        expression = component["licenses"][0]["expression"]
        words = set(re.findall(r"[\w.-]+", expression)) - {"AND", "OR", "WITH"}
        assert words <= FREE_LICENCES, f"{component['name']}: {expression}"
        has_hash = "hashes" in component
        assert has_hash is not component["name"].startswith("weir-"), component["name"]


def test_licences_of_all_libraries_are_in_one_text(dependencies: ModuleType) -> None:
    text = dependencies.licences()
    for library in ("rustls 0.", "luajit-src 2", "clap 4", "rquickjs-sys 0."):
        assert f"\n{library}" in text
    missing = text.partition("Crates without a text")[2].splitlines()
    # A dozen of them are crates of oxc, which are published without it.
    assert len(missing) < 25, missing


def test_a_program_for_a_newer_glibc_is_found(scripts: Path) -> None:
    module = importlib.import_module("glibc")
    assert module.parse("2.17") < module.parse("2.34") < module.parse("2.100")
    own = Path(sys.executable).resolve()
    version = module.needed(own)
    assert version > (2,)
    assert module.main("2.1", str(own)) == 1
    assert module.main("99.0", str(own)) == 0


def test_an_image_is_a_layout_of_one_layer_and_the_same_again(scripts: Path) -> None:
    module = importlib.import_module("oci_image")
    program = Path(shutil.which("true") or "/bin/true")
    image = module.image(program, "1.2.3")
    assert image == module.image(program, "1.2.3")
    with tarfile.open(fileobj=io.BytesIO(image)) as layout:
        files = {entry.name: _read(layout, entry) for entry in layout}

    def blob(descriptor: dict[str, Any]) -> bytes:
        content = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
        assert descriptor["size"] == len(content)
        assert descriptor["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        return content

    manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
    config = json.loads(blob(manifest["config"]))
    [descriptor] = manifest["layers"]
    layer = gzip.decompress(blob(descriptor))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert (config["config"]["Entrypoint"], config["config"]["User"]) == (["/usr/bin/weir"], "65532:65532")
    with tarfile.open(fileobj=io.BytesIO(layer)) as content:
        names = content.getnames()
        assert content.extractfile("usr/bin/weir").read() == program.read_bytes()  # type: ignore[union-attr]
    assert {"etc/ssl/certs/ca-certificates.crt", "etc/passwd", "tmp"} <= set(names)
    assert any(name.endswith("/libc.so.6") for name in names)
    # A folder comes before what is in it.
    assert all(str(Path(name).parent) in [*names[: names.index(name)], "."] for name in names)


def _read(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(entry)
    assert file is not None
    return file.read()


def test_every_file_of_the_system_packages_exists() -> None:
    text = (EXTRAS / "nfpm.yaml").read_text("utf-8")
    named = re.findall(r"(?:src|postinstall|preremove|postremove): ([\w./@-]+)", text)
    assert len(named) >= 9
    assert [name for name in named if not (ROOT / name).is_file()] == []
    for name in (name for name in named if name.endswith(".sh")):
        assert subprocess.run(["sh", "-n", ROOT / name], check=False).returncode == 0, name


def test_units_run_commands_that_exist() -> None:
    for unit in (EXTRAS / "systemd").glob("*.service"):
        text = unit.read_text("utf-8")
        commands = re.findall(r"^Exec(?:Start|StartPre|Reload)=/usr/bin/weir (.+)$", text, re.M)
        assert commands, unit
        for command in commands:
            name, *flags = command.split()
            known = run_weir(name, "--help").stdout
            assert all(flag in known for flag in flags if flag.startswith("--")), command


# --- Configurations


def checked_gate(config: str | Path, folder: Path) -> None:
    file = folder / "gate.toml"
    file.write_text(config if isinstance(config, str) else config.read_text("utf-8"))
    done = run_weir("gate", "--config", str(file), "--check")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    "file", [EXAMPLES / "compose/gate.toml", EXTRAS / "systemd/gate.toml"], ids=lambda f: f.parent.name
)
def test_configurations_of_gateways_are_valid(file: Path, tmp_path: Path) -> None:
    checked_gate(file, tmp_path)


def test_the_charts_configuration_is_valid_and_its_flags_exist(tmp_path: Path) -> None:
    chart = EXTRAS / "helm" / "weir-gate"
    values = (chart / "values.yaml").read_text("utf-8")
    block = re.search(r"^config: \|\n((?:  .*\n|\n)+)", values, re.M)
    assert block
    checked_gate(textwrap.dedent(block[1]), tmp_path)
    deployment = (chart / "templates" / "deployment.yaml").read_text("utf-8")
    flags = re.findall(r"^ +- (--[a-z-]+)=", deployment, re.M)
    known = run_weir("gate", "--help").stdout
    assert len(flags) == 4
    assert [flag for flag in flags if flag not in known] == []
    used = {name for text in chart.glob("templates/*") for name in re.findall(r"\.Values\.(\w+)", text.read_text())}
    assert used == set(re.findall(r"^(\w+):", values, re.M))


@pytest.mark.parametrize("name", ["weir-gate", "weir-load"])
def test_dashboards_have_metrics_that_exist(name: str) -> None:
    dashboard = json.loads((EXTRAS / "grafana" / f"{name}.json").read_text("utf-8"))
    page = (DOCS / ("gate/observability.md" if name == "weir-gate" else "outputs.md")).read_text("utf-8")
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    metrics = {metric.removesuffix("_bucket") for text in expressions for metric in re.findall(r"\bweir_\w+", text)}
    assert len(metrics) > 15
    assert sorted(metric for metric in metrics if f"`{metric}`" not in page) == []
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


# --- Examples


def commands_in(file: Path) -> list[list[str]]:
    """Arguments of weir in a file of Compose or Kubernetes: lists in the form of JSON."""
    found = re.findall(r"^ +(?:command|args): (\[.*\])$", file.read_text("utf-8"), re.M)
    return [args for text in found if not (args := json.loads(text))[0].startswith("--")]


def test_every_command_of_the_compose_file_has_flags_that_exist() -> None:
    commands = commands_in(EXAMPLES / "compose" / "compose.yaml")
    assert [command[0] for command in commands] == ["serve", "gate", "load"]
    for command in commands:
        path = command[: 2 if command[0] == "serve" else 1]
        known = run_weir(*path, "--help").stdout
        assert [flag for flag in command if flag.startswith("--") and flag not in known] == []


@pytest.mark.parametrize("file", ["compose/compose.yaml", "kubernetes/load-job.yaml"])
def test_loads_of_examples_run(file: str, service: weir.Service) -> None:
    [command] = [command for command in commands_in(EXAMPLES / file) if command[0] == "load"]
    shorter = {"--rate": "50", "-d": "1s", "--warmup": "0s"}
    flags = command[2:]
    for flag, value in shorter.items():
        if flag in flags:
            flags[flags.index(flag) + 1] = value
    if "--out-prometheus" in flags:
        del flags[flags.index("--out-prometheus") :][:2]
    # Whether the run is trusted depends on how busy the machine is.
    done = run_weir("load", f"{service.url}/api/work", *(flag for flag in flags if flag != "--strict"))
    assert done.returncode in {0, 1}, done.stderr
    assert "p99<" in done.stdout


def test_the_workflow_runs_commands_that_exist() -> None:
    text = (EXAMPLES / "github" / "load-test.yml").read_text("utf-8")
    joined = text.replace("\\\n", "")
    commands = re.findall(r"\bweir (load|doctor)\b(.*)$", joined, re.M)
    assert [name for name, _ in commands] == ["doctor", "load"]
    for name, rest in commands:
        known = run_weir(name, "--help").stdout
        assert [flag for flag in re.findall(r"(?<=\s)(--[a-z-]+)", rest) if flag not in known] == []


def test_workflows_of_the_project_call_its_commands_and_nothing_else() -> None:
    targets = set(re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    targets = {name for group in targets for name in group.split()}
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in re.findall(r"- run: (.+)$", file.read_text("utf-8"), re.M):
            for command in line.split(" && "):
                if found := re.fullmatch(r"(?:sudo )?make ([a-z-]+)", command):
                    assert found[1] in targets, command
                else:
                    assert re.match(r"\.ci/run$|sudo apt-get install |gh release (create|upload) ", command), command


class FakeFrame:
    """Stands in for pandas and its plots."""

    def __init__(self, data: dict[str, list[Any]]) -> None:
        """Keep the columns."""
        self.data = data

    def __getitem__(self, names: list[str]) -> FakeFrame:
        """Return some of the columns."""
        return FakeFrame({name: self.data[name] for name in names})

    def set_index(self, name: str) -> FakeFrame:
        """Take the column for the index."""
        assert name in self.data
        return self

    def plot(self, ylabel: str) -> None:
        """Draw nothing."""

    def describe(self) -> None:
        """Compute nothing."""


def test_the_cells_of_the_notebook_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    monkeypatch.setattr(sys.modules["pandas"], "DataFrame", FakeFrame, raising=False)
    notebook = json.loads((EXAMPLES / "notebook" / "load.ipynb").read_text("utf-8"))
    cells = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    names: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell.replace('duration="5s"', 'duration="1s"'), "cell", "exec"), names)
    assert isinstance(names["run"], weir.Run)
    assert names["run"].requests.ok > 50
