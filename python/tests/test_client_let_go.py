"""Clients that are let go of without being closed, and the client that a whole program shares."""

import asyncio
import gc
import os
import threading

import pytest
from conftest import Service, wait_for
from programs import child

import weir


def sockets() -> int:
    """How many files are open here."""
    return len(os.listdir("/proc/self/fd"))


def test_a_dropped_client_closes_its_connections_at_once(service: Service) -> None:
    weir.Client().get(service.url)
    before = sockets()
    for _ in range(500):
        assert weir.Client().get(service.url, timeout=20).status_code == 200
    # The service is in this process, too, and may see the end of a connection a moment later.
    wait_for(lambda: sockets() <= before)


def test_a_dropped_client_in_a_cycle_is_closed_by_the_collector(service: Service) -> None:
    weir.Client().get(service.url)
    before = sockets()
    for _ in range(10):
        client = weir.Client()
        client.get(service.url)
        client.itself = client  # type: ignore[attr-defined]
    del client
    gc.collect()
    wait_for(lambda: sockets() <= before)


def test_a_client_that_calls_any_number_of_hosts_does_not_keep_them_all() -> None:
    # All of 127.0.0.0/8 is this machine, and each address a host of its own.
    with weir.serve("httpbin", host="0.0.0.0") as wide, weir.Client() as client:
        before = sockets()
        for n in range(700):
            assert client.get(f"http://127.1.{n // 250}.{n % 250 + 1}:{wide.port}/static").status_code == 200
        # Both ends of each connection are here, and the service's may end a moment later.
        wait_for(lambda: sockets() < before + 2 * 300)


def test_the_functions_of_the_module_share_connections_within_a_thread(service: Service) -> None:
    assert weir.request("PATCH", service.url, json={"a": 1}).request.method == "PATCH"
    calls = [weir.post, weir.put, weir.patch, weir.delete, weir.options, weir.head]
    before = sockets()
    for call in calls[:4]:
        assert call(service.url).text == "hello"
    assert sockets() == before, "no connection was opened for them"
    assert [seen.method for seen in service.seen[-4:]] == ["POST", "PUT", "PATCH", "DELETE"]
    for call in calls[4:]:
        # The service knows neither of them.
        assert call(service.url).status_code == 501
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(weir.get(service.url).text))
    thread.start()
    thread.join()
    assert found == ["hello"]


def test_a_child_of_a_fork_may_use_the_functions_of_the_module(service: Service) -> None:
    done = child(f"""
import os, weir
assert weir.get("{service.url}").text == "hello"
if (pid := os.fork()) == 0:
    os._exit(0 if weir.get("{service.url}").text == "hello" else 1)
assert os.waitpid(pid, 0)[1] == 0
assert weir.get("{service.url}").text == "hello"
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_dropped_async_client_closes_its_connections_at_once(service: Service) -> None:
    async def main() -> None:
        await weir.AsyncClient().get(service.url)
        before = sockets()
        for _ in range(200):
            assert (await weir.AsyncClient().get(service.url, timeout=20)).status_code == 200
        await asyncio.to_thread(wait_for, lambda: sockets() <= before + 1)

    asyncio.run(main())


def test_what_a_thread_has_open_for_a_dropped_client_goes_with_its_next_call(service: Service) -> None:
    with weir.Client() as other:
        client = weir.Client()
        client.get(service.url)
        other.get(service.url)
        before = sockets()
        thread = threading.Thread(target=client.close)
        thread.start()
        thread.join()
        other.get(service.url)
        wait_for(lambda: sockets() <= before - 2)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_dropped_senders_leave_nothing_open(service: Service) -> None:
    before = sockets()
    for _ in range(50):
        assert weir.Sender(service.url).submit().ok
    wait_for(lambda: sockets() <= before)

    async def main() -> None:
        assert (await weir.AsyncSender(service.url).submit()).ok
        before = sockets()
        for _ in range(50):
            assert (await weir.AsyncSender(service.url).submit()).ok
        await asyncio.to_thread(wait_for, lambda: sockets() <= before + 1)

    asyncio.run(main())
