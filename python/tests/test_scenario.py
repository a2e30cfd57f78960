"""`weir.Scenario` and templates of a single request: what a service sees."""

import json
from collections import Counter
from pathlib import Path

import pytest
from conftest import Service

import weir
from weir import Scenario, Step


def _paths(service: Service) -> list[str]:
    return [request.path for request in service.seen]


def test_an_iteration_is_all_steps_and_captures_travel_to_later_ones(service: Service) -> None:
    shop = Scenario(
        [
            Step.post(
                "/login", name="login", json={"user": "{{user}}"}, capture={"word": "body", "length": "bytes count"}
            ),
            Step.get("/items?of={{word}}", headers={"X-Length": "{{length}}"}, status=200, check='body == "hello"'),
        ],
        data=[{"user": "ada"}, {"user": "bob"}],
    )
    run = weir.load(service.url, scenario=shop, connections=1, requests=4)
    assert _paths(service) == ["/login", "/items?of=hello"] * 4
    assert [json.loads(request.body) for request in service.seen[::2]] == [{"user": "ada"}, {"user": "bob"}] * 2
    assert {request.headers["X-Length"] for request in service.seen[1::2]} == {"5"}
    assert (run.requests.total, run.requests.ok) == (8, 8)


def test_every_part_of_a_step_arrives_as_it_was_given(service: Service) -> None:
    text = 'tick ` back\\slash "quote" #hash\t\u0442\u0435\u0441\u0442\n'
    steps = [
        Step.put("/a b", headers={"X-Value": " # kept \\ as it is"}, query={"a b": "c&d=#"}, body=text),
        Step.post("/form", form={"k 1": "v&2"}, cookies={"c": "1"}, auth=("ada", "pass:word")),
        Step(method="PATCH", url="/bytes", body=bytes(range(256))),
        Step.delete("/items/7", options={"delay": "1ms"}),
    ]
    weir.load(service.url, scenario=Scenario(steps), connections=1, requests=1)
    put, form, raw, delete = service.seen
    assert (put.path, put.body.decode()) == ("/a%20b?a%20b=c%26d%3D%23", text)
    assert put.headers["X-Value"] == "# kept \\ as it is"
    assert form.body in {b"k%201=v%262", b"k+1=v%262"}
    assert (form.headers["Cookie"], form.headers["Authorization"]) == ("c=1", "Basic YWRhOnBhc3M6d29yZA==")
    assert raw.body == bytes(range(256))
    assert (delete.method, delete.path) == ("DELETE", "/items/7")


def test_a_failed_check_is_a_failed_request_and_ends_the_iteration(service: Service) -> None:
    wrong = Scenario([Step.get("/1", check='body contains "bye"'), Step.get("/2")])
    run = weir.load(service.url, scenario=wrong, connections=1, requests=3)
    assert _paths(service) == ["/1"] * 3
    assert (run.requests.ok, run.requests.failed) == (0, 3)
    assert dict(run.failures) == {"check": 3}


def test_scenarios_are_chosen_by_weight_and_repeatable_by_seed(service: Service) -> None:
    mix = [Scenario([Step.get("/often")], weight=3, name="often"), Scenario([Step.get("/rare")], name="rare")]

    def counts() -> Counter[str]:
        service.seen.clear()
        weir.load(service.url, scenario=mix, connections=1, requests=40, seed=7)
        return Counter(_paths(service))

    first = counts()
    assert first == counts()
    assert first["/often"] > first["/rare"] > 0


def test_a_file_has_the_same_settings_as_steps(service: Service, tmp_path: Path) -> None:
    (tmp_path / "shop.hurl").write_text("# @name list\nGET /items/{{id}}\nHTTP 200\n")
    (tmp_path / "ids.csv").write_text("id\n1\n2\n3\n")
    shop = Scenario.read(tmp_path / "shop.hurl", data=tmp_path / "ids.csv", data_order="unique")
    weir.load(service.url, scenario=shop, connections=2)
    assert sorted(_paths(service)) == ["/items/1", "/items/2", "/items/3"]


def test_a_setup_is_played_once_and_its_captures_are_for_all(service: Service) -> None:
    login = Scenario([Step.post("/login", capture={"word": "body"})], name="login")
    logout = Scenario([Step.post("/logout")], name="logout")
    shop = Scenario([Step.get("/items/{{word}}")], setup=login, teardown=logout)
    weir.load(service.url, scenario=shop, connections=2, requests=6)
    assert _paths(service) == ["/login", *["/items/hello"] * 6, "/logout"]


def test_a_single_request_has_templates_data_and_checks(service: Service) -> None:
    run = weir.load(
        service.url + "/items/{{id}}?n={{seq}}",
        data=[{"id": 1}, {"id": 2}],
        variables={"word": "hello"},
        check=["status == 200", 'body == "{{word}}"'],
        connections=1,
        requests=4,
    )
    assert _paths(service) == ["/items/1?n=0", "/items/2?n=1", "/items/1?n=2", "/items/2?n=3"]
    assert run.requests.ok == 4
    failed = weir.load(service.url, success="status == 201", connections=1, requests=2)
    assert failed.requests.failed == 2


def test_braces_are_text_where_templates_are_off(service: Service) -> None:
    weir.load(service.url, body="{{x}}", template=False, connections=1, requests=1)
    assert service.seen[0].body == b"{{x}}"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scenario([]), "a scenario needs steps"),
        (lambda: Step(method="get it", url="/"), "invalid method 'get it'"),
        (lambda: Step.post("/", json={"a": 1}, body="x"), "json and body cannot be combined"),
        (lambda: Step.get("/\n"), "invalid line break"),
        (lambda: Step.get("/", capture={"a b": "$.x"}), "invalid name of a variable 'a b'"),
        (lambda: Scenario.read("missing.hurl"), "cannot read the scenario 'missing.hurl'"),
        (lambda: Scenario([Step.get("/")], data="missing.csv"), "cannot read the data 'missing.csv'"),
        (
            lambda: weir.load("http://127.0.0.1:1", scenario=Scenario([Step.get("/{{x}}")])),
            "a variable that is defined",
        ),
        (lambda: weir.load("http://127.0.0.1:1", scenario=Scenario([Step.get("/")], think="soon")), "think"),
        (lambda: weir.load("http://127.0.0.1:1", scenario="a.js"), r"write weir\.Scenario"),  # type: ignore[arg-type]
        (lambda: weir.load("http://127.0.0.1:1", scenario=[Path("a.hurl")]), r"write weir\.Scenario"),  # type: ignore[list-item]
        (
            lambda: weir.load("http://127.0.0.1:1", data=[{"a": "1"}], data_order="odd"),  # type: ignore[arg-type]
            "data_order",
        ),
    ],
)
def test_mistakes_are_found_before_anything_is_sent(make: object, message: str) -> None:
    with pytest.raises(weir.UsageError, match=message):
        make()  # type: ignore[operator]
