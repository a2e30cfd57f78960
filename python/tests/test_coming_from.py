"""Pages for users of other tools: weir's side of each example runs in the test shop, the other side is read or run."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import sys
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from naming import ROOT
from page_blocks import blocks, commands
from programs import finished, weir

import weir as package

pytestmark = pytest.mark.wide

PAGES = ROOT / "docs" / "coming-from"
EXAMPLES = ROOT / "examples" / "coming-from"
USERS = "user,password\nada,pw-ada\ngrace,pw-grace\nalan,pw-alan\n"

SHORT = {"-d": "2s", "--ramp-up": "100ms", "--think": "0s..10ms", "--users": "4", "--stages": "0-20/1s,20/1s"}
"""Values in place of those of the pages, so that a run takes seconds."""


def peer(name: str) -> str:
    """Path of another tool: on PATH, or installed by benches/peers.sh. Without it the test is skipped."""
    places = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / "benches" / "out" / "peers" / "bin")])
    program = shutil.which(name, path=places)
    if not program:
        pytest.skip(f"no {name}; benches/peers.sh installs the peers of the benchmarks")
    return program


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """URL of a shop."""
    with package.serve("shop") as service:
        yield service.url.rstrip("/")


def counted(shop: str) -> dict[str, int]:
    """What the shop has counted."""
    with urllib.request.urlopen(f"{shop}/stats") as response:
        return dict(json.load(response))


def page_of(name: str) -> str:
    return f"docs/coming-from/{name}.md"


def shortened(command: str, shop: str) -> list[str]:
    """Arguments of `weir` on a page, for the shop and for seconds."""
    words = shlex.split(command.replace("\\\n", " ").replace("http://localhost:8080", shop), comments=True)
    pairs = zip(["", *words], words, strict=False)
    return [SHORT.get(before, word) for before, word in pairs][1:]


@pytest.mark.parametrize("name", ["k6", "locust", "jmeter", "gatling", "artillery", "wrk", "hurl"])
def test_the_load_of_the_page_plays_without_a_failure(
    name: str, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = [text for text in commands(page_of(name)) if re.match(r"weir load\b.*-s \w+\.hurl", text, re.S)]
    assert loads, "the page has no load of its scenario"
    for load in loads:
        arguments = shortened(load, shop)
        file = arguments[arguments.index("-s") + 1]
        (tmp_path / file).write_text(blocks(page_of(name), "hurl")[0])
        (tmp_path / "users.csv").write_text(USERS)
        monkeypatch.chdir(tmp_path)
        done = weir(*arguments, "--out", "result.json")
        # An objective on times is missed on a busy machine; the exit code is 1 then.
        assert done.returncode in {0, 1}, done.stdout + done.stderr
        run = package.Run.from_json((tmp_path / "result.json").read_text())
        assert run.requests.failed == 0, done.stdout
        assert run.steps, done.stdout
        assert all(step.requests > 0 for step in run.steps), done.stdout


def test_the_load_of_vegetas_page_plays(shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "login.json").write_text('{"user": "ada", "password": "pw-ada"}')
    monkeypatch.chdir(tmp_path)
    [load] = [text for text in commands(page_of("vegeta")) if text.startswith("weir load")]
    done = weir(*shortened(load, shop))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
    assert (tmp_path / "run.html").stat().st_size > 0


def test_k6_plays_its_side(shop: str, tmp_path: Path) -> None:
    k6 = peer("k6")
    [script] = blocks(page_of("k6"), "js")
    assert "sleep(1 + 2 * Math.random())" in script
    (tmp_path / "shop.js").write_text(script.replace("sleep(1 + 2 * Math.random())", "sleep(0.01)"))
    (tmp_path / "users.json").write_text(
        '[{"user": "ada", "password": "pw-ada"}, {"user": "grace", "password": "pw-grace"}]'
    )
    before = counted(shop)
    options = ["--vus", "2", "--iterations", "10", "--duration", "30s", "--summary-export", "summary.json"]
    done = finished(k6, "run", "-q", "-e", f"HOST={shop}", *options, "shop.js", cwd=tmp_path)
    # 99: a threshold on times is missed on a busy machine.
    assert done.returncode in {0, 99}, done.stdout + done.stderr
    metrics = json.loads((tmp_path / "summary.json").read_text())["metrics"]
    assert (metrics["iterations"]["count"], metrics["http_reqs"]["count"]) == (10, 50)
    assert metrics["checks"]["fails"] == 0
    after = counted(shop)
    assert (after["orders"] - before["orders"], after["violations_total"] - before["violations_total"]) == (10, 0)


def test_the_jmeter_plan_imports_as_the_page_shows_and_plays(
    shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in filter(Path.is_file, EXAMPLES.iterdir()):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    [shown] = [block for block in blocks(page_of("jmeter"), "console") if block.startswith("$ weir import")]
    command, _, output = shown.partition("\n")
    done = weir(*shlex.split(command)[2:])
    assert (done.returncode, done.stderr) == (0, output)
    host, _, port = shop.removeprefix("http://").partition(":")
    mix = re.sub(r"(?m)^(duration|ramp_up) = .*$", r'\1 = "1s"', (tmp_path / "shop.toml").read_text())
    (tmp_path / "shop.toml").write_text(mix.replace("1000ms..3000ms", "0s..10ms").replace("users = 100", "users = 4"))
    (tmp_path / "shop.env").write_text(f"host={host}\nport={port}\n")
    done = weir("load", "-s", "shop.toml", "--variables-file", "shop.env", "--out", "result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    run = package.Run.from_json((tmp_path / "result.json").read_text())
    assert run.requests.failed == 0, done.stdout
    assert [step.name for step in run.steps] == ["login", "items", "item", "cart", "buy"]


def test_jmeter_plays_its_plan(shop: str, tmp_path: Path) -> None:
    jmeter = peer("jmeter")
    for file in filter(Path.is_file, EXAMPLES.iterdir()):
        shutil.copy(file, tmp_path)
    host, _, port = shop.removeprefix("http://").partition(":")
    settings = {
        "host": host,
        "port": port,
        "threads": "2",
        "ramp": "0",
        "seconds": "2",
        "delay": "0",
        "delay_range": "10",
    }
    given = [f"-J{name}={value}" for name, value in settings.items()]
    done = finished(jmeter, "-n", "-t", "shop.jmx", "-l", "run.jtl", *given, cwd=tmp_path, timeout_s=120)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = (tmp_path / "run.jtl").read_text().splitlines()
    assert len(rows) > 10
    columns = rows[0].split(",")
    failed = [row for row in rows[1:] if row.split(",")[columns.index("success")] != "true"]
    assert failed == []


PARSER = """
import com.sun.source.util.JavacTask;
import javax.tools.*;

