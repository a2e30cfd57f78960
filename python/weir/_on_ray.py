"""Ray driver: places agents on the nodes of a Ray cluster, copies files to them, and watches them; no requests pass it.

``weir load --on auto`` runs this module as a process, so that Ray is imported here only. Its stdin has a line of JSON,
the placement request, and then lines for agents: ``NUMBER LINE``. Its stdout has ``- JSON`` for its own events (placed,
rejected, lost, log), and ``NUMBER LINE`` for lines from agents. When stdin ends, all agents end.

An agent is a process ``weir agent-process`` below an actor, and ends with it. The actor's class is pickled by value, so
that a node without weir can report that.
"""

# ruff: noqa: PLC0415  # Ray may not be installed, and an actor imports on its own node

import json
import logging
import os
import platform
import shutil
import socket
import sys
import tempfile
import threading
from typing import Any, NoReturn
from urllib.parse import urlsplit

_PLACEMENT_TIMEOUT_S = 60.0
"""Timeout for reserving nodes, and for starting processes there."""
_CONNECT_TIMEOUT_S = 5.0
"""Timeout for connecting to the head of a cluster."""
_TEARDOWN_TIMEOUT_S = 2.0
"""Timeout of an orderly end; after that Ray itself cleans up after a driver that is gone."""


class _PlacementError(Exception):
    """Agents cannot be placed; the message is one line."""


def main() -> None:
    """Place the agents of the first line, and pass lines on until stdin or the last agent ends."""
    write = _own_stdout()
    line = sys.stdin.readline()
    if not line:
        return
    try:
        agents = _Agents(json.loads(line), write)
        threading.Thread(target=agents.forward_stdin, daemon=True).start()
        agents.place()
    except _PlacementError as reason:
        write(f"- {json.dumps({'rejected': str(reason)})}")
        _exit()
    threading.Thread(target=agents.forward_output, daemon=True).start()
    agents.ended.wait()
    agents.remove()
    _exit()


