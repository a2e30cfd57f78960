"""Counts requests over HTTP/2 at both ends: weir as the client, other implementations as servers.

    scripts/http2_peers.py [--requests N] WEIR [PEER...]

Peers: go (net/http), node (http2), hyper (`weir gate`, in front of a service of weir), nginx; those that are not
installed are left out with a line. Each gets N requests (default 1,000,000) without a body, with bodies of some sizes
from 0 B to 10 MB in both directions, and with several shapes of connections and streams; the last line says how many
counts differ.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benches"))

from harness.announced import announced
from harness.http2 import Shape, http2_nginx

FILES = Path(__file__).resolve().parent.parent / "benches" / "peers" / "http2"
#: Bytes of a body, and by how much fewer requests have it.
SIZES = ((1, 20), (1_000, 20), (16_384, 50), (100_000, 200), (1_000_000, 5_000), (10_000_000, 50_000))
SHAPES = ((1, 100), (10, 32), (50, 1))


@dataclass(frozen=True)
class Peer:
    """Running server: URL, whether it echoes bodies, and how many requests and bytes it has counted so far."""

    url: str
    counts: Callable[[], dict[str, int]]
    echoes: bool = True


def main() -> int:
    """Play all peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir", type=Path)
    parser.add_argument("peers", nargs="*", default=[])
    parser.add_argument("--requests", type=int, default=1_000_000)
    args = parser.parse_args()
    every = {"go": go, "node": node, "hyper": hyper, "nginx": nginx}
    different = 0
    for name in args.peers or every:
        try:
            with every[name](args.weir) as peer:
                different += play(args.weir, name, peer, args.requests)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error.filename or error} is not installed")
    print(f"{different} counts differ")
    return min(different, 1)


def play(weir: Path, name: str, peer: Peer, requests: int) -> int:
    """Load a peer, and compare; return the number of loads whose counts differ."""
    loads = [(shape, 0, requests // len(SHAPES), False) for shape in SHAPES]
    for size, fewer in SIZES:
        number = max(requests // fewer, 20)
        loads += [((4, 10), size, number, False)] + ([((4, 10), size, number, True)] if peer.echoes else [])
    different = sent = 0
    for (connections, streams), size, number, up in loads:
        before = peer.counts()
        with tempfile.NamedTemporaryFile() as body:
            flags = ["-c", str(connections), "--streams", str(streams), "-n", str(number), "--timeout", "120s"]
            if up:
                body.write(bytes(size))
                body.flush()
                flags += ["-m", "POST", "-b", f"@{body.name}"]
            path = "echo" if up else f"bytes/{size}"
            command = [str(weir), "load", "-q", "--h2c", "--format", "json", *flags, f"{peer.url}/{path}"]
            run = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        after = peer.counts()
        theirs = {key: after[key] - before[key] for key in after}
        ours = {"requests": run["requests"]["ok"], "in": number * size * up, "out": run["bytes"]["body_in"]}
        expected = {"requests": number, "in": number * size * up, "out": number * size}
        sent += number
        if any(theirs[key] != ours[key] or ours[key] != expected[key] for key in theirs):
            different += 1
            print(
                f"{name}: {connections} x {streams}, {size} B, {'up' if up else 'down'}: {ours=} {theirs=} {expected=}"
            )
    print(f"{name}: {sent:,} requests in {len(loads)} loads, {different} differ", flush=True)
    return different


def curl(url: str) -> str:
    """Return the body at a URL, by HTTP/2."""
    command = ["curl", "-s", "--http2-prior-knowledge", url]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


@contextmanager
def counting(command: list[str]) -> Iterator[Peer]:
    """Start a server that counts by itself."""
    with announced(command) as url:
        yield Peer(url, lambda: dict(json.loads(curl(f"{url}/stats"))))


@contextmanager
def go(_weir: Path) -> Iterator[Peer]:
    """Build and start Go's server."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/server"
        subprocess.run(["go", "build", "-o", program, str(FILES / "server.go")], check=True)
        with counting([program]) as peer:
            yield peer


@contextmanager
def node(_weir: Path) -> Iterator[Peer]:
    """Start Node's server."""
    with counting(["node", str(FILES / "server.js")]) as peer:
        yield peer


@contextmanager
def hyper(weir: Path) -> Iterator[Peer]:
    """Start the gateway, whose front is hyper, in front of Go's server, which counts."""
    with ExitStack() as stack:
        counted = stack.enter_context(go(weir))
        command = [str(weir), "gate", "--listen", "127.0.0.1:0", "--upstream", counted.url]
        command += ["--max-in-flight", "none"]
        url = stack.enter_context(announced(command))
        yield Peer(url, counted.counts)


@contextmanager
def nginx(_weir: Path) -> Iterator[Peer]:
    """Start nginx, which has files of these sizes and counts requests."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if program is None:
        raise FileNotFoundError(2, "missing", "nginx")
    files = {f"bytes/{size}": size for size in (0, *(size for size, _ in SIZES))}
    asked = count(1)
    with http2_nginx(Path(program), 0, files) as server:
        # Each of our own looks is a request, too.
        yield Peer(
            server.url_of(Shape(1, 1)).rstrip("/"),
            lambda: {"requests": server.requests() - next(asked)},
            echoes=False,
        )


if __name__ == "__main__":
    sys.exit(main())
