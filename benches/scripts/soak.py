"""Sends good and bad requests to `weir serve httpbin` on concurrent connections, and counts the responses.

    python soak.py --port PORT --requests N --seed SEED

Four of five requests are good: they are sent in pipelined batches, and the statuses of their responses are checked. The
others are malformed, too long, truncated, or abandoned by a client that disconnects; the server may respond or not, but
has to close the connection. The output is a line of JSON.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import select
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass

VISITORS = 100  # concurrent connections
LIMIT_S = 10.0  # timeout of a connection; the server's own timeouts are much shorter
BATCHES, BATCH = 64, 32  # different batches of good requests, and requests in each
GOOD, BAD = 0.8, 0.2  # fractions of all requests
SLOW = 0.0005  # unfinished heads that wait for the server's timeout
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
STATUS_BYTES = 12

STAY, CUT, LEAVE, PEEK = "stay", "cut", "leave", "peek"


@dataclass(frozen=True)
class Script:
    """Actions of a connection."""

    kind: str
    data: bytes
    then: str = STAY  # until the server closes; CUT shuts down sending, LEAVE closes at once, PEEK after first bytes
    statuses: Counter[bytes] | None = None  # expected, of good requests; the last response has no body


def post(path: str, body: bytes, length: int | None = None) -> bytes:
    """Make a request with a body, and a content-length that may differ from the body's."""
    declared = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nhost: soak\r\ncontent-type: application/json\r\ncontent-length: {declared}\r\n\r\n"
    return head.encode() + body


def get(path: str, headers: str = "") -> bytes:
    """Make a request without a body."""
    return f"GET {path} HTTP/1.1\r\nhost: soak\r\n{headers}\r\n".encode()