def _own_stdout() -> Any:
    """Reserve stdout for the protocol: other prints go to stderr."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def write(*lines: str) -> None:
        with lock:
            try:
                stdout.write("".join(line + "\n" for line in lines))
                stdout.flush()
            except OSError:
                _exit()

    return write


def _exit() -> NoReturn:
    # Not `sys.exit`: it waits for threads, which may wait for Ray.
    os._exit(0)


class _Agents:
    """Agents on the nodes of a cluster, of one placement request."""

    def __init__(self, request: dict[str, Any], write: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise _PlacementError(
                f"--on {request['address']} needs Ray in {sys.executable}: pip install 'weir-http[ray]' ({error})"
            ) from error
        self.ray: Any = ray
        self.request = request
        self.write = write
        self.ended = threading.Event()
        self.actors: list[Any] = []
        self.group: Any = None
        self.placed = False

    def place(self) -> None:
        """Connect, copy files, and start all agents or none.

        Raises:
            _PlacementError: Without a cluster, enough nodes, or a usable weir there.
        """
        self._connect()
        try:
            count, per_node = self._count(), int(self.request["per_node"])
            self._reserve(count, per_node)
            self._start(count, per_node)
        except _PlacementError:
            self.remove()
            raise
        except Exception as error:
            self.remove()
            raise _PlacementError(f"Ray cannot place agents: {_one_line(error)}") from error

    def _connect(self) -> None:
        address = self.request["address"]
        folder = tempfile.mkdtemp(prefix="weir-")
        try:
            for path, name in self.request["files"]:
                copy = os.path.join(folder, name)
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copyfile(path, copy)
            if address.startswith("ray://"):
                # Ray itself retries for half a minute, with a vaguer error.
                url = urlsplit(address)
                socket.create_connection((url.hostname, url.port), timeout=_CONNECT_TIMEOUT_S).close()
            self.ray.init(
                address=address,
                runtime_env={"working_dir": folder} if self.request["files"] else {},
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except Exception as error:
            if "Version mismatch" in str(error):
                # The whole message: the versions of this machine come last.
                raise _PlacementError(
                    f"the Ray cluster at {address} has another version of Python or Ray than this machine; install the"
                    f" same: {' '.join(str(error).split())}"
                ) from error
            raise _PlacementError(f"no Ray cluster at {address}: {_one_line(error)}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _count(self) -> int:
        nodes = sum(1 for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
        self.nodes = nodes
        return int(self.request["agents"] or nodes * int(self.request["per_node"]))

    def _reserve(self, count: int, per_node: int) -> None:
        from ray.util.placement_group import placement_group

        sizes = [min(per_node, count - first) for first in range(0, count, per_node)]
        if len(sizes) > self.nodes:
            raise _PlacementError(
                f"{count} agents need {len(sizes)} nodes with a CPU, and the cluster has {self.nodes}; give --agents"
                f" {self.nodes * per_node}, or more agents per node with --per-node"
            )
        self.group = placement_group([{"CPU": size} for size in sizes], strategy="STRICT_SPREAD")
        if not self.group.wait(_PLACEMENT_TIMEOUT_S):
            raise _PlacementError(
                f"{count} agents do not fit on {len(sizes)} nodes: their CPUs are reserved; wait for them, or give"
                " fewer --agents"
            )

    def _start(self, count: int, per_node: int) -> None:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        strategies = [
            PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=index // per_node)
            for index in range(count)
        ]
        self._check_pythons(strategies[::per_node], per_node)
        actor = self._actor()
        for strategy in strategies:
            options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": strategy}
            self.actors.append(actor.options(**options).remote())
        abouts = self.ray.get([actor.about.remote() for actor in self.actors], timeout=_PLACEMENT_TIMEOUT_S)
        for index, about in enumerate(abouts):
            self._check(index, about)
        started = self.ray.get(
            [actor.start.remote(self.request["command"]) for actor in self.actors], timeout=_PLACEMENT_TIMEOUT_S
        )
        for index, reason in enumerate(started):
            if reason:
                raise _PlacementError(f"agent {index + 1} on {abouts[index]['node']}: {reason}")
        self.placed = True
        self.write(f"- {json.dumps({'placed': [about['node'] for about in abouts]})}")

    def _check_pythons(self, strategies: list[Any], per_node: int) -> None:
        """Compare Python versions, by a function of the standard library: own code is pickled for one version only."""
        version = self.ray.remote(num_cpus=0, max_retries=0)(platform.python_version)
        versions = [version.options(scheduling_strategy=strategy).remote() for strategy in strategies]
        for bundle, on_node in enumerate(self.ray.get(versions, timeout=_PLACEMENT_TIMEOUT_S)):
            on_driver = platform.python_version()
            if on_node.split(".")[:2] != on_driver.split(".")[:2]:
                raise _PlacementError(
                    f"agent {bundle * per_node + 1} on {self._node(bundle)}: Python {on_node} on this node, Python"
                    f" {on_driver} on the driver; install the same version on all nodes"
                )

    def _node(self, bundle: int) -> str:
        """Name the node of a bundle as its agents do."""
        node_id = self.ray.util.placement_group_table(self.group)["bundles_to_node_id"][bundle]
        address = next((it["NodeManagerAddress"] for it in self.ray.nodes() if it["NodeID"] == node_id), "a node")
        return f"{address} ({node_id[:8]})"

    def _check(self, index: int, about: dict[str, str]) -> None:
        agent, wanted = f"agent {index + 1} on {about['node']}", self.request["weir"]
        if about["weir"] == wanted:
            return
        if about["weir"]:
            problem = f"weir {about['weir']} in Python {about['python']} on this node, weir {wanted} on the driver"
        else:
            problem = f"no usable weir in Python {about['python']} on this node ({about['error']})"
        raise _PlacementError(
            f"{agent}: {problem}; install the same version on all nodes: pip install weir-http=={wanted}"
        )

    def _actor(self) -> Any:
        """Make the actor's class, with two methods that run concurrently."""
        ray = self.ray
        own = type("WeirAgent", (_Agent,), {})
        own.send = ray.method(concurrency_group="commands")(_Agent.send)  # type: ignore[attr-defined]
        own.receive = ray.method(concurrency_group="events")(_Agent.receive)  # type: ignore[attr-defined]
        return ray.remote(concurrency_groups={"commands": 1, "events": 1})(own)

    def forward_stdin(self) -> None:
        """Pass lines of stdin on to agents, until stdin ends."""
        for line in sys.stdin:
            number, _, rest = line.rstrip("\n").partition(" ")
            index = int(number)
            if index < len(self.actors):
                self.actors[index].send.remote(rest)
        if not self.placed:
            # Ray itself ends what was started so far.
            _exit()
        self.ended.set()

    def forward_output(self) -> None:
        """Pass lines of agents on to stdout, until all agents have ended."""
        pending = {actor.receive.remote(): index for index, actor in enumerate(self.actors)}
        while pending:
            ready, _ = self.ray.wait(list(pending), num_returns=1, timeout=None)
            for reference in ready:
                index = pending.pop(reference)
                try:
                    lines, messages, ending = self.ray.get(reference)
                except Exception as error:
                    self._lost(index, f"Ray reports: {_one_line(error)}")
                    continue
                logged = [f"- {json.dumps({'log': [index, message]})}" for message in messages]
                self.write(*logged, *(f"{index} {line}" for line in lines))
                if ending is None:
                    pending[self.actors[index].receive.remote()] = index
                else:
                    self._lost(index, ending)

    def _lost(self, index: int, reason: str) -> None:
        self.write(f"- {json.dumps({'lost': [index, reason]})}")

    def remove(self) -> None:
        """End all agents, and release their CPUs."""
        timer = threading.Timer(_TEARDOWN_TIMEOUT_S, _exit)
        timer.daemon = True
        timer.start()
        try:
            for actor in self.actors:
                self.ray.kill(actor)
            if self.group is not None:
                self.ray.util.remove_placement_group(self.group)
            self.ray.shutdown()
        except Exception as error:
            # An actor or a cluster may be gone already.
            print(f"Ray: {_one_line(error)}", file=sys.stderr)
        timer.cancel()


