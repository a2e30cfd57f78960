"""`weir.start_load`: a load that goes on beside the program, which changes it."""

import inspect

import pytest
from conftest import Service

import weir


def started(service: Service, **options: object) -> weir.StartedLoad:
    return weir.start_load(service.url, **{"rate": 50, "duration": "60s", **options})  # type: ignore[arg-type]


def test_a_load_is_changed_paused_and_stopped_and_its_stages_repeat_it(service: Service) -> None:
    load = started(service, slo="p99<30s")
    assert load.is_running
    first = load.set_rate(200)
    paused = load.pause()
    resumed = load.resume()
    assert service.asked.wait(30)
    end = load.stop()
    assert 0 < first <= paused <= resumed <= end
    run = load.result()
    assert not load.is_running
    assert load.result().requests.total == run.requests.total
    assert run.changes is not None
    assert [made.kind for made in run.changes.made] == ["rate", "pause", "resume", "stop"]
    assert run.slo[0].ok
    assert run.manifest.command[0] == "weir.start_load"
    again = weir.load(service.url, stages=run.changes.stages)
    assert again.requests.total == run.requests.total == pytest.approx(len(service.seen) / 2)


def test_users_of_a_closed_loop_are_changed(service: Service) -> None:
    load = weir.start_load(service.url, users=1, duration="60s")
    load.set_users(4)
    load.stop()
    run = load.result()
    assert run.changes is not None
    assert [made.kind for made in run.changes.made] == ["users", "stop"]
    assert run.requests.failed == 0


def test_a_block_stops_the_load_at_its_end(service: Service) -> None:
    with started(service) as load:
        load.set_rate(100)
    run = load.result()
    assert not run.interrupted
    assert run.duration_s < 50
    with pytest.raises(ZeroDivisionError), started(service) as load:
        raise ZeroDivisionError
    with pytest.raises(weir.Interrupted):
        load.result()


def test_a_load_ends_by_itself_with_a_result(service: Service) -> None:
    load = weir.start_load(service.url, connections=2, requests=20)
    run = load.result(timeout=60)
    assert run.requests.total == 20
    assert run.changes is None
    with pytest.raises(weir.UsageError, match="the load is over"):
        load.set_rate(5)
    with pytest.raises(weir.UsageError, match="the load is over"):
        load.pause()
    with pytest.raises(weir.UsageError, match="the load is over"):
        load.stop()


def test_what_does_not_go_with_the_load_is_an_error_and_changes_nothing(service: Service) -> None:
    load = started(service)
    with pytest.raises(weir.UsageError):
        load.set_users(3)
    with pytest.raises(weir.UsageError, match="not paused"):
        load.resume()
    for wrong in (-1, float("nan"), float("inf"), "5", None, True):
        with pytest.raises(weir.UsageError, match="set_rate"):
            load.set_rate(wrong)  # type: ignore[arg-type]
    for wrong in (0, -1, 1.5, "5", True, 1 << 70):
        with pytest.raises(weir.UsageError, match="set_users"):
            load.set_users(wrong)  # type: ignore[arg-type]
    with pytest.raises(TimeoutError):
        load.result(timeout=0.05)
    load.stop()
    run = load.result()
    assert run.changes is not None
    assert [made.kind for made in run.changes.made] == ["stop"]


def test_mistakes_are_errors_at_once_and_a_load_that_cannot_start_is_one_of_the_result(service: Service) -> None:
    with pytest.raises(weir.UsageError):
        weir.start_load(service.url, rate=-5)
    with pytest.raises(TypeError):
        weir.start_load(service.url, velocity=5)  # type: ignore[call-arg]
    load = weir.start_load("http://127.0.0.1:1/", requests=5)
    with pytest.raises(weir.SetupError):
        load.result()
    with pytest.raises(weir.UsageError, match="the load is over"):
        load.pause()


def test_agents_are_changed_together(service: Service) -> None:
    load = started(service, on="local", agents=2)
    load.set_rate(100)
    load.stop()
    run = load.result()
    assert len(run.agents) == 2
    assert run.changes is not None
    assert weir.load(service.url, stages=run.changes.stages).requests.total == run.requests.total


def test_classes_of_users_are_rejected_and_the_arguments_are_those_of_load(service: Service) -> None:
    class Shopper(weir.User):
        host = service.url

        @weir.task
        async def look(self) -> None:
            await self.get("/")

    with pytest.raises(weir.UsageError, match="classes of users"):
        weir.start_load(Shopper, users=1, duration=1)
    assert inspect.signature(weir.start_load).parameters == inspect.signature(weir.load).parameters
