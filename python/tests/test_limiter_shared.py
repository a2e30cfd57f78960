"""`weir.Limiter(shared=)`: processes that use one limit together, by a folder or a Redis server."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from conftest import wait_for
from programs import finished, start, started
from redis_place import redis_at

import weir
import weir.httpx2

KEY = "alpha-key-0123456789"

PROCESS = """
import json, sys, threading, weir
url, key, shared, count, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
limiter = weir.Limiter("20/500ms", shared=shared)
print("ready", flush=True)
sys.stdin.readline()
def work(first):
    for number in range(first, count, threads):
        with limiter(key) as slot:
            slot.update(weir.get(f"{url}/api/request?api_key={key}&nonce={number + 1}&req_id={number}"))
running = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
for one in running: one.start()
for one in running: one.join()
print("done", flush=True)
"""
"""A process that sends `count` requests on some threads."""


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    """The address of a limiter on a private server."""
    # The path of a socket has a hundred characters at most.
    place = tmp_path / "r.sock"
    with redis_at(place):
        yield f"redis+unix://{place}?name=orders"


@pytest.fixture(params=["folder", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A place of either kind."""
    return str(tmp_path / "limits.db") if request.param == "folder" else str(request.getfixturevalue("redis"))


def test_two_processes_that_share_a_key_are_not_rejected(shared: str) -> None:
    limits: dict[str, Any] = {"key": [KEY], "limit": ["20/500ms"], "block_after": 0}
    with weir.serve("ratelimit", latency_in="0ms..20ms", latency_out="0ms..20ms", **limits) as service:
        command = [sys.executable, "-c", PROCESS, service.url, KEY, shared, "40", "15"]
        processes = [start(*command, stdin=-1) for _ in range(2)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            for process in processes:
                assert process.communicate("go\n", timeout=60)[0] == "done\n"
        finally:
            for process in processes:
                process.kill()
        stats = service.stats()
    assert stats["rejected"]["rate_limited"] == 0
    assert stats["accepted"] + stats["rejected"]["invalid_nonce"] == 80


def test_transports_that_share_a_key_are_not_rejected(shared: str) -> None:
    limits: dict[str, Any] = {"key": [KEY], "limit": ["20/500ms"], "block_after": 0}

    async def run(url: str) -> None:
        clients = [
            httpx2.AsyncClient(transport=weir.httpx2.AsyncTransport(rate=limiter, keys=lambda _: KEY), timeout=None)
            for limiter in (weir.Limiter("20/500ms", shared=shared), weir.Limiter("20/500ms", shared=shared))
        ]
        calls = (f"{url}/api/request?api_key={KEY}&nonce={n}&req_id={n}" for n in range(60))
        await asyncio.gather(*(clients[n % 2].get(call) for n, call in enumerate(calls)))
        await asyncio.gather(*(client.aclose() for client in clients))

    with weir.serve("ratelimit", latency_in="0ms..20ms", latency_out="0ms..20ms", **limits) as service:
        asyncio.run(run(service.url))
        stats = service.stats()
    assert stats["rejected"]["rate_limited"] == 0
    assert stats["accepted"] + stats["rejected"]["invalid_nonce"] == 60


def test_a_slot_of_one_limiter_is_missing_to_the_other_until_it_ends(shared: str) -> None:
    one = weir.Limiter("concurrency:2", shared=shared)
    other = weir.Limiter("concurrency:2", shared=shared)
    first, second = one.acquire("key"), other.acquire("key")
    assert one.try_acquire("key") is None
    assert other.try_acquire("key") is None
    assert asyncio.run(other.try_acquire_async("other")) is not None
    first.done()
    third = other.acquire("key", timeout=60)
    second.cancel()
    assert one.acquire("key", timeout=60).is_open
    assert third.is_open


def test_tasks_that_are_cancelled_leave_nothing_behind(shared: str) -> None:
    limiter = weir.Limiter("concurrency:2", shared=shared)

    async def one() -> None:
        async with limiter("key"):
            await asyncio.sleep(0.002)

    async def work() -> None:
        for number in range(10):
            tasks = [asyncio.create_task(one()) for _ in range(8)]
            await asyncio.sleep(0.001 * number)
            for task in tasks[1::2]:
                task.cancel()
            await asyncio.wait(tasks)
        for _ in range(2):
            await limiter.acquire_async("key", timeout=60)

    asyncio.run(work())


KILLED = """
import sys, time, weir
slot = weir.Limiter(*sys.argv[2:], shared=sys.argv[1], delay_bound=None).acquire("key")
print("has it", flush=True)
time.sleep(600)
"""


def test_a_process_that_is_killed_has_sent_and_blocks_nothing(tmp_path: Path) -> None:
    place = str(tmp_path / "limits.db")
    limits = ("concurrency:1", "5/1h")
    with started(sys.executable, "-c", KILLED, place, *limits) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        limiter = weir.Limiter(*limits, shared=place, delay_bound=None)
        assert limiter.try_acquire("key") is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    # Its request may have been sent: it is over a second later, and counts for the hour.
    slots = [limiter.acquire("key", timeout=60)]
    for _ in range(3):
        slots[-1].done()
        slots.append(limiter.acquire("key", timeout=60))
    slots[-1].done()
    with pytest.raises(weir.LimiterTimeout):
        limiter.acquire("key", timeout=0.05)


def test_processes_that_are_killed_at_any_time_leave_a_place_that_works(tmp_path: Path) -> None:
    place = str(tmp_path / "limits.db")
    code = (
        "import sys, weir\nlimiter = weir.Limiter('1000000/1s', shared=sys.argv[1], delay_bound='1ms')\n"
        "print('runs', flush=True)\nwhile True:\n    with limiter('key'): pass\n"
    )
    for pause in (0.0, 0.003, 0.011):
        with started(sys.executable, "-c", code, place) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "runs\n"
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
            process.wait()
        with weir.Limiter("1000000/1s", shared=place, delay_bound="1ms")("key", timeout=60):
            pass


def _child(limiter: weir.Limiter, queue: multiprocessing.Queue[bool]) -> None:
    queue.put(limiter.try_acquire("key") is None)
    queue.put(limiter.try_acquire("other") is not None)


def test_a_child_of_a_fork_shares_the_limits_of_its_parent(shared: str) -> None:
    limiter = weir.Limiter("1/1h", shared=shared, delay_bound="1ms")
    with limiter("key"):
        pass
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(limiter, queue))
    child.start()
    assert (queue.get(timeout=60), queue.get(timeout=60)) == (True, True)
    child.join()
    assert child.exitcode == 0
    assert limiter.try_acquire("other") is None


