"""Agents from Python: `weir.load(..., on=...)`, here and on a Ray cluster of several nodes on this machine.

The cluster takes three minutes of a core, most of them to import Ray, and is for `make soak`.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import programs
import pytest
from conftest import Service

import weir

# Ray starts several interpreters for each agent, which take turns on a busy machine.
TIMEOUT_S = 240.0


def until(what: str, condition: Callable[[], bool]) -> None:
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < TIMEOUT_S, f"waited in vain for {what}"
        time.sleep(0.02)


def agents() -> set[int]:
    """The agents below this process: of Ray's nodes, which are its children, and of ours."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if (entry / "cmdline").read_bytes().endswith(b"\0agent-process\0"):
                found.add(int(entry.name))
        except OSError:
            continue

    def is_ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 0)
        return pid == os.getpid()

    return {pid for pid in found if is_ours(pid)}


def test_agents_here_make_the_load_of_one(service: Service) -> None:
    alone = weir.load(service.url, rate=100, duration=0.5, arrivals="poisson", seed=3)
    together = weir.load(service.url, rate=100, duration=0.5, arrivals="poisson", seed=3, on="local", agents=2)
    assert alone.agents == ()
    assert together.requests.total == alone.requests.total == len(service.seen) / 2
    assert [agent.requests for agent in together.agents] == [
        (alone.requests.total + 1) // 2,
        alone.requests.total // 2,
    ]
    assert "2 agents on 1 node" in str(together)
    assert together == weir.Run.from_json(together.to_json())
    assert agents() == set()


def test_agents_that_cannot_be_are_errors(service: Service) -> None:
    with pytest.raises(weir.UsageError, match="on"):
        weir.load(service.url, agents=2)
    with pytest.raises(weir.UsageError, match="unknown backend 'mars'"):
        weir.load(service.url, on="mars")
    with pytest.raises(weir.UsageError, match=r"agents: 3 agents cannot share 2 connections"):
        weir.load(service.url, connections=2, on="local", agents=3)
    with pytest.raises(weir.SetupError, match=r"agent 1 on .*cannot connect to 127\.0\.0\.1:9"):
        weir.load("http://127.0.0.1:9/", on="local")


def test_nothing_of_ray_is_imported_without_need() -> None:
    code = "import sys, weir, weir._load; sys.exit('ray' in sys.modules)"
    assert programs.child(code).returncode == 0


@pytest.mark.soak
def test_the_files_for_clusters_are_what_ray_takes() -> None:
    why = "Ray is not installed: the files for clusters are not tested"
    yaml, util = (pytest.importorskip(name, reason=why) for name in ("yaml", "ray.autoscaler._private.util"))
    folder = Path(__file__).parents[2] / "examples" / "agents"
    util.validate_config(util.prepare_config(yaml.safe_load((folder / "cluster.yaml").read_text())))
    spec = yaml.safe_load((folder / "kuberay.yaml").read_text())["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert f"weir-http=={weir.__version__}" in (folder / "Dockerfile").read_text()


class _Nodes:
    """A Ray cluster whose head makes no load."""

    def __init__(self) -> None:
        cluster_utils = pytest.importorskip(
            "ray.cluster_utils", reason="Ray is not installed (pip install 'ray[client]'): agents on it are not tested"
        )
        with socket.create_server(("127.0.0.1", 0)) as held:
            self.client_port = held.getsockname()[1]
        self.small = {"object_store_memory": 80 << 20, "include_dashboard": False}
        head = {**self.small, "num_cpus": 0, "ray_client_server_port": self.client_port}
        self.cluster: Any = cluster_utils.Cluster(initialize_head=True, head_node_args=head)

    def add(self, **options: Any) -> Any:
        return self.cluster.add_node(**self.small, num_cpus=2, **options)


@pytest.fixture(scope="module")
def nodes() -> Iterator[_Nodes]:
    nodes = _Nodes()
    try:
        for _ in range(3):
            nodes.add()
        nodes.cluster.wait_for_nodes()
        yield nodes
    finally:
        nodes.cluster.shutdown()


@pytest.fixture
def url() -> Iterator[str]:
    with weir.serve("work", delay="1ms", mix="good=1") as service:
        yield f"{service.url}/api/work"


def start(nodes: _Nodes, url: str, *args: str, on: str = "auto", path: Path | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "weir", "load", url, "--on", on, "--format", "json", *args]
    environment = os.environ | {"RAY_ADDRESS": nodes.cluster.address}
    if path is not None:
        environment["PYTHONPATH"] = _before(path)
    until("the agents of before to be gone", lambda: not agents())
    process = programs.start(*command, env=environment)
    _started.append(process)
    return process


_started: "list[subprocess.Popen[str]]" = []


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """A test that fails leaves none of its programs behind."""
    yield
    while _started:
        with _started.pop() as process:
            process.kill()


def _before(path: Path) -> str:
    """Return PYTHONPATH with this folder first."""
    return os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])


