"""Agents on the nodes of a Ray cluster: Ray places them, ships what they need, and watches; it is in no request's way.

``weir load --on auto`` runs this as a process of its own, so nothing of Ray is imported by anybody else. It is told on
its stdin what to place, as a line of JSON, and then what to tell agents: ``NUMBER LINE``. It says on its stdout
``- JSON`` for itself (placed, refused, lost, log), and ``NUMBER LINE`` for what an agent says. When its stdin ends,
all of it ends.

An agent is ``weir agent-process`` below an actor, and ends with it. The actor's class travels by value, so a node
without weir can say so itself.
"""

# ruff: noqa: PLC0415  # Ray is imported once it is known to be there, and an actor imports on its own node

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

_PLACING_S = 60.0
"""How long a cluster has to give us the nodes, and to start our processes there."""
_REACHING_S = 5.0
"""How long the head of a cluster may take to take a connection."""
_TEAR_DOWN_S = 2.0
"""How long an orderly end may take; Ray notices a driver that is gone all the same."""


class _RefusedError(Exception):
    """Agents cannot be placed; a line for a person."""


def main() -> None:
    """Place what the first line asks for, and pass lines on until nobody is there to hear them."""
    say = _own_stdout()
    line = sys.stdin.readline()
    if not line:
        return
    try:
        crew = _Crew(json.loads(line), say)
        threading.Thread(target=crew.obey, daemon=True).start()
        crew.place()
    except _RefusedError as why:
        say(f"- {json.dumps({'refused': str(why)})}")
        _leave()
    threading.Thread(target=crew.listen, daemon=True).start()
    crew.ended.wait()
    crew.remove()
    _leave()


