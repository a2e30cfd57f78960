"""`weir.AsyncClient` and threads: cancelling, several event loops, forks, ends of loops and of programs."""

import asyncio
import gc
import os
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import Service
from programs import child

import weir

TIMEOUT_S = 30


@pytest.fixture(scope="module")
def upstream() -> Iterator[weir.Service]:
    with weir.serve("httpbin") as service:
        yield service


def run(work: Coroutine[Any, Any, object]) -> None:
    async def in_time() -> None:
        await asyncio.wait_for(work, TIMEOUT_S)

    asyncio.run(in_time())


async def asked(service: Service) -> None:
    while not service.asked.is_set():
        await asyncio.sleep(0.001)


def files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_many_concurrent_calls_have_their_own_responses(upstream: weir.Service) -> None:
    async def work() -> None:
        async with weir.AsyncClient(base_url=upstream.url) as client:
            sizes = range(500)
            responses = await asyncio.gather(*(client.get(f"/static?bytes={size}") for size in sizes))
            assert [len(response.content) for response in responses] == list(sizes)
        assert client.is_closed
        with pytest.raises(weir.UsageError, match="the client is closed"):
            await client.get("/static")

    run(work())


def test_calls_are_coroutines_that_tasks_and_timeouts_take(service: Service) -> None:
    async def work() -> None:
        async with weir.AsyncClient(base_url=service.url) as client:
            task = asyncio.create_task(client.post("/", json={}))
            assert (await task).text == "hello"
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.get("/slow?ms=500"), 0.01)
            with pytest.raises(weir.DeadlineExceeded):
                await client.get("/slow?ms=500", deadline=0.01)
            with pytest.raises(weir.ConnectFailed):
                await client.get("http://127.0.0.1:1/")
            with pytest.raises(weir.UsageError, match="unknown scheme 'x'"):
                await weir.AsyncClient(base_url="").get("x://")

    run(work())


def test_a_cancelled_call_lets_go_of_its_connection_at_once() -> None:
    async def work() -> None:
        gone = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            task.cancel()
            assert await reader.read() == b""
            gone.set()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, weir.AsyncClient() as client:
            port = server.sockets[0].getsockname()[1]
            task = asyncio.create_task(client.get(f"http://127.0.0.1:{port}/"))
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()

    run(work())


def test_calls_that_are_cancelled_at_once_do_no_harm_to_those_after_them(service: Service) -> None:
    async def work() -> None:
        async with weir.AsyncClient(base_url=service.url) as client:
            for steps in range(6):
                task = asyncio.create_task(client.get("/slow?ms=100"))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert (await client.get("/")).text == "hello"

    run(work())


def test_a_coroutine_may_be_dropped_before_its_end(service: Service) -> None:
    async def work() -> None:
        async with weir.AsyncClient(base_url=service.url) as client:
            call = client.get("/slow?ms=100")
            call.send(None)
            call.close()
            left = client.get("/slow?ms=100")
            left.send(None)
            calls.append(left)

    calls: list[Coroutine[Any, Any, weir.Response]] = []
    run(work())
    calls.pop().close()


def test_a_loop_may_go_on_in_another_thread(upstream: weir.Service) -> None:
    loop = asyncio.new_event_loop()
    client = weir.AsyncClient(base_url=upstream.url)

    async def ask() -> int:
        return len((await client.get("/static?bytes=6")).content)

    assert loop.run_until_complete(ask()) == 6
    loop.close()
    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(loop.run_until_complete, ask()).result() == 6
        pool.submit(loop.close).result()


def test_one_client_serves_many_loops_and_threads(upstream: weir.Service) -> None:
    client = weir.AsyncClient(base_url=upstream.url)

    async def work(number: int) -> int:
        responses = await asyncio.gather(*(client.get(f"/static?bytes={number}") for _ in range(20)))
        return sum(len(response.content) for response in responses)

    with ThreadPoolExecutor(4) as pool:
        totals = list(pool.map(lambda number: asyncio.run(work(number)), range(1, 13)))
    assert totals == [20 * number for number in range(1, 13)]