def test_a_program_that_ends_at_once_holds_no_slot(shared: str) -> None:
    code = "import sys, weir\nwith weir.Limiter('concurrency:1', shared=sys.argv[1])('key'): pass\n"
    for _ in range(2):
        assert finished(sys.executable, "-c", code, shared).returncode == 0
    # Long before a holder counts as gone.
    weir.Limiter("concurrency:1", shared=shared).acquire("key", timeout=5)


def test_other_limits_in_one_place_are_a_mistake(shared: str) -> None:
    with weir.Limiter("2/1h", shared=shared)("key"):
        pass
    with pytest.raises(weir.UsageError, match=r"the limits '2/1h', this one has '3/1h'; give both the same") as why:
        weir.Limiter("3/1h", shared=shared).acquire("key")
    assert "\n" not in str(why.value)


def test_a_place_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "orders.db"
    file.write_text("SQLite format 3")
    with pytest.raises(weir.UsageError, match=r"a file of another program; give a path that does not exist"):
        weir.Limiter("1/1s", shared=file)
    with pytest.raises(weir.UsageError, match=r"a folder of another program"):
        weir.Limiter("1/1s", shared=tmp_path)
    with pytest.raises(weir.LimiterError, match=r"No such file"):
        weir.Limiter("1/1s", shared=tmp_path / "nowhere" / "limits.db")
    assert file.read_text() == "SQLite format 3"
    assert os.listdir(tmp_path) == ["orders.db"]


def test_keys_are_not_written_as_they_are(tmp_path: Path) -> None:
    with weir.Limiter("1/1s", shared=tmp_path / "limits.db")("secret-key"):
        pass
    for path in (tmp_path / "limits.db").iterdir():
        assert "secret" not in path.name
        assert b"secret" not in path.read_bytes()


