"""The programs in `examples/`, run as documented."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import finished, started

pytestmark = pytest.mark.wide

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """URL of a running `examples/service.py`, on a port of the system's choice that uvicorn prints."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "service:app", "--port", "0"]
    with started(*command, "--no-access-log") as service:
        assert service.stderr
        printed = []
        for line in service.stderr:
            printed.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                yield f"{found[1]}/"
                break
        else:
            pytest.fail(f"the service did not start: {''.join(printed)}")


def test_the_python_example_meets_its_objectives(url: str) -> None:
    command = [sys.executable, str(EXAMPLES / "load_service.py"), url]
    done = finished(*command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 total" in done.stdout
    assert re.search(r"^second  1: +\d+ responses", done.stdout, re.MULTILINE)


def test_the_python_example_reports_an_unreachable_service_in_one_line() -> None:
    command = [sys.executable, str(EXAMPLES / "load_service.py"), "http://127.0.0.1:1/"]
    done = finished(*command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_the_rehearsal_repeats_with_its_seed() -> None:
    command = [sys.executable, str(EXAMPLES / "rehearse.py")]
    runs = [finished(*command).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    once, hedged = (int(line.split()[2]) for line in runs[0].splitlines())
    assert once < hedged <= 60


def test_all_orders_are_delivered_and_none_is_rejected() -> None:
    command = [sys.executable, str(EXAMPLES / "send_orders.py"), "300"]
    done = finished(*command)
    assert done.stdout == "300 delivered, 0 x 429, 0 x 400\n"


def test_the_load_tests_of_the_example_pass_and_are_skipped_without_their_flag(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(EXAMPLES / "test_load.py")]
    assert "3 skipped" in finished(*command, cwd=tmp_path).stdout
    done = finished(*command, "--weir", "--weir-runs", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^[\d.,]+/s +p99 .*::test_", done.stdout, re.MULTILINE)) == 3
    assert len(list(tmp_path.glob("*/1/*/1.json"))) == 3


@pytest.mark.parametrize("example", [path for path in EXAMPLES.iterdir() if path.is_file()], ids=lambda path: path.name)
def test_an_example_fits_on_a_page(example: Path) -> None:
    assert len(example.read_text().splitlines()) < 40
