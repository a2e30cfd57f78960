"""Users that make calls of gRPC."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from programs import finished

import weir

PROTO = Path(__file__).parents[2] / "crates/lab/serve/src/grpc/test.proto"
SERVICE = "weir.test.v1.Test"


@pytest.fixture
def service() -> Iterator[weir.Service]:
    with weir.serve("grpc") as running:
        yield running


def test_several_calls_are_a_scenario(service: weir.Service) -> None:
    seen: list[object] = []

    class Caller(weir.User):
        host = service.url

        @weir.task
        async def shop(self) -> None:
            first = await self.grpc(f"{SERVICE}/Echo", {"text": "ada", "compressed": True}, metadata={"x-a-bin": "q6s"})
            seen.append((first.status, first.ok, first.json()["text"]))
            many = await self.grpc(f"{SERVICE}/List", {"count": 3}, name="list")
            seen.append([message["number"] for message in many.messages])
            both = await self.grpc(f"{SERVICE}/Chat", [{"text": "a"}, {"text": "b"}])
            seen.append([message["text"] for message in both.messages])
            empty = await self.grpc(f"{SERVICE}/Echo")
            empty.check(empty.json()["number"] == "1", "another number")

    run = weir.load(Caller, connections=1, requests=10)
    assert run.requests.ok == 40
    assert run.status == {"OK": 40}
    assert seen[:3] == [("OK", True, "ada"), ["1", "2", "3"], ["a", "b"]]
    assert {step.name: step.ok for step in run.steps} == {
        f"{SERVICE}/Echo": 20,
        "list": 10,
        f"{SERVICE}/Chat": 10,
    }
    assert run.target.url.startswith("grpc://")


def test_a_status_is_a_failure_by_its_name(service: weir.Service) -> None:
    found: list[object] = []

    class Caller(weir.User):
        host = service.url
        proto = PROTO
        proto_path = PROTO.parent

        @weir.task
        async def fail(self) -> None:
            gone = await self.grpc(f"{SERVICE}/Echo", {"status": {"code": 14, "message": "gone ☺"}})
            found.append((gone.status, gone.ok, gone.message, gone.messages))
            late = await self.grpc(f"{SERVICE}/Echo", {"status": {"code": 5}})
            late.success()

    run = weir.load(Caller, connections=1, requests=5)
    assert (run.status, run.failures) == ({"UNAVAILABLE": 5, "NOT_FOUND": 5}, {"UNAVAILABLE": 5})
    assert found[0] == ("UNAVAILABLE", False, "gone ☺", [])


def test_mistakes_are_exceptions_of_the_task(service: weir.Service, capfd: pytest.CaptureFixture[str]) -> None:
    class Caller(weir.User):
        host = service.url

        @weir.task
        async def wrong(self) -> None:
            with pytest.raises(weir.UsageError, match="unrecognized field name 'txt', at line 1"):
                await self.grpc(f"{SERVICE}/Echo", {"txt": 1})
            with pytest.raises(weir.UsageError, match="did you mean 'Echo'"):
                await self.grpc(f"{SERVICE}/Ecko")
            await self.grpc(f"{SERVICE}/Echo")

    class Other(weir.User):
        host = "http://127.0.0.1:1"

        @weir.task
        async def call(self) -> None:
            await self.grpc(f"{SERVICE}/Echo")

    assert weir.load(Caller, connections=1, requests=2).requests.ok == 2
    with pytest.raises(weir.UsageError, match="hosts of gRPC and of HTTP"):
        weir.load([Caller, Other], connections=2, requests=2)


def test_a_body_of_a_call_may_be_a_dict(service: weir.Service) -> None:
    run = weir.load(f"{service.url}/{SERVICE}/Echo", body={"text": "a"}, requests=4, connections=1)
    assert run.status == {"OK": 4}
    with pytest.raises(TypeError, match="json= takes an object"):
        weir.load("http://127.0.0.1:1/", body={"text": "a"}, requests=1)


def test_a_file_of_users_is_run_and_loaded(service: weir.Service, tmp_path: Path) -> None:
    file = tmp_path / "calls.py"
    file.write_text(
        "import weir\n\n\nclass Caller(weir.User):\n    @weir.task\n    async def echo(self):\n"
        f'        r = await self.grpc("{SERVICE}/Echo", {{"text": "a"}})\n        r.check(r.json()["text"] == "a")\n'
    )
    command = (sys.executable, "-m", "weir")
    done = finished(*command, "run", str(file), service.url)
    assert done.returncode == 0, done
    assert f"{SERVICE}/Echo" in done.stdout
    done = finished(*command, "load", "-s", str(file), service.url, "-n", "6", "-c", "2")
    assert done.returncode == 0, done
    assert "status       OK " in done.stdout
    done = finished(
        *command, "load", "-s", str(file), service.url, "-n", "6", "-c", "2", "--on", "local", "--agents", "2"
    )
    assert done.returncode == 0, done


def test_messages_are_compressed_as_the_call_the_class_or_the_command_says(service: weir.Service) -> None:
    text = "again and " * 2000

    class Plain(weir.User):
        host = service.url
        metadata: ClassVar[dict[str, str]] = {}

        @weir.task
        async def echo(self) -> None:
            r = await self.grpc(f"{SERVICE}/Echo", {"text": text}, metadata=self.metadata)
            r.check(r.json()["text"] == text)

    class OfCall(Plain):
        metadata: ClassVar[dict[str, str]] = {"Grpc-Encoding": "gzip"}

    class OfClass(Plain):
        headers = {"grpc-encoding": "gzip"}  # noqa: RUF012

    class Exempt(OfClass):
        metadata: ClassVar[dict[str, str]] = {"grpc-encoding": "identity"}

    def written(kind: type[weir.User], **options: Any) -> int:
        run = weir.load(kind, connections=1, requests=4, **options)
        assert run.status == {"OK": 4}
        return run.bytes.written

    whole, short = 4 * len(text), 4 * 1000
    assert written(Plain) > whole
    assert written(Exempt) > whole
    assert written(OfCall) < short
    assert written(OfClass) < short
    assert written(Plain, headers={"grpc-encoding": "gzip"}) < short


def test_metadata_that_no_call_may_have_is_one_line(service: weir.Service) -> None:
    class Caller(weir.User):
        host = service.url

        @weir.task
        async def wrong(self) -> None:
            for metadata, why in (
                ({"grpc-encoding": "br"}, "unknown grpc-encoding 'br'; choose gzip or identity"),
                ({"grpc-timeout": "1S"}, "set by gRPC itself"),
                ({"x-bin": "?"}, "write the bytes as Base64"),
            ):
                with pytest.raises(weir.UsageError, match=why):
                    await self.grpc(f"{SERVICE}/Echo", metadata=metadata)
            await self.grpc(f"{SERVICE}/Echo")

    class Unknown(Caller):
        headers = {"grpc-encoding": "br"}  # noqa: RUF012

    assert weir.load(Caller, connections=1, requests=2).requests.ok == 2
    with pytest.raises(weir.UsageError, match="unknown grpc-encoding 'br'"):
        weir.load(Unknown, connections=1, requests=2)
