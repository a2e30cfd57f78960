"""WebSocket with others on the other side: what their programs count is what weir counts, per message.

Servers are the package ws of Node, gorilla/websocket and coder/websocket of Go, and a hostile one on wsproto; relays
are nginx, Caddy and `weir gate`. What is not installed, and cannot be fetched, is left out with a line.
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import urlopen

import pytest
from harness.announced import announced

import weir

pytestmark = pytest.mark.soak

FILES = Path(__file__).parents[2] / "benches/peers/websocket"
#: Messages of each load.
MESSAGES = 20_000
#: Loads: their arguments, and how many messages fewer they send.
LOADS: list[tuple[dict[str, Any], int]] = [
    ({"connections": 8}, 1),
    ({"connections": 8, "pipeline": 16}, 1),
    ({"connections": 8, "binary": True}, 1),
    ({"connections": 8, "rate": 4000}, 1),
    ({"connections": 8, "rate": 4000, "reply": "$.id"}, 1),
    ({"connections": 4, "deflate": True}, 4),
    ({"connections": 4, "deflate": "no-context"}, 4),
    ({"connections": 2, "size": 1_000}, 4),
    ({"connections": 2, "size": 100_000}, 100),
    ({"connections": 2, "size": 5_000_000}, 1_000),
]


def fetched(command: list[str], folder: Path, **environment: str) -> None:
    """Run a program that fetches or builds another one; without it the test is left out."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    made = subprocess.run(["nice", *command], cwd=folder, env=os.environ | environment, check=False, **quiet)  # type: ignore[call-overload]
    if made.returncode != 0:
        pytest.skip(f"{' '.join(command)}: {made.stdout.strip().splitlines()[-1:]}")


def go_program(name: str, folder: Path, modules: list[str], source: Path | None = None) -> Path:
    """Build a program of Go: of a file of ours, or a module's own."""
    (folder / "go.mod").write_text(f"module {name}\n\ngo 1.22\n")
    if source is not None:
        shutil.copy(source, folder / "main.go")
        shutil.copy(FILES / "counts.go", folder / "counts.go")
    limits = {"GOFLAGS": "-p=1"}
    fetched(["go", "get", *modules], folder, **limits)
    fetched(["go", "build", "-o", name, *([] if source else modules)], folder, **limits)
    return folder / name


def counts_of(url: str) -> dict[str, int]:
    with urlopen(f"{url}/stats") as response:
        return dict(json.load(response))


def own_counts(url: str) -> dict[str, int]:
    """Return what `weir serve ws` has counted, in the words of the others."""
    counts: dict[str, Any] = counts_of(url)
    return {"messages": counts["received"], "bytes": counts["received_bytes"], "sent": counts["sent"]}


def play(url: str, counts: Callable[[], dict[str, int]]) -> int:
    """Send the messages of all loads, and compare per message; return their number."""
    total = 0
    for load, fewer in LOADS:
        arguments = dict(load)
        size = arguments.pop("size", 0)
        number = MESSAGES // fewer
        body = json.dumps({"id": "{{newUuid}}", "text": "x" * size})
        before = counts()
        run = weir.load(url.replace("http://", "ws://"), body=body, requests=number, timeout=60, **arguments)
        after = counts()
        theirs = {key: after[key] - before[key] for key in ("messages", "bytes", "sent")}
        ours = {"messages": run.requests.ok, "bytes": run.bytes.body_in, "sent": run.requests.ok}
        length = len(body) - len("{{newUuid}}") + 36
        assert theirs == ours == {"messages": number, "bytes": number * length, "sent": number}, load
        assert run.websocket is not None
        assert (run.requests.failed, run.websocket.unmatched, run.websocket.violations) == (0, 0, 0), load
        assert run.websocket.uncompressed == 0, load
        total += number
    print(f"{url}: {total:,} messages")
    return total


def test_node(tmp_path: Path) -> None:
    fetched(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "ws"], tmp_path)
    with announced(["node", str(FILES / "server.js"), str(tmp_path)]) as url:
        play(url, lambda: counts_of(url))


