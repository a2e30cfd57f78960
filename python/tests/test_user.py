"""Classes of users in Python: what they send, and what the result says of it."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import Service

import weir


def _steps(run: weir.Run) -> dict[str, int]:
    return {step.name: step.requests for step in run.steps}


def test_tasks_are_iterations_and_their_requests_steps(service: Service) -> None:
    class Shopper(weir.User):
        async def on_start(self) -> None:
            await self.post("/login", json={"name": "ada"})

        @weir.task
        async def browse(self) -> None:
            await self.get("/items", name="items")
            await self.get("/items?id=1")

    run = weir.load(Shopper, host=service.url, users=2, loops=5)
    assert (run.requests.total, run.requests.ok, run.iterations and run.iterations.total) == (22, 22, 10)
    assert _steps(run) == {"POST /login": 2, "items": 10, "GET /items?id=1": 10}
    seen = Counter((one.method, one.path) for one in service.seen)
    assert seen == {("POST", "/login"): 2, ("GET", "/items"): 10, ("GET", "/items?id=1"): 10}
    login = next(one for one in service.seen if one.method == "POST")
    assert json.loads(login.body) == {"name": "ada"}
    assert login.headers["Content-Type"] == "application/json"
    assert {step.scenario for step in run.steps} == {"Shopper"}


def test_a_task_that_sends_nothing_does_not_delay_its_user(service: Service) -> None:
    class Idle(weir.User):
        @weir.task
        async def compute(self) -> None:
            pass

        @weir.task
        async def fetch(self) -> None:
            await self.get("/")

    # With the pause after a failed connection the tasks without a request would take some hundred seconds.
    run = weir.load(Idle, host=service.url, users=1, loops=2000)
    assert run.iterations is not None
    assert (run.iterations.total, run.iterations.ok) == (2000, 2000)
    assert 500 < run.requests.total < 1500
    assert run.duration_s < 50


def test_tasks_are_chosen_by_weight_and_the_seed_repeats_them(service: Service) -> None:
    class Chooser(weir.User):
        @weir.task(3)
        async def often(self) -> None:
            await self.get("/often")

        @weir.task
        async def seldom(self) -> None:
            await self.get(f"/seldom/{self.number}/{self.random.randint(1, 1000)}", name="seldom")

    def played(seed: int) -> Counter[str]:
        service.seen.clear()
        weir.load(Chooser, host=service.url, users=2, loops=100, seed=seed)
        return Counter(one.path for one in service.seen)

    first = played(1)
    assert 120 <= first["/often"] <= 180
    assert played(1) == first
    assert played(2) != first


def test_classes_have_weights_and_fixed_counts(service: Service) -> None:
    class Reader(weir.User):
        weight = 3

        @weir.task
        async def read(self) -> None:
            await self.get("/read")

    class Writer(weir.User):
        @weir.task
        async def write(self) -> None:
            await self.post("/write", data="x")

    class Admin(weir.User):
        fixed_count = 1

        @weir.task
        async def look(self) -> None:
            await self.get("/admin")

    run = weir.load([Reader, Writer, Admin], host=service.url, users=9, loops=1)
    assert _steps(run) == {"GET /admin": 1, "GET /read": 6, "POST /write": 2}
    assert {scenario.name for scenario in run.scenarios} == {"Reader", "Writer", "Admin"}


def test_failures_have_their_texts_and_users_go_on(service: Service) -> None:
    class Failing(weir.User):
        @weir.task
        async def fail(self) -> None:
            r = await self.get("/a")
            r.check(r.text == "other", "not other")
            r = await self.get("/status?code=404", name="missing")
            assert r.status == 404
            r.success()
            with pytest.raises(weir.NoResponse, match="closed"):
                await self.get("/close")
            r = await self.get("/close", catch=True)
            assert (r.status, r.ok) == (0, False)

    run = weir.load(Failing, host=service.url, users=1, loops=3)
    assert _steps(run) == {"GET /a": 3, "missing": 3, "GET /close": 6}
    failed = {step.name: step.failed for step in run.steps}
    assert failed == {"GET /a": 3, "missing": 0, "GET /close": 6}
    assert run.iterations is not None
    assert (run.iterations.total, run.iterations.ok) == (3, 0)
    assert any("not other" in sample.reason for step in run.steps for sample in step.samples)


def test_a_decision_after_another_request_counts_at_its_own(service: Service) -> None:
    class Late(weir.User):
        @weir.task
        async def decide(self) -> None:
            first = await self.get("/first")
            r = await self.get("/a")
            r = await self.get("/status?code=404", name="missing")
            await weir.sleep(0.001)
            first.check(r.status == 200, "late")
            r.success()
            r = await self.get("/status?code=404", name="lost")
            r = await self.get("/b")
            await self.get("/c")

    run = weir.load(Late, host=service.url, users=2, loops=5)
    steps = {step.name: (step.requests, step.failed) for step in run.steps}
    assert steps == {
        "GET /first": (10, 10),
        "GET /a": (10, 0),
        "missing": (10, 0),
        "lost": (10, 10),
        "GET /b": (10, 0),
        "GET /c": (10, 0),
    }
    assert [sample.reason for step in run.steps for sample in step.samples][:1] == ["late"]
    assert sum(run.failures.values()) == run.requests.failed == 20
    assert run.iterations is not None
    assert run.iterations.ok == 0
    assert len(service.seen) == run.requests.total == 60


def test_exceptions_fail_the_task_and_are_printed_once(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(weir.User):
        @weir.task
        async def browse(self) -> None:
            await self.get("/")
            raise KeyError("token")

    run = weir.load(Broken, host=service.url, users=1, loops=3)
    assert run.iterations is not None
    assert (run.requests.ok, run.iterations.ok, run.iterations.total) == (3, 0, 3)
    error = capfd.readouterr().err
    assert "Broken.browse raised an exception 3 times" in error
    assert Path(__file__).name in error
    assert "_user_factory" not in error


def test_a_foreign_awaitable_names_the_remedy(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    import asyncio  # noqa: PLC0415

    class Foreign(weir.User):
        @weir.task
        async def wait(self) -> None:
            await self.get("/")
            await asyncio.sleep(1)

    weir.load(Foreign, host=service.url, users=1, loops=1)
    assert "weir.sleep()" in capfd.readouterr().err


def test_an_open_loop_starts_tasks_at_its_rate_without_think_time(service: Service) -> None:
    class Thinker(weir.User):
        think = 60

        @weir.task
        async def browse(self) -> None:
            await self.get("/")

    run = weir.load(Thinker, host=service.url, rate=100, duration=0.5)
    # On a slow machine the end of the run cuts off the last ones.
    assert run.iterations is not None
    assert (run.model, run.iterations.total + run.iterations.unfinished) == ("open", 50)
    assert run.requests.total <= len(service.seen) <= 50


def test_think_time_is_between_tasks_and_in_none_of_them(service: Service) -> None:
    class Thinker(weir.User):
        think = "4s"

        @weir.task
        async def browse(self) -> None:
            await self.get("/")

    run = weir.load(Thinker, host=service.url, users=1, loops=2)
    assert run.duration_s >= 4
    assert run.iterations is not None
    assert (run.iterations.time_ms.max or 4000) < 4000


@pytest.mark.parametrize("think", ["3s..1s", "soon", -1])
def test_an_invalid_think_is_an_error(think: object, service: Service) -> None:
    members: dict[str, Any] = {"think": think, "browse": weir.task(lambda self: self.get("/"))}
    kind: Any = type("Wrong", (weir.User,), members)
    with pytest.raises(weir.UsageError, match="think"):
        weir.load(kind, host=service.url, users=1, loops=1)


def test_arguments_that_do_not_fit(service: Service) -> None:
    class Empty(weir.User):
        pass

    class Homeless(weir.User):
        @weir.task
        async def browse(self) -> None:
            await self.get("/")

    with pytest.raises(weir.UsageError, match="no task"):
        weir.load(Empty, host=service.url, users=1, loops=1)
    with pytest.raises(weir.UsageError, match="host"):
        weir.load(Homeless, users=1, loops=1)
    with pytest.raises(weir.UsageError, match="thread"):
        weir.load(Homeless, host=service.url, users=1, loops=1, threads=2)
    with pytest.raises(weir.UsageError, match="write the URL"):
        weir.load(service.url, host=service.url)


def test_requests_have_the_parts_that_were_asked_for(service: Service) -> None:
    class Asker(weir.User):
        headers = {"X-Class": "c"}  # noqa: RUF012

        @weir.task
        async def ask(self) -> None:
            await self.get("/q", params={"a": [1, 2], "b": "x y"}, headers={"X-One": "1"}, cookies={"c": "d"})
            await self.put("/form", data={"a": 1, "b": "ü"}, auth=("ada", "secret"))
            await self.post("/files", files={"file": ("a.txt", b"content", "text/plain")}, data={"n": 1})
            await self.delete("/nothing")

    weir.load(Asker, host=service.url + "/base/", users=1, loops=1, headers={"X-Line": "l"})
    query, form, files, nothing = service.seen
    assert query.path == "/base/q?a=1&a=2&b=x+y"
    assert [query.headers[name] for name in ("X-Class", "X-One", "X-Line", "Cookie")] == ["c", "1", "l", "c=d"]
    assert (form.body, form.headers["Content-Type"]) == (b"a=1&b=%C3%BC", "application/x-www-form-urlencoded")
    assert form.headers["Authorization"] == "Basic YWRhOnNlY3JldA=="
    assert b'name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\ncontent' in files.body
    assert (nothing.method, nothing.body, nothing.headers["Content-Length"]) == ("DELETE", b"", None)


def test_user_choices_do_not_depend_on_the_global_ones() -> None:
    from weir._task import user_random  # noqa: PLC0415

    random.seed(1)
    first = user_random(5, 0).random()
    random.seed(2)
    assert (user_random(5, 0).random(), user_random(5, 1).random() != first) == (first, True)
