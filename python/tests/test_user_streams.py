"""Classes of users in Python that read responses as streams of events."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import weir

EVENTS = 5
GAP_S = 0.05


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("stream", events=EVENTS, gap="50ms", first_delay="50ms", event_name="delta", ids=True) as running:
        yield running


def _play(url: str, do: Any, **options: Any) -> weir.Run:
    kind: Any = type("Reader", (weir.User,), {"do": weir.task(do)})
    return weir.load(kind, host=url, **({"users": 1, "loops": 1} | options))


HTTP: list[dict[str, Any]] = [{}, {"h2c": True}, {"h2c": True, "streams": 4}]


@pytest.mark.parametrize("version", HTTP)
def test_events_reach_a_task_as_they_arrive(service: weir.Service, version: dict[str, Any]) -> None:
    seen: list[tuple[float, Any]] = []

    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/sse", name="events") as r:
            seen.append((time.monotonic(), (r.status, r.headers["content-type"], r.ok, r.method)))
            async for event in r.events():
                seen.append((time.monotonic(), event))
        seen.append((time.monotonic(), "left"))

    run = _play(service.url, do, **version)
    (_, head), *events, (_, left) = seen
    assert (head, left, len(events)) == ((200, "text/event-stream", True, "GET"), "left", EVENTS)
    for number, (_, event) in enumerate(events, 1):
        assert (event.json()["n"], event.id, event.event) == (number, str(number), "delta")
        assert event.content.decode() == event.data
    # Not all of them at the end; a busy machine makes the gaps longer.
    assert events[-1][0] - events[0][0] > GAP_S * 2
    assert (run.requests.ok, run.requests.failed) == (1, 0)
    assert [(step.name, step.requests) for step in run.steps] == [("events", 1)]
    assert run.streams is not None
    assert (run.streams.responses, run.streams.complete, run.streams.events) == (1, 1, EVENTS)
    assert (run.streams.first_event_ms.min or 0) >= 49
    assert (run.streams.gap_ms.mean or 0) >= 20
    assert weir.Run.from_json(run.to_json()) == run


@pytest.mark.parametrize("version", HTTP)
def test_a_task_that_leaves_ends_the_response(service: weir.Service, version: dict[str, Any]) -> None:
    taken: Counter[str] = Counter()

    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/ndjson?events=1000000", name="endless") as r:
            async for event in r.events():
                taken["first"] += event.json()["n"]
                break
        async with self.stream("POST", "/sse?events=1000000", name="endless", json={"a": 1}):
            pass
        async with self.stream("GET", "/sse?events=1000000", name="endless") as r:
            async for _ in r.events():
                taken["waited"] += 1
                await weir.sleep(0.12)
                return
        raise AssertionError

    run = _play(service.url, do, users=2, loops=2, **version)
    assert (run.requests.ok, run.requests.failed) == (12, 0), run.failures
    assert run.iterations is not None
    assert (run.iterations.ok, run.iterations.failed) == (4, 0)
    assert run.streams is not None
    assert run.streams.stopped == 12
    assert taken == {"first": 4, "waited": 4}


@pytest.mark.timed
def test_events_wait_for_a_task_that_sleeps(service: weir.Service) -> None:
    got: list[Any] = []

    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/sse") as r:
            await weir.sleep(GAP_S * EVENTS + 0.3)
            started = time.monotonic()
            got.extend([event.id async for event in r.events()])
            got.append(time.monotonic() - started < GAP_S)
        r.check(False, "as the task says")

    run = _play(service.url, do)
    assert got == [*(str(n) for n in range(1, EVENTS + 1)), True]
    assert (run.requests.ok, run.requests.failed) == (0, 1)
    assert run.steps[0].samples[0].reason == "as the task says"
    assert run.streams is not None
    # The times are those of the service, whatever the task did meanwhile.
    assert 0 < (run.streams.gap_ms.max or 0) < 1000 * GAP_S * EVENTS


@pytest.mark.parametrize("version", HTTP)
def test_streams_that_break_off_raise_in_the_loop(version: dict[str, Any]) -> None:
    got: Counter[str] = Counter()

    async def do(self: weir.User) -> None:
        try:
            async with self.stream("GET", "/sse", name="events") as r:
                async for _ in r.events():
                    got["event"] += 1
                got["whole"] += 1
        except weir.NoResponse as error:
            got["broken_off" if "broken_off" in str(error) else str(error)] += 1

    with weir.serve("stream", events=5, gap="1ms", first_delay="1ms", cut="40%") as service:
        run = _play(service.url, do, users=4, loops=20, **version)
    broken = got["broken_off"]
    assert 10 < broken < 70
    assert (got["whole"], run.failures["broken_off"], run.requests.ok) == (80 - broken, broken, 80 - broken)
    assert run.streams is not None
    assert (run.streams.broken_off, run.streams.complete) == (broken, 80 - broken)


def test_a_response_that_lasts_too_long_is_a_timeout(service: weir.Service) -> None:
    got: list[str] = []

    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/sse?events=1000", timeout=0.4) as r:
            try:
                async for _ in r.events():
                    pass
            except weir.NoResponse as error:
                got.append(str(error))
        await self.get("/stats", name="stats")

    run = _play(service.url, do)
    assert (run.failures, run.requests.ok) == ({"timeout": 1}, 1)
    assert "timeout" in got[0]


def test_errors_redirects_and_refused_connections(service: weir.Service) -> None:
    got: list[Any] = []

    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/nothing", name="nothing") as r:
            got.append((r.status, r.ok, [event async for event in r.events()]))
        try:
            async with self.stream("GET", "http://127.0.0.1:1/sse", name="refused"):
                got.append("entered")
        except weir.NoResponse as error:
            got.append("connect" in str(error))
        async with self.stream("GET", "/sse", name="nested") as r:
            try:
                await self.get("/stats")
            except ValueError as error:
                got.append(str(error))
            got.append(len([event async for event in r.events()]))

    run = _play(service.url, do)
    assert got == [
        (404, False, []),
        True,
        "a request within the block of a stream; leave the block first",
        EVENTS,
    ]
    assert {step.name: (step.ok, step.failed) for step in run.steps} == {
        "nothing": (0, 1),
        "refused": (0, 1),
        "nested": (1, 0),
    }
    assert run.streams is not None
    assert run.streams.responses == 1


def test_other_responses_of_the_load_are_not_streams(service: weir.Service) -> None:
    async def do(self: weir.User) -> None:
        r = await self.get("/ndjson", name="whole")
        r.check(r.text.count("\n") == EVENTS)
        async with self.stream("GET", "/ndjson", name="events") as s:
            r.check(len([event async for event in s.events()]) == EVENTS)

    run = _play(service.url, do, users=3, loops=2)
    assert (run.requests.ok, run.requests.failed) == (12, 0)
    assert run.streams is not None
    assert (run.streams.responses, run.streams.events) == (6, 6 * EVENTS)

    async def plain(self: weir.User) -> None:
        await self.get("/ndjson")

    assert _play(service.url, plain).streams is None
    run = _play(service.url, do, users=1, loops=2, stream=True)
    assert run.streams is not None
    assert (run.streams.responses, run.streams.events) == (4, 4 * EVENTS)


def test_objectives_of_streams_hold_for_scripts(service: weir.Service) -> None:
    async def do(self: weir.User) -> None:
        async with self.stream("GET", "/sse") as r:
            async for _ in r.events():
                pass

    run = _play(service.url, do, users=2, loops=2, slo=["first_event.p99<30s", "gap.p50<1ms"])
    assert [slo.ok for slo in run.slo] == [True, False]


def test_an_exception_in_the_block_and_the_end_of_the_load_leave_it(service: weir.Service) -> None:
    left: list[str] = []

    class Reader(weir.User):
        host = service.url

        @weir.task
        async def read(self) -> None:
            async with self.stream("GET", "/sse?events=1000000", name="endless") as r:
                async for event in r.events():
                    if self.number == 0:
                        raise KeyError(event.id)

        async def on_stop(self) -> None:
            await self.get("/stats", name="end")
            left.append("stopped")

    run = weir.load(Reader, users=2, duration="700ms")
    steps = {step.name: (step.ok, step.failed) for step in run.steps}
    assert steps["end"] == (2, 0)
    assert left == ["stopped", "stopped"]
    assert run.iterations is not None
    assert run.iterations.failed > 2
    assert run.streams is not None
    assert run.streams.stopped == steps["endless"][0] > 2
    assert steps["endless"][1] == 0
    assert run.requests.unfinished == 1


def test_a_block_that_is_entered_by_hand_is_left_with_the_task(service: weir.Service) -> None:
    async def do(self: weir.User) -> None:
        await self.stream("GET", "/sse?events=1000000", name="endless").__aenter__()

    run = _play(service.url, do, users=1, loops=3)
    assert (run.requests.ok, run.requests.failed) == (3, 0)
    assert run.streams is not None
    assert run.streams.stopped == 3