@pytest.mark.parametrize("name", ["gorilla", "coder"])
def test_go(name: str, tmp_path: Path) -> None:
    program = go_program(name, tmp_path, [f"github.com/{name}/websocket"], FILES / name / "main.go")
    with announced([str(program)]) as url:
        play(url, lambda: counts_of(url))


def test_weir_gate(tmp_path: Path) -> None:
    with weir.serve("ws", deflate=True) as service:
        command = ["weir", "gate", "--listen", "127.0.0.1:0", "--upstream", service.url]
        with announced(command) as url:
            play(url, lambda: own_counts(service.url))


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def relay(command: list[str], port: int) -> Iterator[str]:
    """Start a relay, and wait until it accepts connections."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, command
                    assert process.poll() is None, command
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def test_nginx(tmp_path: Path) -> None:
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        pytest.skip("no nginx")
    port = free_port()
    with weir.serve("ws", deflate=True) as service:
        (tmp_path / "nginx.conf").write_text(
            f"""daemon off; worker_processes 1; pid {tmp_path}/pid; error_log {tmp_path}/error.log;
            events {{ worker_connections 256; }}
            http {{ access_log off; server {{ listen 127.0.0.1:{port}; location / {{
                proxy_pass {service.url}; proxy_http_version 1.1;
                proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
            }} }} }}"""
        )
        command = [program, "-p", str(tmp_path), "-e", str(tmp_path / "error.log"), "-c", str(tmp_path / "nginx.conf")]
        with relay(command, port) as url:
            play(url, lambda: own_counts(service.url))


def test_caddy(tmp_path: Path) -> None:
    program = shutil.which("caddy") or str(go_program("caddy", tmp_path, ["github.com/caddyserver/caddy/v2/cmd/caddy"]))
    port = free_port()
    with weir.serve("ws", deflate=True) as service:
        address = service.url.removeprefix("http://")
        listen = f"127.0.0.1:{port}"
        command = [program, "reverse-proxy", "--from", f"http://{listen}", "--to", address]
        with relay(command, port) as url:
            play(url, lambda: own_counts(service.url))


def hostile(listener: socket.socket, replies: dict[str, bytes]) -> None:
    """Upgrade by wsproto, and then send bytes by the path."""
    wsproto = pytest.importorskip("wsproto")
    events = wsproto.events
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            side = wsproto.WSConnection(wsproto.ConnectionType.SERVER)
            path = ""
            while received := connection.recv(65536):
                side.receive_data(received)
                for event in side.events():
                    if isinstance(event, events.Request):
                        path = event.target.strip("/")
                        connection.sendall(side.send(events.AcceptConnection()))
                    elif isinstance(event, events.CloseConnection):
                        connection.sendall(side.send(event.response()))
                    elif isinstance(event, events.TextMessage):
                        connection.sendall(replies.get(path, b"") or side.send(events.TextMessage(data=event.data)))
                if path in replies and side.state is wsproto.connection.ConnectionState.CLOSED:
                    break


#: Frames that break the protocol, and kinds of failure.
HOSTILE = {
    "reserved": (b"\xc1\x01a", "protocol"),
    "opcode": (b"\x83\x01a", "protocol"),
    "masked": (b"\x81\x81\x01\x02\x03\x04\x60", "protocol"),
    "utf8": (b"\x81\x02\xc3\x28", "protocol"),
    "control": (b"\x89\x7e\x00\x7e" + bytes(126), "protocol"),
    "continuation": (b"\x80\x01a", "protocol"),
    "length": (b"\x81\x7e\x00\x01a", "protocol"),
    "code": (b"\x88\x02\x03\xed", "protocol"),
    "half": (b"\x88\x01\x03", "protocol"),
}


@pytest.mark.parametrize("name", ["echo", *HOSTILE])
def test_wsproto(name: str) -> None:
    pytest.importorskip("wsproto")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(
            target=hostile, args=(listener, {path: sent for path, (sent, _) in HOSTILE.items()}), daemon=True
        ).start()
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}/{name}"
        run = weir.load(url, body="hello", connections=1, requests=50, timeout=10)
    if name == "echo":
        assert (run.requests.ok, run.bytes.body_in) == (50, 250)
        return
    assert run.failures == {HOSTILE[name][1]: 50}
    assert run.websocket is not None
    assert run.websocket.violations == 50
