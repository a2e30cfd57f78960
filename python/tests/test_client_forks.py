"""Clients in processes that fork while other threads use them, and in objects that other threads drop."""

import sys
from pathlib import Path

import pytest
from conftest import Service
from programs import child, finished

# Each program prints "fine", and nothing on standard error, such as a traceback of an object that the child drops.
PREPARED = """
import asyncio, concurrent.futures, gc, multiprocessing, os, sys, threading, time, weir
url = {url!r}
client, other = weir.Client(), weir.AsyncClient()

def in_threads(count, work):
    # Threads that have used clients, and wait.
    ready, done = threading.Barrier(count + 1), threading.Event()
    def run():
        work()
        ready.wait()
        done.wait()
    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    ready.wait()
    return done, threads

def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            gc.collect()
            sys.stderr.flush()
            os._exit(0)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def call():
    assert client.get(url).text == "hello"
    assert weir.get(url).text == "hello"

def call_async():
    async def main():
        assert (await other.get(url)).text == "hello"
    asyncio.run(main())
"""

PROGRAMS = {
    "threads with clients": """
done, threads = in_threads(5, call)
for _ in range(3):
    forked(call)
call()
done.set()
[thread.join() for thread in threads]
call()
""",
    "the main thread and others": """
call()
done, threads = in_threads(3, call)
forked(lambda: (call(), call_async()))
call()
done.set()
""",
    "a child of a child": """
call()
done, threads = in_threads(2, call)
def again():
    call()
    done, threads = in_threads(2, call)
    forked(call)
    call()
forked(again)
call()
""",
    "a fork by a thread": """
call()
done, threads = in_threads(2, call)
thread = threading.Thread(target=forked, args=(call,))
thread.start()
thread.join()
call()
""",
    "loops of other threads": """
def run_loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(other.get(url))
done, threads = in_threads(3, run_loop)
forked(lambda: (call(), call_async()))
call_async()
done.set()
[thread.join() for thread in threads]
call_async()
""",
    "a call of another thread": """
thread = threading.Thread(target=lambda: client.get(url + "/slow?ms=300"))
thread.start()
for _ in range(3):
    forked(lambda: (call(), call_async()))
thread.join()
call()
""",
    "a running loop": """
async def main():
    slow = asyncio.ensure_future(other.get(url + "/slow?ms=300"))
    await other.get(url)
    done, threads = in_threads(2, call)
    def in_child():
        call()
        asyncio._set_running_loop(None)
        call_async()
    forked(in_child)
    assert (await slow).text == "hello"
    assert (await other.get(url)).text == "hello"
    done.set()
asyncio.run(main())
""",
    "a loop of the parent that goes on": """
async def in_child(inherited):
    assert (await other.get(url)).text == "hello"
    # It waits for events of its own, and not for those of its parent.
    watched = set(asyncio.get_running_loop()._selector.get_map())
    assert not watched & inherited, (watched, inherited)

async def main():
    await other.get(url)
    begin, begun = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            # By now the parent has opened what has the numbers that are free here.
            os.read(begin, 1)
            asyncio._set_running_loop(None)
            asyncio.run(in_child(set(map(int, os.listdir("/proc/self/fd")))))
            os._exit(0)
        finally:
            os._exit(9)
    slow = [asyncio.ensure_future(other.get(url + "/slow?ms=20000")) for _ in range(40)]
    await asyncio.gather(*[other.get(url) for _ in range(40)])
    os.write(begun, b"x")
    assert (await asyncio.to_thread(os.waitpid, pid, 0))[1] == 0
    [one.cancel() for one in slow]
asyncio.run(main())
""",
    "an open sender": """
sender = weir.Sender(url)
done, threads = in_threads(3, lambda: sender.submit("/"))
def in_child():
    call()
    with weir.Sender(url) as own:
        assert own.submit("/").ok
    try:
        sender.submit("/")
    except weir.UsageError as error:
        assert "before the fork; make a new one" in str(error), error
    else:
        raise AssertionError
forked(in_child)
assert sender.submit("/").ok
sender.close()
""",
    "an object of another thread that the child drops first": """
# Python drops what the other threads had before it calls any hook.
class Caller:
    def __del__(self):
        if os.getpid() != parent:
            before = len(os.listdir("/proc/self/fd"))
            call()
            # It is a loop of its own, and not that of the parent.
            assert len(os.listdir("/proc/self/fd")) > before
parent = os.getpid()
def keep():
    local.caller = Caller()
local = threading.local()
call()
done, threads = in_threads(1, keep)
forked(call)
call()
done.set()
[thread.join() for thread in threads]
""",
    "a sender that its parent closes": """
import tempfile
folder = tempfile.TemporaryDirectory()
store = os.path.join(folder.name, "jobs.db")
sender = weir.Sender(url, store=store)
assert sender.submit("/").ok
hold, held = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(held)
    os.read(hold, 1)
    os._exit(0)
sender.close()
with weir.Sender(url, store=store) as again:
    assert again.submit("/").ok
os.close(held)
assert os.waitpid(pid, 0)[1] == 0
folder.cleanup()
""",
    "multiprocessing by fork": """
done, threads = in_threads(3, call)
context = multiprocessing.get_context("fork")
processes = [context.Process(target=call) for _ in range(3)]
[process.start() for process in processes]
[process.join() for process in processes]
assert [process.exitcode for process in processes] == [0, 0, 0]
call()
""",
    "a pool of processes": """
done, threads = in_threads(3, call)
context = multiprocessing.get_context("fork")
with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
    [future.result() for future in [pool.submit(call) for _ in range(6)]]
call()
""",
    "a child that exits in the usual way": """
done, threads = in_threads(3, call)
pid = os.fork()
if pid == 0:
    call()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
call()
""",
    "a preloaded server whose master has threads": """
# As gunicorn --preload: the master has made calls, and its workers are forks that are replaced.
call()
done, threads = in_threads(2, call)
for _ in range(5):
    pids = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            try:
                call()
                client.close()
                os._exit(0)
            finally:
                os._exit(9)
        pids.append(pid)
    for pid in pids:
        assert os.waitpid(pid, 0)[1] == 0
call()
""",
    "daemon threads at the end of the program": """
done, threads = in_threads(5, call)
done, threads = in_threads(5, call_async)
""",
    "a loop that another thread closes": """
def run(loop):
    asyncio.set_event_loop(loop)
    loop.run_forever()
for _ in range(3):
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=run, args=(loop,))
    thread.start()
    response = asyncio.run_coroutine_threadsafe(other.get(url), loop).result()
    assert response.text == "hello"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    del loop
    gc.collect()
call_async()
""",
    "a loop that runs on one thread after the other": """
loop = asyncio.new_event_loop()
for _ in range(4):
    thread = threading.Thread(target=lambda: loop.run_until_complete(other.get(url)))
    thread.start()
    thread.join()
    loop.run_until_complete(other.get(url))
loop.close()
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fork_or_a_drop_elsewhere_is_silent(service: Service, name: str) -> None:
    done = child(PREPARED.format(url=service.url) + PROGRAMS[name] + '\nprint("fine")\n')
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_processes_of_each_start_method_may_use_clients(service: Service, tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import multiprocessing, threading, weir
client = weir.Client()
def call(_=None):
    assert client.get({service.url!r}).text == "hello"
    return 1
if __name__ == "__main__":
    call()
    done = threading.Event()
    used = threading.Event()
    threading.Thread(target=lambda: (call(), used.set(), done.wait()), daemon=True).start()
    used.wait()
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        assert sum(pool.map(call, range(8))) == 8
    call()
    print("fine")
""")
    done = finished(sys.executable, "-W", "ignore", str(program))
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_what_a_closed_loop_had_open_is_closed_with_the_next_use_of_its_thread(service: Service) -> None:
    done = child(f"""
import asyncio, gc, os, queue, threading, weir
url, client, work = {service.url!r}, weir.AsyncClient(), queue.Queue()
def worker():
    while (loop := work.get()) is not None:
        loop.run_until_complete(client.get(url))
        loop = None
        work.task_done()
threading.Thread(target=worker, daemon=True).start()
counts = []
for _ in range(12):
    loop = asyncio.new_event_loop()
    work.put(loop)
    work.join()
    loop.close()
    del loop
    gc.collect()
    counts.append(len(os.listdir("/proc/self/fd")))
assert counts[-1] <= counts[2], counts
print("fine")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")
