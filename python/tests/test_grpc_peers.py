"""gRPC with grpcio on the other side: as the server of `weir load`, and as the client of `weir serve grpc`."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from grpc_messages import MESSAGES

import weir

pytestmark = pytest.mark.wide

grpc = pytest.importorskip("grpc")
protoc = pytest.importorskip("grpc_tools.protoc")
reflection = pytest.importorskip("grpc_reflection.v1alpha.reflection")
database = pytest.importorskip("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
any_pb2 = pytest.importorskip("google.protobuf.any_pb2")
descriptor_pool = pytest.importorskip("google.protobuf.descriptor_pool")
duration_pb2 = pytest.importorskip("google.protobuf.duration_pb2")
json_format = pytest.importorskip("google.protobuf.json_format")

PROTO = Path(__file__).parents[2] / "crates/lab/serve/src/grpc/test.proto"


class Peer:
    """Modules that protoc makes, and a server of grpcio that does what `weir serve grpc` does in part."""

    def __init__(self, folder: Path) -> None:
        """Make the modules in a folder."""
        (folder / "weirtest").mkdir()
        (folder / "weirtest/test.proto").write_text(PROTO.read_text())
        arguments = ["protoc", f"-I{folder}", f"-I{Path(protoc.__file__).parent}/_proto"]
        outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
        assert protoc.main([*arguments, *outputs, str(folder / "weirtest/test.proto")]) == 0
        sys.path.insert(0, str(folder))
        self.pb: Any = importlib.import_module("weirtest.test_pb2")
        self.rpc: Any = importlib.import_module("weirtest.test_pb2_grpc")
        sys.path.remove(str(folder))
        self.calls: list[tuple[dict[str, Any], float]] = []

    def serve(self, *, has_reflection: bool = True) -> Any:
        """Start a server; return it and the URL of its service."""
        pb = self.pb
        calls = self.calls

        def echo(_: object, request: Any, context: Any) -> Any:
            calls.append((dict(context.invocation_metadata()), context.time_remaining()))
            context.set_trailing_metadata((("x-note-bin", b"\xab\xcd"),))
            if request.compressed:
                context.set_compression(grpc.Compression.Gzip)
            if request.status.code:
                context.abort(list(grpc.StatusCode)[request.status.code], request.status.message)
            return pb.EchoReply(text=request.text, payload=request.payload, number=1)

        def numbers(_: object, request: Any, context: Any) -> Any:
            for number in range(1, request.count + 1):
                yield pb.EchoReply(number=number)
            if request.echo.status.code:
                context.abort(list(grpc.StatusCode)[request.echo.status.code], request.echo.status.message)

        def collect(_: object, requests: Any, context: Any) -> Any:
            texts = [request.text for request in requests]
            return pb.CollectReply(messages=len(texts), last_text=texts[-1] if texts else "")

        def chat(_: object, requests: Any, context: Any) -> Any:
            for number, request in enumerate(requests, 1):
                yield pb.EchoReply(text=request.text, number=number)

        def mirror(_: object, request: Any, context: Any) -> Any:
            return request

        methods = {"Echo": echo, "List": numbers, "Collect": collect, "Chat": chat, "Mirror": mirror}
        servicer = type("Servicer", (self.rpc.TestServicer,), methods)()
        server = grpc.server(ThreadPoolExecutor(4))
        self.rpc.add_TestServicer_to_server(servicer, server)
        if has_reflection:
            names = ("weir.test.v1.Test", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return server, f"grpc://127.0.0.1:{port}/weir.test.v1.Test"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Peer:
    return Peer(tmp_path_factory.mktemp("peer"))


@pytest.fixture
def url(peer: Peer) -> Iterator[str]:
    server, url = peer.serve()
    yield url
    server.stop(None).wait()


def played(url: str, body: object, *flags: str) -> dict[str, Any]:
    """The one request of `weir run URL -b BODY`."""
    command = [sys.executable, "-m", "weir", "run", url, "-b", "@-", "--json", "-v", *flags]
    text = json.dumps(body)
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done
    request: dict[str, Any] = json.loads(done.stdout)["steps"][0]["requests"][0]
    return request


def replies(request: dict[str, Any]) -> list[Any]:
    return [json.loads(line) for line in request["response"].get("body", "").split("\n") if line]


def same(left: object, right: object) -> bool:
    """Whether values of JSON are equal, with -0.0 and 0.0 as two numbers."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: "-".join(message) or "empty")
def test_json_is_that_of_protobuf(url: str, peer: Peer, message: dict[str, Any]) -> None:
    parsed = json_format.ParseDict(message, peer.pb.Everything())
    [reply] = replies(played(f"{url}/Mirror", message))
    assert same(reply, json_format.MessageToDict(parsed)), reply
    assert json_format.ParseDict(reply, peer.pb.Everything()) == parsed


def test_calls_of_all_kinds(url: str) -> None:
    many = [{"text": str(number)} for number in range(50)]
    assert replies(played(f"{url}/Echo", {"text": "a"})) == [{"text": "a", "number": "1"}]
    assert replies(played(f"{url}/Echo", {"payload": "AA" * 200_000})) == [{"payload": "AA" * 200_000, "number": "1"}]
    assert replies(played(f"{url}/List", {"count": 3})) == [{"number": "1"}, {"number": "2"}, {"number": "3"}]
    assert replies(played(f"{url}/List", {})) == []
    assert replies(played(f"{url}/Collect", many)) == [{"messages": "50", "lastText": "49"}]
    assert len(replies(played(f"{url}/Chat", many))) == 50
    assert replies(played(f"{url}/Chat", [])) == []
    for method, body in (("Echo", {"compressed": True, "text": "a" * 3000}), ("List", {"count": 40})):
        run = weir.load(f"{url}/{method}", json=body, connections=2, requests=60)
        assert (run.requests.ok, run.status) == (60, {"OK": 60})


