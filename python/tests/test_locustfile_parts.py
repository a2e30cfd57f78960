"""Parts of Locust that files of public repositories use: messages about what is not there, requests, responses."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import Service
from programs import finished

pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")

from weir._locust.class_deal import LocustClassDeal  # needs greenlet

START = "from weir import _script; _script.main()"
USER = "from locust import FastHttpUser, HttpUser, constant, task\nclass One({kind}):\n    @task\n    def one(self):\n"


def _load(folder: Path, text: str, *args: str) -> tuple[int, str]:
    (folder / "locustfile.py").write_text(text)
    process = finished(sys.executable, "-c", START, "load", "-s", "locustfile.py", *args, cwd=folder)
    return process.returncode, process.stderr


def _last_line(folder: Path, text: str) -> str:
    code, err = _load(folder, text)
    assert code == 2, err
    return err.rstrip().splitlines()[-1]


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    line = _last_line(tmp_path, "import socketio_nowhere")
    assert f"{sys.executable} -m pip install socketio_nowhere" in line
    assert "-m pip install websocket-client" in _last_line(tmp_path, "import os\nimport websocket")


def test_a_module_of_the_project_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "common_steps.py").write_text("")
    folder = tmp_path / "load"
    folder.mkdir()
    assert f"PYTHONPATH={tmp_path}" in _last_line(folder, "import common_steps")


def test_a_file_that_ends_itself_while_it_is_imported_is_named(tmp_path: Path) -> None:
    assert "ended itself while it was imported (line 2): exit(3)" in _last_line(tmp_path, "import sys\nsys.exit(3)")


def test_names_of_locust_before_1_0_are_named_with_what_replaced_them(tmp_path: Path) -> None:
    line = _last_line(tmp_path, "from locust import HttpLocust")
    assert "before 1.0" in line
    assert "HttpUser" in line


def test_an_absent_part_within_a_function_is_noted_before_the_load(service: Service, tmp_path: Path) -> None:
    text = "import gevent\n" + USER.format(kind="HttpUser") + "        self.client.get('/')\n"
    text += "def never():\n    gevent.joinall([])\n"
    code, err = _load(tmp_path, text, service.url, "--users", "1", "--loops", "1")
    assert code == 0, err
    assert "locustfile.py:8: gevent.joinall is not there in weir; what reaches it fails" in err
    assert len(service.seen) == 1


def test_a_fast_user_names_the_type_of_text_and_bytes(service: Service, tmp_path: Path) -> None:
    body = "        for data in ('text', b'bytes', {'a': 1}):\n            self.client.post('/x y', data=data)\n"
    code, err = _load(tmp_path, USER.format(kind="FastHttpUser") + body, service.url, "--users", "1", "--loops", "1")
    assert code == 0, err
    kinds = [one.headers["content-type"].partition(";")[0] for one in service.seen]
    assert kinds == ["text/plain", "application/octet-stream", "application/x-www-form-urlencoded"]
    assert {one.path for one in service.seen} == {"/x%20y"}


def test_responses_have_what_those_of_requests_have(service: Service, tmp_path: Path) -> None:
    body = """
        r = self.client.get("/")
        assert b"".join(r.iter_content(2)) == b"hello" and list(r.iter_lines()) == [b"hello"]
        r.encoding = "latin-1"
        assert (r.encoding, r.text, r.is_redirect, r.cookies.get_dict()) == ("latin-1", "hello", False, {})
    """
    code, err = _load(tmp_path, USER.format(kind="HttpUser") + body, service.url, "--users", "1", "--loops", "1")
    assert (code, "Traceback" in err) == (0, False), err


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (5, 2, 1), (10, 0, 1)])
def test_users_are_dealt_by_weight_and_fixed_counts_first(weights: tuple[int, ...]) -> None:
    classes = [type(f"C{at}", (), {"fixed_count": 0, "weight": weight}) for at, weight in enumerate(weights)]
    few = type("Few", (), {"fixed_count": 2, "weight": 1})
    deal = LocustClassDeal([*classes, few])
    dealt = [deal.index(number) for number in range(2 + 20 * sum(weights))]
    assert dealt[:2] == [len(weights)] * 2
    found = Counter(dealt[2:])
    for at, weight in enumerate(weights):
        assert abs(found[at] - 20 * weight) <= 1, found
