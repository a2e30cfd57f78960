"""Classes of users in Python that hold WebSockets."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import weir


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("ws", gap="10ms", messages=5, delay="20ms") as running:
        yield running


def _play(service: weir.Service, do: Any, **options: Any) -> weir.Run:
    kind: Any = type("Chatter", (weir.User,), {"do": weir.task(do)})
    return weir.load(kind, host=service.url, **({"users": 1, "loops": 1} | options))


def _stats(service: weir.Service) -> Any:
    with urlopen(f"http://{service.host}:{service.port}/stats") as response:
        return json.load(response)


def _closes(service: weir.Service, expected: dict[str, int]) -> None:
    """Wait until the service has counted these close frames: a task does not wait for their replies."""
    deadline = time.monotonic() + 30
    while _stats(service)["closes"] != expected:
        assert time.monotonic() < deadline, _stats(service)["closes"]
        time.sleep(0.01)


def _steps(run: weir.Run) -> dict[str, tuple[int, int]]:
    return {step.name: (step.requests, step.failed) for step in run.steps}


def test_a_message_and_its_reply_are_a_request(service: weir.Service) -> None:
    taken: list[str | bytes] = []

    async def do(self: weir.User) -> None:
        async with self.websocket("/echo", name="chat") as ws:
            await ws.send("hello", name="greet")
            taken.append(await ws.receive(timeout=5))
            await ws.send(b"\x00\xff")
            taken.append(await ws.receive())

    run = _play(service, do, users=4, loops=5)
    assert Counter(taken) == {"hello": 20, b"\x00\xff": 20}
    assert _steps(run) == {"chat": (20, 0), "greet": (20, 0), "chat message": (20, 0)}
    assert run.iterations is not None
    assert (run.requests.ok, run.iterations.ok) == (60, 20)
    greet = next(step for step in run.steps if step.name == "greet")
    # The service's delay is in it.
    assert (greet.response_ms.min or 0) >= 19.9
    assert run.websocket is not None
    assert (run.websocket.upgraded, run.websocket.messages_sent, run.websocket.messages_received) == (20, 40, 40)
    stats = _stats(service)
    assert (stats["received"], stats["sent"], stats["violations"]) == (40, 40, {})
    _closes(service, {"1000": 20})


def test_what_is_pushed_is_iterated_to_the_end(service: weir.Service) -> None:
    seen: list[Any] = []

    async def do(self: weir.User) -> None:
        async with self.websocket("/push") as ws:
            async for message in ws:
                seen.append(message)
                # What comes meanwhile waits.
                await weir.sleep(0.005)
            seen.append((ws.close_code, ws.subprotocol))
            with pytest.raises(weir.NoResponse, match="closed by the service: 1000"):
                await ws.receive()

    run = _play(service, do)
    assert len(seen) == 6
    assert seen[-1] == (1000, None)
    assert _steps(run) == {"WS /push": (1, 0)}
    assert run.websocket is not None
    assert run.websocket.messages_received == 5


def test_requests_go_on_within_the_block_and_sockets_are_several(service: weir.Service) -> None:
    taken: list[Any] = []

    async def do(self: weir.User) -> None:
        first = await self.websocket("/echo", name="first")
        async with self.websocket("/echo", name="second") as second:
            await first.send("a")
            await second.send("b")
            response = await self.get("/stats", name="stats")
            taken.append((await second.receive(), await first.receive(), response.status))
        await first.close(4001, "bye")

    run = _play(service, do, users=3, loops=2)
    assert taken == [("b", "a", 200)] * 6
    expected = {"first": 6, "second": 6, "first message": 6, "second message": 6, "stats": 6}
    assert _steps(run) == {name: (n, 0) for name, n in expected.items()}
    _closes(service, {"1000": 6, "4001": 6})


def test_a_reply_that_does_not_come_is_a_failure_and_the_user_goes_on(service: weir.Service) -> None:
    waited: list[float] = []

    async def do(self: weir.User) -> None:
        async with self.websocket("/silent", name="chat") as ws:
            begun = time.monotonic()
            await ws.send("hello", name="ask")
            with pytest.raises(weir.NoResponse, match=r"no message within 0\.2 s"):
                await ws.receive(timeout=0.2)
            waited.append(time.monotonic() - begun)

    run = _play(service, do, loops=2)
    assert len(waited) == 2
    assert min(waited) >= 0.19
    assert _steps(run) == {"chat": (2, 0), "ask": (2, 2)}
    assert run.failures == {"timeout": 2}
    assert run.iterations is not None
    assert run.iterations.failed == 2


def test_a_rejected_upgrade_raises_and_is_counted_by_its_status() -> None:
    async def do(self: weir.User) -> None:
        with pytest.raises(weir.NoResponse, match="status 503 in place of 101"):
            async with self.websocket("/echo", name="chat"):
                raise AssertionError

    with weir.serve("ws", reject="100%") as service:
        run = _play(service, do)
    assert run.status == {503: 1}
    assert _steps(run) == {"chat": (1, 1)}


def test_a_close_of_the_service_fails_what_waits() -> None:
    async def do(self: weir.User) -> None:
        async with self.websocket("/echo", name="chat") as ws:
            await ws.send("hello", name="ask")
            with pytest.raises(weir.NoResponse, match="closed by the service: 1011"):
                await ws.receive()
            with pytest.raises(weir.NoResponse):
                await ws.send("again")

    with weir.serve("ws", close="100%", close_code=1011) as service:
        run = _play(service, do)
    assert _steps(run) == {"chat": (1, 0), "ask": (1, 1)}
    assert run.failures == {"closed": 1}


def test_the_end_of_the_load_closes_what_is_open(service: weir.Service) -> None:
    async def do(self: weir.User) -> None:
        async with self.websocket("/silent", name="chat") as ws:
            await ws.receive(timeout=100)

    begun = time.monotonic()
    run = _play(service, do, users=5, loops=None, duration="1s")
    assert time.monotonic() - begun < 30
    assert run.iterations is not None
    assert (run.iterations.unfinished, run.requests.ok) == (5, 5)
    _closes(service, {"1000": 5})


def test_one_task_is_printed_with_its_messages(service: weir.Service, tmp_path: Path) -> None:
    script = tmp_path / "chat.py"
    script.write_text(
        "import weir\n\n\nclass Chatter(weir.User):\n    @weir.task\n    async def chat(self):\n"
        "        async with self.websocket('/echo', name='chat') as ws:\n"
        "            await ws.send('hello', name='ask')\n            await ws.receive()\n"
    )
    command = [sys.executable, "-m", "weir", "run", str(script), service.url]
    played = subprocess.run(command, capture_output=True, text=True, check=True)
    for words in ("> GET /echo HTTP/1.1", "< HTTP/1.1 101", "> hello", "< hello", "passed: 2 steps, 2 requests"):
        assert words in played.stdout, played.stdout
    assert "not sent" not in played.stdout


def test_words_that_are_wrong_are_named(service: weir.Service) -> None:
    async def do(self: weir.User) -> None:
        async with self.websocket("/echo") as ws:
            message: Any = {"a": 1}
            with pytest.raises(TypeError, match="text or bytes, not dict"):
                await ws.send(message)
            with pytest.raises(ValueError, match="1006 is not one that a client sends"):
                await ws.close(1006)

    run = _play(service, do)
    assert run.requests.failed == 0
    with pytest.raises(TypeError, match="json= takes an object"):
        weir.load("ws://127.0.0.1:9/", body={"a": 1})


def test_a_response_in_place_of_an_upgrade_has_a_reason(service: weir.Service, tmp_path: Path) -> None:
    async def do(self: weir.User) -> None:
        async with self.websocket("/stats", name="chat") as ws:
            await ws.send("never")

    run = _play(service, do)
    why = "status 200 in place of 101 to the WebSocket upgrade"
    assert (run.requests.failed, run.steps[0].samples[0].reason) == (1, why)
