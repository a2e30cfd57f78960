"""Streams of `weir.load`: flags, figures, classes of users, objectives."""

from collections.abc import Iterator
from typing import Any

import pytest

import weir


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("stream", events=5, gap="2ms", first_delay="3ms") as running:
        yield running


def test_events_are_in_the_result(service: weir.Service) -> None:
    for stream in (True, "sse"):
        run = weir.load(service.url + "/sse", stream=stream, connections=2, requests=20, slo="first_event.p99<30s")
        assert (run.requests.ok, run.requests.failed, run.slo[0].ok) == (20, 0, True)
        assert run.streams is not None
        assert (run.streams.responses, run.streams.complete, run.streams.events) == (20, 20, 100)
        assert (run.streams.first_event_ms.min or 0) >= 2.9
        assert run.llm is None
        assert "100 total" in str(run)
        assert weir.Run.from_json(run.to_json()) == run


def test_streams_that_break_off_or_stall_are_failures_of_their_own() -> None:
    with weir.serve(
        "stream", events=5, gap="1ms", first_delay="1ms", cut="30%", stall="20%", stall_time="60s"
    ) as service:
        run = weir.load(
            service.url + "/sse",
            stream=True,
            stall_timeout="2s",
            timeout="6s",
            h2c=True,
            streams=4,
            connections=2,
            requests=100,
        )
    assert run.streams is not None
    assert run.failures["broken_off"] == run.streams.broken_off > 10
    assert run.failures["stalled"] == run.streams.stalled > 3


def test_classes_of_users_have_streams(service: weir.Service) -> None:
    class Reader(weir.User):
        host = service.url

        @weir.task
        async def read(self) -> None:
            response = await self.get("/ndjson")
            response.check(response.text.count("\n") == 5)

    run = weir.load(Reader, users=3, requests=12, stream=True)
    assert (run.requests.ok, run.requests.failed) == (12, 0)
    assert run.streams is not None
    assert run.streams.events == 60


def test_a_stream_may_end_after_its_events(service: weir.Service) -> None:
    run = weir.load(service.url + "/sse", stream=True, max_events=2, connections=1, requests=10)
    assert run.streams is not None
    assert (run.requests.ok, run.streams.stopped, run.streams.events) == (10, 10, 20)


def test_without_streams_there_is_nothing_of_them(service: weir.Service) -> None:
    assert weir.load(service.url + "/sse", connections=2, requests=4).streams is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stream": "xml"}, "unknown stream format 'xml'"),
        ({"stream": 5}, "invalid stream"),
        ({"stall_timeout": "1s"}, "stall_timeout needs stream"),
        ({"max_events": 3}, "max_events needs stream"),
        ({"stream": True, "max_events": 0}, "max_events: 0 is out of range"),
        ({"stream": True, "pipeline": 2}, "pipeline and stream cannot be combined"),
    ],
)
def test_what_does_not_go_together_is_an_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(weir.UsageError, match=message):
        weir.load("http://127.0.0.1:1/", requests=1, **arguments)
