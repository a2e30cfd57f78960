"""What public locustfiles use beside users and tasks, and what is said of what they lack."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import Service
from test_locustfile import _load

from weir._locust.class_deal import LocustClassDeal

pytest.importorskip("greenlet", reason="no greenlet; pip install 'weir-http[locust]'")

FORMS = """
from locust import FastHttpUser, HttpUser, constant, task

class A(HttpUser):
    wait_time = constant(0)
    @task
    def a(self):
        for method in ("GET", "DELETE", "POST"):
            self.client.request(method, f"/a/{method}")
        self.client.get("/a/two words?q=a b")

class B(FastHttpUser):
    wait_time = constant(0)
    @task
    def b(self):
        self.client.post("/b/text", data="text")
        self.client.post("/b/bytes", data=b"bytes")
        self.client.post("/b/form", data={"a": "1"})
        self.client.post("/b/own", data="text", headers={"content-type": "text/csv"})
"""


def test_requests_have_the_form_that_the_clients_of_locust_give_them(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, FORMS, service.url, "--users", "2", "-n", "2")
    assert code == 0, err
    lengths = {one.path: one.headers.get("Content-Length") for one in service.seen if one.path.startswith("/a/")}
    assert lengths == {
        "/a/GET": None,
        "/a/DELETE": "0",
        "/a/POST": "0",
        "/a/two%20words?q=a%20b": None,
    }
    kinds = {one.path: one.headers["Content-Type"] for one in service.seen if one.path.startswith("/b/")}
    assert kinds == {
        "/b/text": "text/plain; charset=utf-8",
        "/b/bytes": "application/octet-stream",
        "/b/form": "application/x-www-form-urlencoded; charset=utf-8",
        "/b/own": "text/csv",
    }


RESPONSES = """
from locust import HttpUser, constant, task

class A(HttpUser):
    wait_time = constant(0)
    @task
    def a(self):
        r = self.client.get("/", stream=True)
        assert list(r.iter_lines()) == [b"hello"]
        assert list(r.iter_content(2)) == [b"he", b"ll", b"o"]
        assert list(r.iter_content(chunk_size=None)) == [b"hello"]
        assert (r.is_redirect, r.cookies.get_dict()) == (False, {})
        r.encoding = "utf-16-le"
        assert r.encoding == "utf-16-le"
        assert r.text == b"hello".decode("utf-16-le", "replace")
        assert list(r.iter_lines(decode_unicode=True)) == [r.text]
"""


def test_responses_have_the_parts_of_the_library_requests(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, RESPONSES, service.url, "--users", "1", "-n", "1")
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("weights", "order"),
    [
        ({"B": 1, "A": 1}, "ABABABAB"),
        ({"A": 5, "B": 2, "C": 2, "D": 1, "E": 1}, "ABCADEAABCAABCADEAAB"),
        ({"X": 75, "Y": 25}, "XYXXXYXXXYXX"),
        ({"A": 1, "B": 5, "C": 2, "D": 1, "E": 0}, "BCBADBBCBBCBADBBCBBC"),
        ({"A": 10, "B": 1, "C": 10}, "ACACACACBACACACACACA"),
        ({"A": 0}, "AAA"),
    ],
)
def test_users_have_the_classes_that_they_have_in_locust(weights: dict[str, float], order: str) -> None:
    """The orders are those that Locust 2.47 printed."""
    deal = LocustClassDeal([type(name, (), {"weight": one, "fixed_count": 0}) for name, one in weights.items()])
    assert "".join(list(weights)[deal.index(number)] for number in range(len(order))) == order


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (5, 2, 1), (10, 0, 1)])
def test_numbers_of_users_are_close_to_their_weights(weights: tuple[int, ...]) -> None:
    classes = [type(f"C{at}", (), {"fixed_count": 0, "weight": weight}) for at, weight in enumerate(weights)]
    deal = LocustClassDeal(classes)
    found = Counter(deal.index(number) for number in range(20 * sum(weights)))
    assert all(abs(found[at] - 20 * weight) <= 1 for at, weight in enumerate(weights)), found


def test_fixed_counts_come_first() -> None:
    counts = {"A": 0, "B": 2, "C": 1}
    deal = LocustClassDeal([type(name, (), {"weight": 1, "fixed_count": one}) for name, one in counts.items()])
    assert [deal.index(number) for number in range(6)] == [1, 2, 1, 0, 0, 0]


ADDED = """
from locust import HttpUser, constant

class Made(HttpUser):
    wait_time = constant(0)
    def on_start(self):
        self.tasks.append(lambda user: user.client.get("/made"))
"""


def test_a_class_may_add_its_tasks_when_a_user_begins(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, ADDED, service.url, "--users", "1", "-n", "2")
    assert code == 0, err
    assert [one.path for one in service.seen] == ["/made", "/made"]


TAGGED = """
from locust import HttpUser, constant, events, tag, task

