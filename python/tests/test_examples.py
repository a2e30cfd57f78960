"""The examples in `examples/`: run as they say that they are run."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import finished, started

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """`examples/service.py`, running; port 0 lets the system choose, and uvicorn says what it chose."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "service:app", "--port", "0"]
    with started(*command, "--no-access-log") as service:
        assert service.stderr
        said = []
        for line in service.stderr:
            said.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                yield f"{found[1]}/"
                break
        else:
            pytest.fail(f"the service did not start: {''.join(said)}")


def test_the_python_example_loads_the_service_and_holds_its_objectives(url: str) -> None:
    command = [sys.executable, str(EXAMPLES / "load_service.py"), url]
    done = finished(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 in all" in done.stdout
    assert re.search(r"^second  1: +\d+ answers", done.stdout, re.MULTILINE)


def test_the_python_example_says_in_one_line_that_nobody_answers() -> None:
    command = [sys.executable, str(EXAMPLES / "load_service.py"), "http://127.0.0.1:1/"]
    done = finished(*command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_the_rehearsal_ends_the_same_in_every_run() -> None:
    command = [sys.executable, str(EXAMPLES / "rehearse.py")]
    runs = [finished(*command).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    once, thrice = (int(line.split()[2]) for line in runs[0].splitlines())
    assert once < thrice <= 60


def test_the_orders_are_all_delivered_and_none_is_refused() -> None:
    command = [sys.executable, str(EXAMPLES / "send_orders.py"), "300"]
    done = finished(*command)
    assert done.stdout == "300 delivered, 0 x 429, 0 x 400\n"


@pytest.mark.parametrize("example", [path for path in EXAMPLES.iterdir() if path.is_file()], ids=lambda path: path.name)
def test_an_example_fits_on_a_page(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40
