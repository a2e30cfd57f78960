"""Ctrl-C, as a terminal sends it to a real process."""

import json
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import Service
from programs import started

TIMEOUT_S = 30


def test_ctrl_c_ends_a_run_and_keeps_its_result(service: Service) -> None:
    script = f"""
import weir
print("running", flush=True)
try:
    weir.load("{service.url}", duration="10m", connections=2)
except weir.Interrupted as interrupt:
    print(interrupt.run.to_json())
"""
    with started(sys.executable, "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    run = json.loads(out)
    assert (process.returncode, err, run["interrupted"]) == (0, "", True)
    assert run["requests"]["ok"] > 0
    assert run["duration_s"] < TIMEOUT_S


def test_uncaught_ctrl_c_ends_the_program(service: Service) -> None:
    script = f"import weir; weir.load('{service.url}', duration='10m', connections=2)"
    with started(sys.executable, "-c", script) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0
    assert "weir.Interrupted: after" in err


def test_ctrl_c_while_connecting_is_a_plain_keyboard_interrupt() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        # A listener that accepts no connections and has a full backlog leaves the next client waiting.
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        port = listener.getsockname()[1]
        script = f"import weir; print('running', flush=True); weir.load('http://127.0.0.1:{port}/', timeout=1)"
        with started(sys.executable, "-c", script) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_exceptions_of_other_signal_handlers_are_raised_unchanged(service: Service) -> None:
    script = f"""
import signal, weir
def stop(number, frame):
    raise SystemExit(7)
signal.signal(signal.SIGTERM, stop)
weir.load("{service.url}", duration="10m", connections=2)
"""
    with started(sys.executable, "-c", script) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, err) == (7, "")


def test_ctrl_c_on_the_command_writes_its_result(service: Service) -> None:
    with started(
        sys.executable, "-m", "weir", "load", service.url, "-c", "2", "-d", "10m", "--format", "json"
    ) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert json.loads(out)["interrupted"] is True
    assert "Traceback" not in err


def test_ctrl_c_ends_a_blocking_call(service: Service) -> None:
    script = f"import weir; weir.Client().get('{service.url}/slow?ms=20000')"
    with started(sys.executable, "-c", script) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert (process.returncode, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


@pytest.mark.parametrize("function", ["setup", "handleSummary"])
def test_ctrl_c_ends_a_function_beside_the_load(function: str, service: Service, tmp_path: Path) -> None:
    call = f"export function {function}() {{ http.get('{service.url}/slow?ms=20000'); return {{}}; }}"
    (tmp_path / "a.js").write_text(f"import http from 'k6/http';\nexport default () => {{}};\n{call}\n")
    script = "import sys, weir; weir.load(script=sys.argv[1])"
    with started(sys.executable, "-c", script, str(tmp_path / "a.js")) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert (process.returncode, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")


def test_a_signal_handler_may_make_a_call_during_a_call(service: Service) -> None:
    script = f"""
import signal, weir
client = weir.Client()
def ask(number, frame):
    print(client.get("{service.url}").text, flush=True)
signal.signal(signal.SIGUSR1, ask)
print(client.get("{service.url}/slow?ms=1000").text)
"""
    with started(sys.executable, "-c", script) as process:
        assert service.asked.wait(TIMEOUT_S)
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (0, "hello\nhello\n", "")