class Parse {
    public static void main(String[] files) throws Exception {
        var compiler = ToolProvider.getSystemJavaCompiler();
        var mistakes = new DiagnosticCollector<JavaFileObject>();
        var manager = compiler.getStandardFileManager(mistakes, null, null);
        ((JavacTask) compiler.getTask(null, manager, mistakes, null, null, manager.getJavaFileObjects(files))).parse();
        mistakes.getDiagnostics().forEach(System.out::println);
        System.exit(mistakes.getDiagnostics().isEmpty() ? 0 : 1);
    }
}
"""
"""Program that reads Java without looking for what it imports: Gatling is not installed by anything here."""


def test_the_gatling_simulation_is_java(tmp_path: Path) -> None:
    if not shutil.which("javac"):
        pytest.skip("no javac")
    [simulation] = blocks(page_of("gatling"), "java")
    (tmp_path / "Parse.java").write_text(PARSER)
    (tmp_path / "ShopSimulation.java").write_text(simulation)
    done = finished("java", "Parse.java", "ShopSimulation.java", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (tmp_path / "ShopSimulation.java").write_text(simulation.replace(".exec(", ".exec((", 1))
    assert finished("java", "Parse.java", "ShopSimulation.java", cwd=tmp_path).returncode == 1


def test_the_artillery_script_is_yaml_with_the_steps_of_the_scenario() -> None:
    yaml = pytest.importorskip("yaml")
    [text] = blocks(page_of("artillery"), "yaml")
    script = yaml.safe_load(text)
    assert {"target", "phases", "payload"} <= script["config"].keys()
    assert all({"duration", "arrivalRate"} <= phase.keys() for phase in script["config"]["phases"])
    known = set(script["config"]["payload"]["fields"])
    requests = []
    for step in script["scenarios"][0]["flow"]:
        [(kind, content)] = step.items()
        if kind == "think":
            continue
        sent = {name: value for name, value in content.items() if name not in {"capture", "expect"}}
        used = set(re.findall(r"\{\{ *(\w+) *\}\}", json.dumps(sent)))
        assert used <= known, f"{kind} {content['url']} uses {used - known}"
        known |= {content["capture"]["as"]} if "capture" in content else set()
        requests.append((kind.upper(), re.sub(r"\{\{ *(\w+) *\}\}", r"{{\1}}", content["url"])))
    scenario = re.findall(r"^(GET|POST) \{\{host\}\}(\S+)$", blocks(page_of("artillery"), "hurl")[0], re.M)
    assert requests == scenario


def test_the_clients_of_httpxs_page_get_a_response(tmp_path: Path) -> None:
    code = blocks(page_of("httpx"), "python")
    assert len(code) == 3
    with package.serve("work", mix="good=8,error=1,hang=1", delay="5ms..20ms", seed=1) as service:
        for number, text in enumerate(code):
            file = tmp_path / f"{number}.py"
            file.write_text(text.replace("http://localhost:9001", service.url.rstrip("/")))
        for number in (1, 2):
            done = finished(sys.executable, str(tmp_path / f"{number}.py"))
            assert done.returncode == 0, done.stderr
            assert "'won'" in done.stdout
        compile(code[0], "httpx.py", "exec")


class TryAgain(Exception):  # noqa: N818  tenacity's name
    """Exception of the page."""


def test_each_call_on_tenacitys_page_is_valid_and_its_example_runs(tmp_path: Path) -> None:
    text = (ROOT / page_of("tenacity")).read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "weir" in line]
    found = [code for row in rows for code in re.findall(r"`(weir\.retry\([^`]*\))`", row.rsplit(" | ", 1)[1])]
    assert len(found) >= 30, found

    def function() -> int:
        return 1

    function.__wrapped__ = function  # type: ignore[attr-defined]
    names = {"weir": package, "random": random, "timedelta": timedelta, "TryAgain": TryAgain, "is_ready": bool}
    for code in found:
        policy = eval(code, {**names, "function": function})
        assert policy == 1 or policy(function)() == 1, code
    pytest.importorskip("tenacity")
    for number, block in enumerate(blocks(page_of("tenacity"), "python")):
        file = tmp_path / f"{number}.py"
        file.write_text(block)
        done = finished(sys.executable, str(file))
        assert (done.returncode, done.stdout) == (0, "fetched\n"), done.stderr


def test_the_blocks_of_the_page_of_retries_run(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    with package.serve("work", mix="good=9,error=1", delay="1ms", seed=1) as service:
        text = "\n".join(blocks("docs/python-retry.md", "python")) + "\nimport asyncio\n\nasyncio.run(main())\n"
        file = tmp_path / "page.py"
        file.write_text(text.replace("http://localhost:9001", service.url.rstrip("/")))
        done = finished(sys.executable, str(file))
    assert done.returncode == 0, done.stderr
    assert "won" in done.stdout.splitlines()[-1]