def batch(rng: random.Random, order: bytes, wrong: bytes) -> Script:
    """Make a batch of good requests, with the expected statuses."""
    every = (
        (get("/echo"), b"200"),
        (post("/echo", b"x" * rng.randrange(1, 2_000)), b"200"),
        (post("/validate", order), b"200"),
        (post("/validate", wrong), b"422"),
        (post("/validate", order[: len(order) // 2]), b"400"),
        (get("/headers", "x-soak: 1\r\n"), b"200"),
        (get("/chunked?chunks=3&bytes=100"), b"200"),
        (get("/static?bytes=10000"), b"200"),
        (get("/static?bytes=-1"), b"400"),
        (get("/status/503"), b"503"),
        (get("/status/1000"), b"400"),
        (get("/nowhere"), b"404"),
    )
    chosen = rng.choices(every, k=BATCH - 1)
    chosen.append((get("/status/204"), b"204"))
    data = b"".join(request for request, _ in chosen)
    return Script("good", data, statuses=Counter(status for _, status in chosen))


def malformed(rng: random.Random) -> list[Script]:
    """Make invalid heads, and bodies with invalid framing."""
    to_echo = b"POST /echo HTTP/1.1\r\nhost: soak\r\n"
    heads = (
        b"GET\r\n\r\n",
        b"GET /echo HTTP/7.7\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n: no name\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\n" + b"x-many: 1\r\n" * 200 + b"\r\n",
        to_echo + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        to_echo + b"content-length: -1\r\n\r\n",
        to_echo + b"content-length: 99999999999999999999999\r\n\r\n",
        to_echo + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
        to_echo + b"transfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(200),
        rng.randbytes(300) + b"\r\n\r\n",
    )
    return [Script("malformed", head) for head in heads]


def scripts(rng: random.Random, order: bytes, wrong: bytes) -> list[tuple[float, list[Script]]]:
    """Make the scripts of connections, in groups with a weight."""
    half = b"GET /echo HTTP/1.1\r\nhost: so"
    short = [Script("cut body", post(path, b"{" * 100, 1_000), then) for path in PATHS for then in (CUT, LEAVE)]
    early = [Script("closed early", get("/echo"), LEAVE), Script("closed early", post("/validate", order), LEAVE)]
    return [
        (GOOD / BATCH, [batch(rng, order, wrong) for _ in range(BATCHES)]),
        (BAD / 4, malformed(rng)),
        (BAD / 8, [Script("64 KiB head", get("/echo", f"x-long: {'a' * 65_536}\r\n"))]),
        (BAD / 4, short),
        (BAD / 4, [*early, Script("closed early", get("/static"), PEEK)]),
        (BAD / 8, [Script("half a head", half, CUT), Script("half a head", half, LEAVE)]),
        (SLOW, [Script("half a head", half)]),
    ]


PATHS = ("/echo", "/validate")


class Visit:
    """Connection with its state."""

    def __init__(self, script: Script, address: tuple[str, int], *, reset: bool) -> None:
        """Connect; with `reset`, closing sends an RST."""
        self.script = script
        self.unsent = memoryview(script.data)
        self.seen: Counter[bytes] = Counter()
        self.tail = b""
        self.deadline = time.monotonic() + LIMIT_S
        self.socket = socket.create_connection(address, timeout=LIMIT_S)
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.setblocking(False)

    def send(self) -> bool:
        """Send the bytes that the kernel accepts; return whether the visit is over."""
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            if self.script.then == CUT:
                self.socket.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return False
        except OSError:  # the server has closed already
            return self.script.statuses is not None or self.script.then == LEAVE
        return self.script.then == LEAVE

    def receive(self) -> bool:
        """Receive once; return whether the visit is over."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return False
        except OSError:
            return True
        joined = self.tail + data
        self.seen.update(STATUS.findall(joined))
        self.tail = joined[1 - STATUS_BYTES :]
        if not data or self.script.then == PEEK:
            return True
        return self.is_complete() and joined.endswith(b"\r\n\r\n")

    def is_complete(self) -> bool:
        """Check whether every good request has its response."""
        return self.script.statuses is not None and self.seen.total() >= BATCH


class Crowd:
    """All connections, and their counts."""

    def __init__(self, port: int, requests: int, seed: int) -> None:
        """Make a crowd without connections."""
        self.address = ("127.0.0.1", port)
        self.requests = requests
        self.rng = random.Random(seed)
        self.poll = select.epoll()
        self.visits: dict[int, Visit] = {}
        self.sent: Counter[str] = Counter()
        self.statuses: Counter[bytes] = Counter()
        self.counts = Counter(answered=0, wrong=0, unanswered=0, left_open=0)

    def run(self, order: bytes, wrong: bytes) -> None:
        """Send all requests, and wait for the end of all connections."""
        weights, choices = zip(*scripts(self.rng, order, wrong), strict=True)
        next_look = time.monotonic() + 1
        while self.visits or self.sent.total() < self.requests:
            while len(self.visits) < VISITORS and self.sent.total() < self.requests:
                self.begin(self.rng.choice(self.rng.choices(choices, weights)[0]))
            for handle, event in self.poll.poll(0.2):
                self.go_on(self.visits[handle], event)
            if time.monotonic() >= next_look:
                next_look += 1
                self.end_late_ones()

    def begin(self, script: Script) -> None:
        """Open a connection for a script."""
        visit = Visit(script, self.address, reset=self.rng.random() < 0.5)
        self.sent[script.kind] += script.statuses.total() if script.statuses else 1
        if visit.send():
            self.end(visit)
            return
        handle = visit.socket.fileno()
        self.visits[handle] = visit
        self.poll.register(handle, select.EPOLLIN | (select.EPOLLOUT if visit.unsent else 0))

    def go_on(self, visit: Visit, event: int) -> None:
        """Send and receive, if the socket is ready."""
        over = False
        if visit.unsent and event & select.EPOLLOUT:
            over = visit.send()
            if not visit.unsent:
                self.poll.modify(visit.socket, select.EPOLLIN)
        if not over and event & ~select.EPOLLOUT:
            over = visit.receive()
        if over:
            del self.visits[visit.socket.fileno()]
            self.end(visit)

    def end(self, visit: Visit) -> None:
        """Close a connection, and count its responses."""
        visit.socket.close()
        expected = visit.script.statuses
        if expected is None:
            self.statuses.update(visit.seen)
            return
        answered = (visit.seen & expected).total()
        self.counts["answered"] += answered
        self.counts["wrong"] += visit.seen.total() - answered
        self.counts["unanswered"] += max(BATCH - visit.seen.total(), 0)

    def end_late_ones(self) -> None:
        """Count and close the connections that the server should have closed by now."""
        late = [handle for handle, visit in self.visits.items() if visit.deadline < time.monotonic()]
        for handle in late:
            self.counts["left_open"] += 1
            self.end(self.visits.pop(handle))


def fetch(port: int, path: str) -> bytes:
    """Get a body from the service."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    connection.request("GET", path)
    body = connection.getresponse().read()
    connection.close()
    return body


def main() -> None:
    """Send all requests, and print the counts."""
    parser = argparse.ArgumentParser()
    for name in ("--port", "--requests", "--seed"):
        parser.add_argument(name, type=int, required=True)
    asked = parser.parse_args()
    crowd = Crowd(asked.port, asked.requests, asked.seed)
    order, wrong = fetch(asked.port, "/validate/example"), fetch(asked.port, "/validate/invalid")
    begun = time.monotonic()
    crowd.run(order, wrong)
    counted = {
        **crowd.counts,
        "sent": crowd.sent.total(),
        "seconds": round(time.monotonic() - begun, 1),
        "kinds": dict(crowd.sent),
        "bad_statuses": {status.decode(): count for status, count in crowd.statuses.items()},
    }
    print(json.dumps(counted))


if __name__ == "__main__":
    main()
