"""What operators of a gateway take over: configurations of other proxies, and alert rules."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from naming import ROOT
from page_blocks import blocks
from programs import binary, finished

pytestmark = pytest.mark.wide

TABLE = "docs/gate/coming-from.md"
PAGE = "docs/gate/translations.md"
RULES = ROOT / "packaging" / "prometheus" / "weir-gate.rules.yml"
PROXIES = ("nginx", "text", "yaml")
"""Languages of the other proxies' configurations, in the order of weir's."""


def program(name: str) -> str:
    """Path of a program. Without it the test is skipped."""
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name}")
    return found


@pytest.mark.parametrize("index", range(len(PROXIES)), ids=PROXIES)
def test_a_translated_configuration_is_valid(index: int, tmp_path: Path) -> None:
    configurations = blocks(PAGE, "toml")
    assert len(configurations) == len(PROXIES)
    (tmp_path / "gate.toml").write_text(configurations[index])
    done = finished(str(binary()), "gate", "check", "gate.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gate.toml: ")


def test_nginx_accepts_its_side(tmp_path: Path) -> None:
    [server] = blocks(PAGE, "nginx")
    server = server.replace("listen 8080", f"listen unix:{tmp_path}/socket")
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{server}}}\n"
    )
    done = finished(program("nginx"), "-t", "-p", str(tmp_path), "-c", "nginx.conf")
    assert done.returncode == 0, done.stderr


def test_haproxy_accepts_its_side(tmp_path: Path) -> None:
    [text] = blocks(PAGE, "text")
    (tmp_path / "haproxy.cfg").write_text(text)
    done = finished(program("haproxy"), "-c", "-f", str(tmp_path / "haproxy.cfg"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_envoys_side_is_yaml_with_the_same_routes() -> None:
    yaml = pytest.importorskip("yaml")
    [text] = blocks(PAGE, "yaml")
    [listener] = yaml.safe_load(text)["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    [shop] = manager["route_config"]["virtual_hosts"]
    assert shop["domains"] == ["shop.example", "*.shop.example"]
    assert len(shop["routes"]) == len(re.findall(r"^\[\[routes\]\]$", blocks(PAGE, "toml")[2], re.M))


def test_keys_of_the_table_exist() -> None:
    table = (ROOT / TABLE).read_text("utf-8").partition("## What differs")[0]
    keys = (ROOT / "docs" / "gate" / "keys.md").read_text("utf-8")
    flags = (ROOT / "docs" / "gate.md").read_text("utf-8")
    known = set(re.findall(r"^\| `([\w.\[\]]+)` ", keys, re.M))
    ends = {key.replace("[]", "").split(".")[-1] for key in known} | {key.replace("[]", "") for key in known}
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| nginx")]
    assert len(rows) > 40
    for row in rows:
        own = row.rstrip("| ").rsplit(" | ", 1)[-1]
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)*)(?: =[^`]*)?`", own):
            assert name in ends, row
        for flag in re.findall(r"--[a-z-]+", own):
            assert flag in flags, row


def test_alert_rules_have_metrics_and_labels_that_exist() -> None:
    text = RULES.read_text("utf-8")
    page = (ROOT / "docs" / "gate" / "observability.md").read_text("utf-8")
    alerts = re.findall(r"alert: (\w+)", text)
    assert len(set(alerts)) == len(alerts) == 10
    expressions = "\n".join(line for line in text.splitlines() if "summary:" not in line)
    metrics = {re.sub(r"_(bucket|count)$", "", name) for name in re.findall(r"\bweir_\w+", expressions)}
    assert sorted(name for name in metrics if f"`{name}`" not in page) == []
    values = {value for values in re.findall(r'outcome=~?"([^"]+)"', text) for value in values.split("|")}
    assert sorted(value for value in values if f"`{value}`" not in page) == []


def test_alert_rules_fire_when_they_should() -> None:
    promtool = program("promtool")
    done = finished(promtool, "check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    done = finished(promtool, "test", "rules", str(RULES.with_name("weir-gate.rules.test.yml")))
    assert done.returncode == 0, done.stdout + done.stderr