def _own_stdout() -> Any:
    """Keep stdout for ourselves: whatever else prints goes to stderr."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(*lines: str) -> None:
        with lock:
            try:
                stdout.write("".join(line + "\n" for line in lines))
                stdout.flush()
            except OSError:
                _leave()

    return say


def _leave() -> NoReturn:
    # Not `sys.exit`: threads that wait for Ray would keep us here.
    os._exit(0)


class _Crew:
    """Agents that are, or will be, on the nodes of a cluster."""

    def __init__(self, wish: dict[str, Any], say: Any) -> None:
        try:
            import ray
        except ImportError as error:
            raise _RefusedError(
                f"--on {wish['address']} needs Ray in {sys.executable}: pip install 'weir-http[ray]' ({error})"
            ) from error
        self.ray: Any = ray
        self.wish = wish
        self.say = say
        self.ended = threading.Event()
        self.actors: list[Any] = []
        self.group: Any = None
        self.placed = False

    def place(self) -> None:
        """Connect, ship files, and start all agents or none.

        Raises:
            _RefusedError: It cannot be done.
        """
        self._connect()
        try:
            count, per_node = self._count(), int(self.wish["per_node"])
            self._reserve(count, per_node)
            self._start(count, per_node)
        except _RefusedError:
            self.remove()
            raise
        except Exception as error:
            self.remove()
            raise _RefusedError(f"Ray cannot place agents: {_one_line(error)}") from error

    def _connect(self) -> None:
        address = self.wish["address"]
        folder = tempfile.mkdtemp(prefix="weir-")
        try:
            for path, name in self.wish["files"]:
                shutil.copyfile(path, os.path.join(folder, name))
            if address.startswith("ray://"):
                # Ray itself would try for half a minute, and say less.
                there = urlsplit(address)
                socket.create_connection((there.hostname, there.port), timeout=_REACHING_S).close()
            self.ray.init(
                address=address,
                runtime_env={"working_dir": folder} if self.wish["files"] else {},
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except Exception as error:
            if "Version mismatch" in str(error):
                # All of it: what is here comes last.
                raise _RefusedError(
                    f"the Ray cluster at {address} has another version of Python or Ray than is here; install the same:"
                    f" {' '.join(str(error).split())}"
                ) from error
            raise _RefusedError(f"no Ray cluster at {address}: {_one_line(error)}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _count(self) -> int:
        nodes = sum(1 for node in self.ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
        self.nodes = nodes
        return int(self.wish["agents"] or nodes * int(self.wish["per_node"]))

    def _reserve(self, count: int, per_node: int) -> None:
        from ray.util.placement_group import placement_group

        sizes = [min(per_node, count - first) for first in range(0, count, per_node)]
        if len(sizes) > self.nodes:
            raise _RefusedError(
                f"{count} agents need {len(sizes)} nodes with a CPU, and the cluster has {self.nodes}; give --agents"
                f" {self.nodes * per_node}, or let nodes have more of them with --per-node"
            )
        self.group = placement_group([{"CPU": size} for size in sizes], strategy="STRICT_SPREAD")
        if not self.group.wait(_PLACING_S):
            raise _RefusedError(
                f"{count} agents find no place on {len(sizes)} nodes: their CPUs are taken; wait for them, or give"
                " fewer --agents"
            )

    def _start(self, count: int, per_node: int) -> None:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        places = [
            PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=index // per_node)
            for index in range(count)
        ]
        self._check_pythons(places[::per_node], per_node)
        actor = self._actor()
        for strategy in places:
            options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": strategy}
            self.actors.append(actor.options(**options).remote())
        abouts = self.ray.get([actor.about.remote() for actor in self.actors], timeout=_PLACING_S)
        for index, about in enumerate(abouts):
            self._check(index, about)
        started = self.ray.get([actor.start.remote(self.wish["command"]) for actor in self.actors], timeout=_PLACING_S)
        for index, why in enumerate(started):
            if why:
                raise _RefusedError(f"agent {index + 1} on {abouts[index]['node']}: {why}")
        self.placed = True
        self.say(f"- {json.dumps({'placed': [about['node'] for about in abouts]})}")

    def _check_pythons(self, places: list[Any], per_node: int) -> None:
        """What travels by value is code, and that is of one Python: so ask by what each of them has."""
        asked = self.ray.remote(num_cpus=0, max_retries=0)(platform.python_version)
        answers = [asked.options(scheduling_strategy=place).remote() for place in places]
        for bundle, there in enumerate(self.ray.get(answers, timeout=_PLACING_S)):
            here = platform.python_version()
            if there.split(".")[:2] != here.split(".")[:2]:
                raise _RefusedError(
                    f"agent {bundle * per_node + 1} on {self._node(bundle)}: Python {there} on this node, Python {here}"
                    " on the driver; install the same version on all nodes"
                )

    def _node(self, bundle: int) -> str:
        """Where a part of our places is, as the agents there would say."""
        there = self.ray.util.placement_group_table(self.group)["bundles_to_node_id"][bundle]
        address = next((it["NodeManagerAddress"] for it in self.ray.nodes() if it["NodeID"] == there), "a node")
        return f"{address} ({there[:8]})"

    def _check(self, index: int, about: dict[str, str]) -> None:
        who, wanted = f"agent {index + 1} on {about['node']}", self.wish["weir"]
        if about["weir"] != wanted:
            python = f"Python {about['python']} on this node"
            wrong = f"weir {about['weir']} in {python}, weir {wanted} on the driver"
            if not about["weir"]:
                wrong = f"no usable weir in {python} ({about['why']})"
            raise _RefusedError(
                f"{who}: {wrong}; install the same version on all nodes: pip install weir-http=={wanted}"
            )

    def _actor(self) -> Any:
        """The actor's class, with two ways in that do not wait for each other."""
        ray = self.ray
        own = type("WeirAgent", (_Agent,), {})
        own.tell = ray.method(concurrency_group="orders")(_Agent.tell)  # type: ignore[attr-defined]
        own.hear = ray.method(concurrency_group="news")(_Agent.hear)  # type: ignore[attr-defined]
        return ray.remote(concurrency_groups={"orders": 1, "news": 1})(own)

    def obey(self) -> None:
        """Tell agents what our stdin says, until it ends."""
        for line in sys.stdin:
            number, _, rest = line.rstrip("\n").partition(" ")
            index = int(number)
            if index < len(self.actors):
                self.actors[index].tell.remote(rest)
        if not self.placed:
            # Nothing runs yet that Ray would not end itself.
            _leave()
        self.ended.set()

    def listen(self) -> None:
        """Say what agents say, until none is left."""
        waiting = {actor.hear.remote(): index for index, actor in enumerate(self.actors)}
        while waiting:
            heard, _ = self.ray.wait(list(waiting), num_returns=1, timeout=None)
            for reference in heard:
                index = waiting.pop(reference)
                try:
                    lines, complaints, ending = self.ray.get(reference)
                except Exception as error:
                    self._lost(index, f"Ray says: {_one_line(error)}")
                    continue
                news = [f"- {json.dumps({'log': [index, complaint]})}" for complaint in complaints]
                self.say(*news, *(f"{index} {line}" for line in lines))
                if ending is None:
                    waiting[self.actors[index].hear.remote()] = index
                else:
                    self._lost(index, ending)

    def _lost(self, index: int, why: str) -> None:
        self.say(f"- {json.dumps({'lost': [index, why]})}")

    def remove(self) -> None:
        """End all agents, and give their places back."""
        timer = threading.Timer(_TEAR_DOWN_S, _leave)
        timer.daemon = True
        timer.start()
        try:
            for actor in self.actors:
                self.ray.kill(actor)
            if self.group is not None:
                self.ray.util.remove_placement_group(self.group)
            self.ray.shutdown()
        except Exception as error:
            # What is gone needs no end.
            print(f"Ray: {_one_line(error)}", file=sys.stderr)
        timer.cancel()


