"""Messages of `weir.load` over WebSocket, and a service of another library that counts them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Literal
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

import weir


class Counted:
    """What a service has received."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.url = ""
        self.messages: list[str | bytes] = []
        self.codes: list[int | None] = []
        self._lock = Lock()

    def echo(self, connection: ServerConnection) -> None:
        """Send each message back, and count it."""
        try:
            for message in connection:
                with self._lock:
                    self.messages.append(message)
                connection.send(message)
        except ConnectionClosed:
            pass
        with self._lock:
            self.codes.append(connection.close_code)


@contextmanager
def counting(compression: str | None = None) -> Iterator[Counted]:
    counted = Counted()
    with serve(counted.echo, "127.0.0.1", 0, compression=compression) as server:
        counted.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        Thread(target=server.serve_forever, daemon=True).start()
        yield counted


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("ws", gap="5ms", messages=4) as running:
        yield running


def url_of(service: weir.Service, path: str) -> str:
    return f"ws://{urlsplit(service.url).netloc}{path}"


def test_messages_are_those_that_the_service_has_counted(service: weir.Service) -> None:
    run = weir.load(url_of(service, "/echo"), body=["a", b"\xff"], connections=2, requests=100)
    assert (run.requests.ok, service.stats()["received"], run.status) == (100, 100, {101: 100})
    assert run.websocket is not None
    assert (run.websocket.upgraded, run.websocket.closes) == (2, {})
    assert run.series[0].websocket is not None
    assert "101" in str(run)
    assert weir.Run.from_json(run.to_json()) == run


def test_what_is_pushed_is_heard(service: weir.Service) -> None:
    run = weir.load(url_of(service, "/push"), listen=True, connections=2, requests=6, max_events=3)
    assert run.streams is not None
    assert (run.requests.ok, run.streams.stopped, run.streams.events) == (6, 6, 18)


def test_arguments_are_those_of_the_flags(service: weir.Service) -> None:
    run = weir.load(
        url_of(service, "/"),
        body='{"id":{{seq}}}',
        reply='jsonpath "$.id"',
        first_message=["hello", b"again"],
        first_replies=1,
        ping_interval="50ms",
        binary=True,
        rate=100,
        duration="500ms",
        connections=2,
    )
    assert run.requests.ok == 50
    assert run.websocket is not None
    assert run.websocket.pings_sent > 0
    with pytest.raises(weir.UsageError, match="binary"):
        weir.load(service.url.replace("ws://", "http://"), binary=True, requests=1)


@pytest.mark.wide
@pytest.mark.parametrize("rate", [None, 400])
@pytest.mark.parametrize("deflate", [False, True, "no-context"])
def test_another_library_counts_the_same_messages(rate: float | None, deflate: bool | Literal["no-context"]) -> None:
    with counting("deflate" if deflate else None) as counted:
        run = weir.load(
            counted.url,
            body='{"id":"{{newUuid}}"}',
            reply="$.id",
            connections=4,
            deflate=deflate,
            rate=rate,
            requests=400,
        )
        assert (run.requests.ok, run.requests.failed, len(counted.messages)) == (400, 0, 400)
        assert len({json.loads(message)["id"] for message in counted.messages}) == 400
    # With the connection of the check before the load.
    assert counted.codes == [1000] * 5