def arrived(url: str) -> int:
    """Return the number of responses of the service."""
    with urlopen(f"{url.removesuffix('/api/work')}/metrics", timeout=TIMEOUT_S) as response:
        counts = re.findall(r"^weir_http_requests_total\{[^}]*\} (\d+)", response.read().decode(), re.MULTILINE)
    return sum(map(int, counts))


def loaded(process: subprocess.Popen[str], url: str, requests: int) -> None:
    until("some of the load to arrive", lambda: process.poll() is not None or arrived(url) > requests)


def at_work(process: subprocess.Popen[str], count: int) -> None:
    until(f"{count} agents to work", lambda: process.poll() is not None or len(agents()) == count)
    assert process.poll() is None, process.communicate()


def finish(process: subprocess.Popen[str], code: int) -> tuple[dict[str, Any], str]:
    """What it reported, if it did, and its one line on stderr."""
    with process:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, stderr
    assert stderr.count("\n") <= 1, stderr
    return json.loads(stdout or "{}"), stderr


pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.soak
def test_each_node_of_a_cluster_has_an_agent(nodes: _Nodes, url: str, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_text("shipped")
    run, said = finish(start(nodes, url, "-r", "300", "-d", "2s", "-m", "GET", "-b", f"@{body}"), 0)
    assert said == ""
    assert run["requests"]["total"] == run["requests"]["ok"] == 600
    assert [agent["requests"] for agent in run["agents"]] == [200, 200, 200]
    assert len({agent["node"] for agent in run["agents"]}) == 3
    assert run["bytes"]["out"] > 600 * len("shipped")
    until("agents to end", lambda: not agents())


@pytest.mark.soak
def test_users_of_a_script_of_k6_run_on_the_nodes(nodes: _Nodes, url: str, tmp_path: Path) -> None:
    folder, lib = tmp_path / "tests", tmp_path / "lib"
    folder.mkdir()
    lib.mkdir()
    (tmp_path / "paths.json").write_text('["/api/work"]')
    (lib / "one.js").write_text("export const one = 1;\n")
    (folder / "check.ts").write_text("export const isOk = (it: { status: number }): boolean => it.status === 200;\n")
    script = folder / "shop.js"
    script.write_text("""
import http from 'k6/http';
import { check } from 'k6';
import { SharedArray } from 'k6/data';
import { isOk } from './check.ts';
import { one } from 'https://jslib.k6.io/one.js';
const paths = new SharedArray('paths', () => JSON.parse(open('../paths.json')));
export const options = { vus: 6, iterations: 60, thresholds: { checks: ['rate==1'] } };
export const setup = () => ({ count: 2 });
export default ({ count }) => {
    for (let at = 0; at < count; at += one) check(http.get(`${__ENV.HOST}${paths[0]}`), { ok: isOk });
};
""")
    host = url.removesuffix("/api/work")
    flags = ["-s", str(script), "-e", f"HOST={host}", "--js-lib", str(lib)]
    environment = os.environ | {"RAY_ADDRESS": nodes.cluster.address}
    command = [sys.executable, "-m", "weir", "load", "--on", "auto", "--format", "json", *flags]
    process = programs.start(*command, env=environment)
    _started.append(process)
    run, said = finish(process, 0)
    assert said == ""
    assert run["iterations"]["ok"] == 60
    assert run["requests"]["ok"] == 120
    assert len({agent["node"] for agent in run["agents"] if agent["requests"]}) == 3
    assert run["slo"] == [{**run["slo"][0], "ok": True}]


@pytest.mark.soak
def test_a_cluster_may_be_far_away(nodes: _Nodes, url: str) -> None:
    _, said = finish(start(nodes, url, on="ray://127.0.0.1:9"), 2)
    assert "no Ray cluster at ray://127.0.0.1:9" in said
    for _ in range(3):
        process = start(nodes, url, "-c", "4", "-n", "200", on=f"ray://127.0.0.1:{nodes.client_port}")
        if process.wait(TIMEOUT_S) != 2:
            break
        _, said = finish(process, 2)
        assert "Ray" in said, said
    else:
        # It does not always start the server that it has for each client.
        pytest.skip(f"Ray's own client server does not start on this machine: {said}")
    run, said = finish(process, 0)
    assert (said, run["requests"]["ok"], len(run["agents"])) == ("", 200, 3)


@pytest.mark.soak
def test_agents_are_all_placed_or_none(nodes: _Nodes, url: str) -> None:
    _, said = finish(start(nodes, url, "--agents", "4", "-d", "1s"), 2)
    assert "4 agents need 4 nodes with a CPU, and the cluster has 3; give --agents 3" in said
    run, _ = finish(start(nodes, url, "--agents", "4", "--per-node", "2", "-r", "100", "-d", "1s"), 0)
    assert len({agent["node"] for agent in run["agents"]}) == 2


@pytest.mark.soak
def test_a_node_with_another_weir_is_named(nodes: _Nodes, url: str, tmp_path: Path) -> None:
    other = tmp_path / "weir"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '0.0.1'\n")
    odd = nodes.add(env_vars={"PYTHONPATH": str(tmp_path)})
    nodes.cluster.wait_for_nodes()
    try:
        _, said = finish(start(nodes, url, "-d", "1s"), 2)
        assert "weir 0.0.1 in Python" in said
        (other / "__init__.py").write_text("raise ImportError('it is for another machine')\n")
        _, said = finish(start(nodes, url, "-d", "1s"), 2)
        assert "no usable weir in Python" in said
        assert "(ImportError: it is for another machine)" in said
    finally:
        nodes.cluster.remove_node(odd)


_ANOTHER_PYTHON = """
import sys
if any(word.endswith("default_worker.py") for word in sys.orig_argv):
    import platform
    import types
    real = types.CodeType
    class Code(type):
        def __instancecheck__(cls, it):
            return isinstance(it, real)
    class CodeType(metaclass=Code):
        def __new__(cls, *args):
            raise TypeError(f"code expected at most 16 arguments, got {len(args)}")
    types.CodeType = CodeType
    platform.python_version = lambda: "3.99.1"
"""
"""What a node's workers do under another Python: they say so, and can load no code that travels by value."""

_ANOTHER_PYTHON_HERE = """
import collections
import sys
fields = "major minor micro releaselevel serial"
sys.version_info = collections.namedtuple("version_info", fields)(*sys.version_info[:2], 99, "final", 0)
"""


@pytest.mark.soak
def test_a_node_with_another_python_is_named(nodes: _Nodes, url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_ANOTHER_PYTHON)
    odd = nodes.add(env_vars={"PYTHONPATH": _before(tmp_path)})
    nodes.cluster.wait_for_nodes()
    try:
        _, said = finish(start(nodes, url, "-d", "1s"), 2)
        pattern = r"agent \d on [\d.]+ \(\w{8}\): Python 3\.99\.1 on this node, Python 3\.[\d.]+ on the driver"
        assert re.search(pattern, said), said
    finally:
        nodes.cluster.remove_node(odd)


@pytest.mark.soak
def test_a_cluster_of_another_python_is_one_line(nodes: _Nodes, url: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_ANOTHER_PYTHON_HERE)
    _, said = finish(start(nodes, url, "-d", "1s", path=tmp_path), 2)
    assert "another version of Python or Ray" in said
    here = f"Python: {sys.version_info.major}.{sys.version_info.minor}"
    assert f"{here}.{sys.version_info.micro}" in said
    assert f"{here}.99" in said


@pytest.mark.soak
def test_a_slow_agent_is_named_and_a_killed_node_ends_the_run(nodes: _Nodes, url: str) -> None:
    process = start(nodes, url, "-r", "150", "-d", "6s", "--agents", "2")
    at_work(process, 2)
    loaded(process, url, 150)
    slow = min(agents())
    os.kill(slow, signal.SIGSTOP)
    time.sleep(1)
    os.kill(slow, signal.SIGCONT)
    run, _ = finish(process, 0)
    assert not run["trust"]["ok"]
    assert any(reason.startswith("agent ") and "sent late" in reason for reason in run["trust"]["reasons"])

    doomed = nodes.add()
    nodes.cluster.wait_for_nodes()
    before = arrived(url)
    process = start(nodes, url, "-r", "150", "-d", "10m", "--agents", "4")
    at_work(process, 4)
    loaded(process, url, before + 300)
    nodes.cluster.remove_node(doomed, allow_graceful=False)
    run, said = finish(process, 3)
    assert "was lost" in said
    assert sum(agent["lost"] is not None for agent in run["agents"]) == 1
    assert run["requests"]["ok"] > 100
    until("agents to end", lambda: not agents())
    # Ray takes longer to find out than we do.
    nodes.cluster.wait_for_nodes(timeout=TIMEOUT_S)


@pytest.mark.soak
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_agents_end_with_their_driver(nodes: _Nodes, url: str, how: signal.Signals, code: int) -> None:
    process = start(nodes, url, "-r", "90", "-d", "10m")
    at_work(process, 3)
    loaded(process, url, 90)
    process.send_signal(how)
    finish(process, code)
    until("agents to end", lambda: not agents())
