"""Calls of gRPC by `weir.load`: messages, statuses by name, schemas from files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from naming import ROOT

import weir

PROTO = ROOT / "crates/lab/serve/src/grpc/test.proto"


@pytest.fixture
def url() -> Iterator[str]:
    with weir.serve("grpc") as service:
        yield service.url + "/weir.test.v1.Test"


def test_statuses_are_names(url: str) -> None:
    denied = {"status": {"code": 7, "message": "not yours"}}
    run = weir.load(f"{url}/Echo", json=denied, connections=2, requests=20)
    assert (run.status, run.failures) == ({"PERMISSION_DENIED": 20}, {"PERMISSION_DENIED": 20})
    assert run.target.failure_details == {"PERMISSION_DENIED": "not yours"}
    assert weir.Run.from_json(run.to_json()) == run
    run = weir.load(f"{url}/Echo", json={"text": "a"}, headers={"x-trace": "7"}, requests=20, connections=2)
    assert (run.requests.ok, run.status, run.target.url) == (20, {"OK": 20}, f"{url}/Echo")
    assert run.status.get(200) is None


def test_checks_and_data_are_on_json(url: str) -> None:
    run = weir.load(
        f"{url}/Echo",
        body='{"text": "{{name}}"}',
        data=[{"name": "ana"}, {"name": "bob"}],
        check='jsonpath "$.text" == "{{name}}"',
        users=2,
        requests=20,
    )
    assert (run.requests.ok, run.steps[0].status) == (20, {"OK": 20})


def test_messages_of_a_stream_are_events(url: str) -> None:
    run = weir.load(f"{url}/List", json={"count": 4}, connections=2, requests=10)
    assert run.streams is not None
    assert (run.requests.ok, run.streams.events) == (10, 40)


def test_a_schema_is_from_files(tmp_path: Path) -> None:
    with weir.serve("grpc", no_reflection=True) as service:
        url = service.url + "/weir.test.v1.Test/Echo"
        with pytest.raises(weir.UsageError, match="no reflection"):
            weir.load(url, requests=1)
        (tmp_path / "test.proto").write_text(PROTO.read_text("utf-8"))
        run = weir.load(url, proto="test.proto", proto_path=[tmp_path], requests=4, connections=1)
        assert run.status == {"OK": 4}
        with pytest.raises(weir.UsageError, match=r"body: not a weir\.test\.v1\.EchoRequest: .* line 1 column"):
            weir.load(url, proto=tmp_path / "test.proto", body='{"txt": 1}', requests=1)
        assert service.stats()["status"] == {"OK": 4, "UNIMPLEMENTED": 2}