class _Agent:
    """An actor: the process of an agent, and the pipes to it. Runs on a node that may not have weir."""

    def about(self) -> dict[str, str]:
        """Say where it is, and what is there."""
        import platform

        import ray

        about = {"python": platform.python_version(), "weir": "", "why": ""}
        there: Any = ray
        about["node"] = f"{there.util.get_node_ip_address()} ({there.get_runtime_context().get_node_id()[:8]})"
        try:
            import weir

            about["weir"] = weir.__version__
        except Exception as error:
            about["why"] = f"{type(error).__name__}: {error}".splitlines()[0]
        return about

    def start(self, command: str) -> str:
        """Start the agent's process; what is wrong, if something is."""
        import queue
        import subprocess
        import sys
        import threading

        self.news: Any = queue.Queue()
        self.complaints: Any = queue.Queue()
        pipe = subprocess.PIPE
        try:
            line = [sys.executable, "-m", "weir", command]
            self.process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)
        except OSError as error:
            return f"its process cannot be started: {error}"

        def read(stream: Any, into: Any) -> None:
            for line in stream:
                into.put(line.decode("utf-8", "replace").rstrip("\n"))
            into.put(None)

        for stream, into in [(self.process.stdout, self.news), (self.process.stderr, self.complaints)]:
            threading.Thread(target=read, args=(stream, into), daemon=True).start()
        return ""

    def tell(self, line: str) -> None:
        """Tell the agent something; if it is gone, `hear` says so."""
        import contextlib

        with contextlib.suppress(OSError):
            self.process.stdin.write(line.encode() + b"\n")  # type: ignore[union-attr]  # a pipe
            self.process.stdin.flush()  # type: ignore[union-attr]

    def hear(self) -> tuple[list[str], list[str], str | None]:
        """Wait a little for what the agent says: its news, its complaints, and how it ended, if it has."""
        import queue

        lines: list[str] = []
        ending = None
        try:
            line = self.news.get(timeout=1.0)
            while line is not None:
                lines.append(line)
                line = self.news.get_nowait()
            code = self.process.wait(timeout=5)
            ending = f"killed (signal {-code})" if code < 0 else f"exit code {code}"
        except queue.Empty:
            pass
        complaints = []
        while not self.complaints.empty():
            complaint = self.complaints.get()
            complaints += [complaint[:500]] if complaint else []
        return lines, complaints, ending


def _one_line(error: BaseException) -> str:
    """What a message says in the end, or at first: Ray explains at length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if "Traceback" in str(error) else " ".join(lines[:4])
    return (text or type(error).__name__)[:500]


if __name__ == "__main__":
    main()