def test_statuses_and_messages_come_over(url: str) -> None:
    special = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
    for code in range(1, 17):
        run = weir.load(f"{url}/Echo", json={"status": {"code": code, "message": special}}, requests=3, connections=1)
        [name] = run.failures
        assert (run.failures, run.status) == ({name: 3}, {name: 3})
        assert name == list(grpc.StatusCode)[code].name
        assert run.target.failure_details[name].split() == special.split()
    late = {"count": 3, "echo": {"status": {"code": 14, "message": "gone"}}}
    run = weir.load(f"{url}/List", json=late, requests=4, connections=1)
    assert run.failures == {"UNAVAILABLE": 4}
    assert run.streams is not None
    assert run.streams.events == 12


def test_metadata_and_deadline_arrive(url: str, peer: Peer) -> None:
    flags = ["-H", "x-trace: t7", "-H", "x-a-bin: q80=", "-H", "grpc-encoding: gzip", "--timeout", "9s"]
    request = played(f"{url}/Echo", {"text": "a" * 500}, *flags)
    assert replies(request) == [{"text": "a" * 500, "number": "1"}]
    assert ["x-note-bin", "q80"] in [[name, value.rstrip("=")] for name, value in request["response"]["headers"]]
    metadata, left = peer.calls[-1]
    assert (metadata["x-trace"], metadata["x-a-bin"], metadata["user-agent"]) == ("t7", b"\xab\xcd", "weir/0.1.0")
    assert 5 < left <= 9


def test_an_unknown_method_and_a_server_without_reflection(peer: Peer, tmp_path: Path) -> None:
    server, url = peer.serve(has_reflection=False)
    try:
        with pytest.raises(weir.UsageError, match="has no reflection; give the schema by proto FILE"):
            weir.load(f"{url}/Echo", requests=1)
        proto = tmp_path / "test.proto"
        proto.write_text(
            PROTO.read_text().replace("rpc Echo(", "rpc Nothing(EchoRequest) returns (EchoReply);\n  rpc Echo(")
        )
        run = weir.load(f"{url}/Echo", proto=proto, proto_path=tmp_path, requests=4, connections=1)
        assert run.status == {"OK": 4}
        run = weir.load(f"{url}/Nothing", proto=proto, proto_path=tmp_path, requests=4, connections=1)
        assert run.failures == {"UNIMPLEMENTED": 4}
    finally:
        server.stop(None).wait()


def test_grpcio_understands_the_test_server(peer: Peer) -> None:
    pb, code = peer.pb, grpc.StatusCode
    with weir.serve("grpc") as service, grpc.insecure_channel(service.url.removeprefix("grpc://")) as channel:
        test = peer.rpc.TestStub(channel)
        metadata = [("x-echo-a", "1"), ("x-trailer-b-bin", b"\xab\xab")]
        reply, call = test.Echo.with_call(pb.EchoRequest(text="hi", compressed=True), metadata=metadata)
        assert (reply.text, reply.number) == ("hi", 1)
        assert ("x-echo-a", "1") in [(it.key, it.value) for it in call.initial_metadata()]
        assert ("x-trailer-b-bin", b"\xab\xab") in [(it.key, it.value) for it in call.trailing_metadata()]
        for fault, expected in [
            ("LENGTH_OF_4_GIB", code.RESOURCE_EXHAUSTED),
            ("COMPRESSED_WITHOUT_ENCODING", code.INTERNAL),
            ("INVALID_MESSAGE", code.INTERNAL),
            ("RESET", code.INTERNAL),
            ("RESET_AFTER_MESSAGE", code.INTERNAL),
            ("NO_TRAILERS", code.UNKNOWN),
            ("NO_STATUS", code.UNKNOWN),
            ("HTTP_503", code.UNAVAILABLE),
            ("PAGE", code.UNKNOWN),
        ]:
            with pytest.raises(grpc.RpcError) as raised:
                test.Echo(pb.EchoRequest(fault=fault), timeout=30)
            assert raised.value.code() == expected, fault
        detail = any_pb2.Any()
        detail.Pack(duration_pb2.Duration(seconds=4))
        with pytest.raises(grpc.RpcError) as raised:
            test.Echo(pb.EchoRequest(status=pb.Status(code=7, message="nö 100%", details=[detail])))
        assert (raised.value.code(), raised.value.details()) == (code.PERMISSION_DENIED, "nö 100%")
        assert "grpc-status-details-bin" in [it.key for it in raised.value.trailing_metadata()]
        with pytest.raises(grpc.RpcError) as raised:
            test.Echo(pb.EchoRequest(delay=duration_pb2.Duration(seconds=60)), timeout=0.1)
        assert raised.value.code() == code.DEADLINE_EXCEEDED
        assert [it.number for it in test.List(pb.ListRequest(count=5))] == [1, 2, 3, 4, 5]
        many = [pb.EchoRequest(text=str(number), payload=b"abc") for number in range(10)]
        collected = test.Collect(iter(many), compression=grpc.Compression.Gzip)
        assert (collected.messages, collected.bytes, collected.last_text) == (10, 30, "9")
        assert [it.text for it in test.Chat(iter(many))] == [str(number) for number in range(10)]
        assert test.Mirror(pb.Everything(int64_value=-5)).int64_value == -5
        pool = descriptor_pool.DescriptorPool(database.ProtoReflectionDescriptorDatabase(channel))
        methods = pool.FindServiceByName("weir.test.v1.Test").methods
        assert [method.name for method in methods] == ["Echo", "List", "Collect", "Chat", "Mirror"]