class _Agent:
    """Actor with the process of an agent, and pipes to it. It runs on a node that may not have weir."""

    def about(self) -> dict[str, str]:
        """Return the node, and the versions of Python and weir there."""
        import platform

        import ray

        about = {"python": platform.python_version(), "weir": "", "error": ""}
        api: Any = ray
        about["node"] = f"{api.util.get_node_ip_address()} ({api.get_runtime_context().get_node_id()[:8]})"
        try:
            import weir

            about["weir"] = weir.__version__
        except Exception as error:
            about["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        return about

    def start(self, command: str) -> str:
        """Start the agent's process; return the error, or an empty text."""
        import queue
        import subprocess
        import sys
        import threading

        self.lines: Any = queue.Queue()
        self.messages: Any = queue.Queue()
        pipe = subprocess.PIPE
        try:
            line = [sys.executable, "-m", "weir", command]
            self.process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            return f"cannot start its process: {error}"

        def read(stream: Any, into: Any) -> None:
            for line in stream:
                into.put(line.decode("utf-8", "replace").rstrip("\n"))
            into.put(None)

        for stream, into in [(self.process.stdout, self.lines), (self.process.stderr, self.messages)]:
            threading.Thread(target=read, args=(stream, into), daemon=True).start()
        return ""

    def send(self, line: str) -> None:
        """Write a line to the agent; if it is gone, `receive` reports that."""
        import contextlib

        with contextlib.suppress(OSError):
            self.process.stdin.write(line.encode() + b"\n")  # type: ignore[union-attr]  # a pipe
            self.process.stdin.flush()  # type: ignore[union-attr]

    def receive(self) -> tuple[list[str], list[str], str | None]:
        """Wait up to a second for output of the agent: lines of stdout and stderr, and how it ended, if it has."""
        import queue

        lines: list[str] = []
        ending = None
        try:
            line = self.lines.get(timeout=1.0)
            while line is not None:
                lines.append(line)
                line = self.lines.get_nowait()
            code = self.process.wait(timeout=5)
            ending = f"killed (signal {-code})" if code < 0 else f"exit code {code}"
        except queue.Empty:
            pass
        messages = []
        while not self.messages.empty():
            message = self.messages.get()
            messages += [message[:500]] if message else []
        return lines, messages, ending


def _one_line(error: BaseException) -> str:
    """Shorten a message of Ray: the last line of a traceback, or the first four lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if "Traceback" in str(error) else " ".join(lines[:4])
    return (text or type(error).__name__)[:500]


if __name__ == "__main__":
    main()
