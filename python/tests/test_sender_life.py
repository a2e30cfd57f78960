"""`weir.Sender` and its process: forks, ends without a close, interrupts and kills."""

import os
import signal
import sys
from pathlib import Path

import pytest
from conftest import Service
from programs import child, started

import weir

TIMEOUT_S = 60
"""Longer than anything here takes."""


def test_a_fork_leaves_the_sender_with_the_parent(service: Service) -> None:
    done = child(f"""
import os, weir
sender = weir.Sender("{service.url}")
ticket = sender.enqueue("/")
child = os.fork()
if child == 0:
    try:
        for ask in (lambda: sender.submit("/"), ticket.result, sender.stats):
            try:
                ask()
            except weir.UsageError as error:
                assert "before the fork; make a new one" in str(error), error
        del ticket, sender
        os._exit(0)
    finally:
        os._exit(9)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert ticket.result().ok and sender.submit("/").ok
sender.close()
print("fine")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


@pytest.mark.parametrize(
    "end",
    [
        "sender = weir.Sender(url); sender.submit()",
        "weir.Sender(url, store=path).enqueue('/slow?ms=20000')",
        "sender = weir.Sender(url, on_result=print); sender.enqueue('/slow?ms=20000')",
        "ticket = weir.Sender(url).enqueue('/slow?ms=20000'); import gc; gc.collect()",
        "t = threading.Thread(target=weir.Sender(url).submit, args=('/slow?ms=20000',), daemon=True); t.start()",
        "sender = weir.Sender(url, store=path); sys.exit(0)",
    ],
)
def test_a_program_that_closes_nothing_ends_in_peace(service: Service, tmp_path: Path, end: str) -> None:
    done = child(f"import sys, threading, weir; url = '{service.url}'; path = {str(tmp_path / 'jobs.db')!r}; {end}")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unclosed_sender_is_a_resource_warning(service: Service) -> None:
    done = child(f"import weir; sender = weir.Sender('{service.url}'); del sender", warn="always")
    assert "ResourceWarning: unclosed Sender; use it in a with block" in done.stderr


def test_ctrl_c_ends_the_wait_and_the_job_stays_in_the_file(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    script = f"""
import weir
with weir.Sender("{service.url}", store={str(store)!r}, grace=0.1) as sender:
    sender.submit("/slow?ms=20000")
"""
    with started(sys.executable, "-c", script) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    # A job in flight at the end may have been done, which the next sender reports.
    with weir.Sender(service.url, store=store) as sender:
        recovered = sender.recovered
        sender.stop(grace=0)
    assert recovered == (1, 1)


def test_what_a_killed_process_left_is_sent_by_the_next(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    script = f"""
import os, signal, weir
sender = weir.Sender("{service.url}", store={str(store)!r}, max_concurrency=1)
sender.enqueue_many({{"url": "/slow?ms=200" if n == 0 else "/", "id": n}} for n in range(20))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert child(script).returncode == -signal.SIGKILL
    results: list[weir.JobResult] = []
    with weir.Sender(service.url, store=store, on_result=results.append):
        pass
    assert {result.id for result in results} | {"0"} == {str(n) for n in range(20)}
    assert all(result.ok for result in results)
    assert os.path.getsize(store) > 0
