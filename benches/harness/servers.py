"""Targets: nginx, the lean server and others, each started for a section and stopped after it."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from harness.process import environment, pinned

START_LIMIT_S = 10.0
BODY = "The river does not wait for the dam."  # and a line end: 38 bytes
HELLO = "Hello, Raja"
FILE, FILE_BYTES = "static", 5 << 20
PAGE, PAGE_BYTES = "page", 1 << 10
LARGE, LARGE_BYTES = "large", 1 << 20


class StartError(RuntimeError):
    """Server that did not start; the message is the reason."""


class Server:
    """Running target on 127.0.0.1."""

    #: Requests of ours that the server counts between two calls of `requests`.
    own_requests = 0

    def __init__(self, name: str, port: int, process: subprocess.Popen[str]) -> None:
        """Wrap a server that accepts connections."""
        self.name = name
        self.port = port
        self.process = process

    @property
    def url(self) -> str:
        """Root URL."""
        return f"http://127.0.0.1:{self.port}/"

    def get(self, path: str) -> str:
        """Return the body at `path`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def requests(self) -> int:
        """Return the number of requests counted by the server."""
        raise NotImplementedError

    def reset(self) -> None:
        """Reset the counts, if the server supports it."""

    def stop(self) -> None:
        """Terminate the server and wait for it."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(timeout=START_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


Target = TypeVar("Target", bound=Server)


class Lean(Server):
    """Server in `benches/lean`; its counts and times are the true values of the benchmarks."""

    def stats(self) -> dict[str, Any]:
        """Return the number of requests, and with `--delay` percentiles of the actual delays."""
        return dict(json.loads(self.get("/_stats")))

    def arrivals(self, rate_per_s: float) -> dict[str, Any]:
        """Return the deviation of arrivals from an even schedule."""
        return dict(json.loads(self.get(f"/_arrivals?rate={rate_per_s}")))

    def requests(self) -> int:
        """Return the requests served since the start or the last reset."""
        return int(self.stats()["requests"])

    def reset(self) -> None:
        """Reset all counts; the next request is the first again."""
        self.get("/_reset")


class Nginx(Server):
    """nginx server with one worker, which returns constants, and a file with sendfile."""

    own_requests = 1

    def requests(self) -> int:
        """Return the third number of stub_status, which counts its own request too."""
        return int(self.get("/_status").splitlines()[2].split()[2])


@contextmanager
def lean(program: Path, core: int, *flags: str) -> Iterator[Lean]:
    """Start the lean server with these flags on a free port."""
    with _announced(Lean, "lean", [str(program), "--port", "0", *flags], core) as server:
        yield server


@contextmanager
def service(name: str, command: list[str], core: int) -> Iterator[Server]:
    """Start any other server that prints its address as the first line, in the format of `weir serve`."""
    with _announced(Server, name, command, core) as server:
        yield server


@contextmanager
def _announced(kind: type[Target], name: str, command: list[str], core: int) -> Iterator[Target]:
    with tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(
            pinned(command, core), stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment()
        )
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            process.wait()
            stderr.seek(0)
            said = stderr.read().split("\n")[0] or f"exit {process.returncode}"
            raise StartError(f"did not start: {said}")
        server = kind(name, int(json.loads(line)["listening"].rsplit(":", 1)[1]), process)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def started(
    make: Callable[[str, int, subprocess.Popen[str]], Target],
    name: str,
    command: list[str],
    core: int,
    port: int,
    **variables: str,
) -> Iterator[Target]:
    """Start a server that listens on `port`, with these environment variables, until the context is left.

    What it writes to standard error is shown only if it does not start.
    """
    with tempfile.TemporaryFile("w+") as stderr:
        process = subprocess.Popen(pinned(command, core), stderr=stderr, text=True, env=environment() | variables)
        server = make(name, port, process)
        try:
            try:
                await_port(server)
            except StartError as why:
                stderr.seek(0)
                lines = stderr.read().strip().splitlines()
                raise StartError(f"{why}: {lines[-1]}" if lines else str(why)) from None
            yield server
        finally:
            server.stop()


@contextmanager
def nginx(program: Path, core: int) -> Iterator[Nginx]:
    """Start nginx with its own configuration on a free port."""
    with tempfile.TemporaryDirectory(prefix="weir-nginx-") as folder:
        port = free_port()
        (Path(folder) / FILE).write_bytes(bytes(FILE_BYTES))
        (Path(folder) / PAGE).write_bytes(b"x" * PAGE_BYTES)
        (Path(folder) / LARGE).write_bytes(b"x" * LARGE_BYTES)
        with nginx_in(folder, program, core, port, _nginx_config(Path(folder), port)) as server:
            yield server


@contextmanager
def nginx_in(folder: str, program: Path, core: int, port: int, config: str) -> Iterator[Nginx]:
    """Start nginx in a folder, with a configuration that listens on this port."""
    file = Path(folder) / "nginx.conf"
    file.write_text(config)
    Path(folder).chmod(0o755)  # its worker may be another user
    command = [str(program), "-p", folder, "-c", str(file), "-e", f"{folder}/error.log"]
    server = Nginx("nginx", port, subprocess.Popen(pinned(command, core), text=True, env=environment()))
    try:
        await_port(server)
        yield server
    finally:
        server.stop()


def _nginx_config(folder: Path, port: int) -> str:
    return f"""{nginx_head(folder)}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /_status {{ stub_status; }}
        location = /hello {{ default_type text/html; return 200 "{HELLO}"; }}
        location = /{FILE} {{ default_type application/octet-stream; root {folder}; sendfile on; tcp_nopush on; }}
        location = /{PAGE} {{ default_type text/plain; root {folder}; }}
        location = /{LARGE} {{ default_type text/plain; root {folder}; }}
        location / {{ default_type text/plain; return 200 "{BODY}\\r\\n"; }}
    }}
}}
"""


def nginx_head(folder: Path) -> str:
    """Return the start of a configuration with one worker, up to its first server."""
    temporary = "\n".join(
        f"    {kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
events {{ worker_connections 16384; }}
http {{
{temporary}
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;"""


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def await_port(server: Server) -> None:
    """Wait until the server sends any response."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            server.get("/_status")
            return
        except OSError:
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise StartError("did not start") from None
            time.sleep(0.02)


@contextmanager
def stopping(server: Server, stopped_s: float, period_s: float) -> Iterator[None]:
    """Stop the server's process for the last part of every period, counted from now."""
    done = threading.Event()

    def cycle() -> None:
        start, periods = time.monotonic(), 0
        while True:
            for offset, sign in ((period_s - stopped_s, signal.SIGSTOP), (period_s, signal.SIGCONT)):
                if done.wait(start + periods * period_s + offset - time.monotonic()):
                    return
                server.process.send_signal(sign)
            periods += 1

    thread = threading.Thread(target=cycle)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        server.process.send_signal(signal.SIGCONT)