class Base(HttpUser):
    abstract = True
    wait_time = constant(0)
    @task
    def a(self):
        self.client.get(f"/{type(self).__name__}")

@tag("one")
class One(Base):
    pass

@tag("two")
class Two(Base):
    pass

@events.init.add_listener
def choose(environment, **_):
    if not environment.parsed_options.tags:
        environment.user_classes = [Two]
"""


@pytest.mark.parametrize(
    ("flags", "paths"),
    [(["--tags", "one"], {"/One"}), (["--exclude-tags", "one"], {"/Two"}), ([], {"/Two"})],
)
def test_classes_are_chosen_by_tags_and_listeners(
    service: Service, tmp_path: Path, flags: list[str], paths: set[str]
) -> None:
    code, _, err = _load(tmp_path, TAGGED, service.url, "--users", "4", "-n", "8", *flags)
    assert code == 0, err
    assert {one.path for one in service.seen} == paths


INSTALL = f"needs the module no_such_module, which {sys.executable} does not have; write {sys.executable} -m pip"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import os\nimport no_such_module.part", f"line 2 {INSTALL} install no_such_module, or PYTHONPATH="),
        ("import websocket", f"{sys.executable} -m pip install websocket-client"),
        ("import gevent.pool", "needs the module gevent.pool, which is not there in weir"),
        ("from locust import HttpLocust", "locust.HttpLocust is of Locust before 1.0"),
        ("from locust import TaskSequence", "write SequentialTaskSet"),
        ("from locust import events\nevents.request_failure", "is of Locust before 2.0; write events.request"),
        ("import sys\nsys.exit(1)", "ended itself while it was imported (line 2): exit(1)"),
        ("import sys\n\nsys.exit('no key')", "(line 3): exit(no key)"),
    ],
)
def test_the_last_line_names_what_a_file_lacks_and_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    code, _, err = _load(tmp_path, text)
    assert code == 2
    last = err.rstrip().splitlines()[-1]
    assert last.startswith("weir: locustfile.py ")
    assert last.endswith("; nothing was sent")
    assert words in last
    assert f"weir{os.sep}_locust" not in err


def test_the_page_that_an_error_names_is_there(tmp_path: Path) -> None:
    _, _, err = _load(tmp_path, "from locust import NoSuchUser")
    page = err.rpartition("locust.NoSuchUser is not there in weir; ")[2].partition(" lists what is")[0]
    assert page.endswith("scripts/python.md")
    # A package has its pages at an absolute path.
    assert (Path(__file__).parents[2] / page).is_file()


def test_a_module_of_the_files_own_project_is_found(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    folder = tmp_path / "tests" / "load"
    folder.mkdir(parents=True)
    code, _, err = _load(folder, "import shop")
    assert code == 2
    assert f"the module shop, which is in {tmp_path.resolve()}; start weir there" in err


ABSENT = """
import gevent
from locust import HttpUser, constant, events, task

@events.init.add_listener
def begin(environment, **_):
    if environment is None:
        gevent.spawn(print)
        environment.runner.spawn_users(1)

class A(HttpUser):
    wait_time = constant(0)
    @task
    def a(self):
        gevent.sleep(0)
        self.client.get("/")
        assert self.environment.runner.state == "running"
        try:
            self.environment.events.request.fire(request_type="X", name="x", response_time=1, response_length=0)
        except ValueError:
            pass
        try:
            from gevent import pool
        except ImportError:
            pass

if __name__ == "__main__":
    gevent.joinall([])
"""


def test_what_tasks_may_reach_and_is_not_there_is_named_before_the_run(service: Service, tmp_path: Path) -> None:
    code, _, err = _load(tmp_path, ABSENT, service.url, "--users", "1", "-n", "1")
    assert code == 0, err
    assert err.splitlines() == [
        "weir: locustfile.py:8: gevent.spawn is not there; what reaches it fails",
        "weir: locustfile.py:9: environment.runner.spawn_users is not there; what reaches it fails",
        "weir: locustfile.py:19: events.request.fire is heard by listeners, and not counted",
    ]


SHAPE = """
from locust import HttpUser, LoadTestShape, constant, task

class Steps(LoadTestShape):
    def tick(self):
        return (5, 5) if self.get_run_time() < 1 else None

class A(HttpUser):
    wait_time = constant(0.01)
    @task
    def a(self):
        self.client.get("/")
"""


def test_fewer_users_than_a_shape_asks_for_are_named(service: Service, tmp_path: Path) -> None:
    code, out, err = _load(tmp_path, SHAPE, service.url, "--users", "2")
    assert code == 0, err
    assert "2 users" in out
    assert "Steps asks for up to 5 users; there are 2 at most" in err
