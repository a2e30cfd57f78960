"""HTTP/2 of `weir.load`: flags, figures, users that share connections, agents."""

from collections.abc import Iterator
from typing import Any

import pytest
from http2_service import resetting_service

import weir


@pytest.fixture
def url() -> Iterator[str]:
    with weir.serve("httpbin") as service:
        yield f"{service.url}/status/200"


def test_streams_are_in_the_result(url: str) -> None:
    run = weir.load(url, h2c=True, streams=4, connections=2, requests=200)
    assert (run.requests.ok, run.requests.failed, run.target.http) == (200, 0, "HTTP/2")
    assert run.http2 is not None
    assert (run.http2.streams, run.http2.permitted_streams, run.http2.errors) == (4, 250, {})
    assert run.connections.opened == 2
    assert "HTTP/2, 4 streams each" in str(run)
    assert weir.Run.from_json(run.to_json()) == run


def test_resets_are_counted_by_code() -> None:
    with resetting_service() as url:
        run = weir.load(url, h2c=True, streams=4, connections=2, requests=200)
    assert run.http2 is not None
    assert run.http2.errors["INTERNAL_ERROR"] == run.failures["reset"] == run.requests.failed > 50


def test_classes_of_users_share_connections(url: str) -> None:
    class Visitor(weir.User):
        host = url.removesuffix("/status/200")

        @weir.task
        async def look(self) -> None:
            response = await self.get("/status/204")
            response.check(response.status == 204)

    run = weir.load(Visitor, users=12, requests=120, h2c=True, streams=6)
    assert (run.requests.ok, run.requests.failed) == (120, 0)
    assert run.connections.opened <= 4


def test_agents_have_the_streams_of_their_part(url: str) -> None:
    run = weir.load(url, h2c=True, streams=5, connections=4, requests=400, on="local", agents=2)
    assert (run.requests.ok, run.requests.failed, run.connections.opened) == (400, 0, 4)
    assert run.http2 is not None
    assert run.http2.permitted_streams == 250


def test_without_http2_there_is_nothing_of_it(url: str) -> None:
    run = weir.load(url, connections=2, requests=20)
    assert (run.http2, run.target.http) == (None, "HTTP/1.1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"http2": "maybe", "h2c": True}, "invalid http2"),
        ({"http2": True}, "http2 needs an https:// URL"),
        ({"streams": 3}, "streams needs HTTP/2"),
        ({"h2c": True, "pipeline": 2}, "HTTP/2 has streams"),
    ],
)
def test_what_does_not_go_together_is_an_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(weir.UsageError, match=message):
        weir.load("http://127.0.0.1:1/", requests=1, **arguments)