def test_threads_share_a_client(upstream: weir.Service) -> None:
    with weir.Client(base_url=upstream.url) as client, ThreadPoolExecutor(8) as pool:
        sizes = pool.map(lambda size: len(client.get(f"/static?bytes={size}").content), range(400))
        assert list(sizes) == list(range(400))


def test_a_blocking_call_works_inside_a_running_loop(upstream: weir.Service) -> None:
    async def work() -> None:
        with weir.Client(base_url=upstream.url) as client:
            async with weir.AsyncClient(base_url=upstream.url) as other:
                pending = asyncio.create_task(other.get("/static?bytes=3"))
                assert len(client.get("/static?bytes=7").content) == 7
                assert len((await pending).content) == 3

    run(work())


def test_loops_and_threads_that_end_leave_no_files_open(upstream: weir.Service, service: Service) -> None:
    async def abandoned() -> None:
        client = weir.AsyncClient()
        await client.get(upstream.url + "/static")
        task = asyncio.create_task(client.get(service.url + "/slow?ms=300"))
        await asyncio.sleep(0)
        await asked(service)
        del task

    def threaded() -> None:
        client = weir.Client()
        client.get(upstream.url + "/static")

    def once() -> None:
        asyncio.run(abandoned())
        thread = threading.Thread(target=threaded)
        thread.start()
        thread.join()
        gc.collect()

    once()
    before = files()
    for _ in range(5):
        once()
    # The services' own ends of the connections are in this process, and close when they notice.
    assert wait_until(lambda: files() <= before + 4), f"{files()} files, {before} before"


def wait_until(condition: Any) -> bool:
    for _ in range(TIMEOUT_S * 100):
        if condition():
            return True
        threading.Event().wait(0.01)
    return False


def test_a_loop_that_is_closed_with_calls_in_flight_is_no_trouble(service: Service) -> None:
    loop = asyncio.new_event_loop()
    client = weir.AsyncClient()
    task = loop.create_task(client.get(service.url + "/slow?ms=200"))
    loop.run_until_complete(asked(service))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()
    assert asyncio.run(client.get(service.url)).text == "hello"


def test_a_fork_leaves_the_parents_connections_alone(upstream: weir.Service) -> None:
    done = child(f"""
import asyncio, os, weir
url = "{upstream.url}/static?bytes=5"
client, other = weir.Client(), weir.AsyncClient()
assert len(client.get(url).content) == 5
async def main():
    await other.get(url)
    child = os.fork()
    if child == 0:
        # In the child nothing of the parent's is used, or harmed when it is dropped.
        try:
            assert len(client.get(url).content) == 5
            client.close()
            os._exit(0)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for _ in range(3):
        assert len((await other.get(url)).content) == 5
        assert len(client.get(url).content) == 5
asyncio.run(main())
child = os.fork()
if child == 0:
    try:
        assert len(asyncio.run(other.get(url)).content) == 5
        os._exit(0)
    finally:
        os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("fine")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


@pytest.mark.parametrize(
    "end",
    [
        "client = weir.Client(); client.get(url)",
        "client = weir.AsyncClient(); asyncio.run(client.get(url))",
        "loop = asyncio.new_event_loop(); client = weir.AsyncClient(); loop.run_until_complete(client.get(url))",
        "t = threading.Thread(target=lambda: weir.Client().get(url + '?ms=1'), daemon=True); t.start(); t.join()",
        "weir.Client().get(url); sys.exit(0)",
    ],
)
def test_a_program_ends_in_peace(upstream: weir.Service, end: str) -> None:
    done = child(f"import asyncio, sys, threading, weir; url = '{upstream.url}/static'; {end}")
    assert (done.returncode, done.stdout) == (0, "")
    assert "panicked" not in done.stderr
    assert "Traceback" not in done.stderr


def test_uvloop_has_guests_too(upstream: weir.Service) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def work() -> None:
        async with weir.AsyncClient(base_url=upstream.url) as client:
            responses = await asyncio.gather(*(client.get("/static?bytes=9") for _ in range(50)))
            assert {len(response.content) for response in responses} == {9}

    loop = uvloop.new_event_loop()
    loop.run_until_complete(work())
    loop.close()