def test_a_disk_that_is_full_is_an_error_and_grants_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys, threading, weir\nlimiter = weir.Limiter('5/1h', shared=sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "def acquire():\n    try:\n        limiter.acquire('key')\n    except weir.LimiterError as error:\n"
        "        print(error)\n"
        "users = [threading.Thread(target=acquire) for _ in range(3)]\n"
        "for user in users: user.start()\nfor user in users: user.join()\n"
    )
    process = finished(sys.executable, "-c", code, str(tmp_path / "limits.db"))
    assert process.stdout.count("limits.db: File too large") == 3, process.stderr
    limiter = weir.Limiter("5/1h", shared=tmp_path / "limits.db")
    assert [limiter.try_acquire("key") is not None for _ in range(6)] == [True] * 5 + [False]


def test_a_server_that_is_away_is_an_error_without_its_password() -> None:
    limiter = weir.Limiter("5/1h", shared="redis://me:secret@127.0.0.1:1/")
    with pytest.raises(weir.LimiterError, match=r"shared: redis://127.0.0.1:1/: unreachable") as why:
        limiter.acquire("key")
    assert "secret" not in str(why.value)
    with pytest.raises(weir.LimiterError):
        asyncio.run(limiter.acquire_async("key"))
    with httpx2.Client(transport=weir.httpx2.Transport(rate=limiter, retries=2)) as client:
        with pytest.raises(httpx2.ConnectError, match=r"rate limit: redis://127.0.0.1:1/: unreachable") as away:
            client.get("http://127.0.0.1:1/")
        assert "secret" not in str(away.value)
        assert len(weir.httpx2.attempts(away.value)) == 1


def test_each_process_goes_on_alone_if_it_is_asked_to(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "r.sock"
    options: dict[str, Any] = {"shared": f"redis+unix://{place}", "unreachable": "local", "delay_bound": "1ms"}
    with caplog.at_level(logging.WARNING, "weir"):
        limiter = weir.Limiter("2/300ms", **options)
        for _ in range(3):
            with limiter("key"):
                pass
        with redis_at(place):

            def is_back() -> bool:
                with limiter("key"):
                    return any("is reachable again" in line for line in caplog.messages)

            wait_for(is_back)
            lines = [line for line in caplog.messages if "goes on with limits of its own" in line]
    assert len(lines) == 1
    assert "unreachable" in lines[0]


def test_a_server_that_loses_its_keys_is_not_taken_for_an_empty_one(redis: str) -> None:
    limiter = weir.Limiter("2/1h", shared=redis, delay_bound="1ms")
    with limiter("key"):
        pass
    place = redis.removeprefix("redis+unix://").partition("?")[0]
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(place)
        peer.sendall(b"FLUSHALL\r\n")
        assert peer.recv(5) == b"+OK\r\n"
    with pytest.raises(weir.LimiterTimeout):
        limiter.acquire("key", timeout=0.05)


def test_the_state_of_a_key_is_text_that_people_can_read(tmp_path: Path) -> None:
    with weir.Limiter("2/1h", shared=tmp_path / "limits")("key"):
        pass
    file = next(path for path in (tmp_path / "limits").iterdir() if path.name.startswith("key-"))
    parts = file.read_bytes().split(b"weirkey1")[1:]
    latest = max(parts, key=lambda part: int.from_bytes(part[:8], "little"))
    text = latest[24 : 24 + int.from_bytes(latest[16:24], "little")]
    assert json.loads(text)["head"]["limits"] == "2/1h"


@pytest.mark.wide
def test_a_reply_that_is_lost_blocks_nothing_for_long(tmp_path: Path) -> None:
    place, relay = tmp_path / "r.sock", tmp_path / "relay.sock"
    with redis_at(place), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(relay))
        listener.listen()
        threading.Thread(target=_relay, args=(listener, place), daemon=True).start()
        limiter = weir.Limiter("concurrency:1", shared=f"redis+unix://{relay}", delay_bound="1ms")
        # The relay loses the reply to the script that grants the slot.
        with pytest.raises(weir.LimiterError):
            limiter.acquire("key")
        # It was granted to a holder that is not seen any more.
        with limiter("key", timeout=60):
            pass


def _relay(listener: socket.socket, place: Path) -> None:
    """Pass two connections on; of the first one the second reply is lost."""
    for lost in (1, None):
        client, _ = listener.accept()
        # At the end of the test the server is killed.
        with client, socket.socket(socket.AF_UNIX) as server, suppress(ConnectionError):
            server.connect(str(place))
            scripts = 0
            while request := client.recv(65536):
                server.sendall(request)
                reply = server.recv(65536)
                if b"EVAL" in request:
                    if scripts == lost:
                        break
                    scripts += 1
                client.sendall(reply)
