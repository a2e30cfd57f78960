"""gRPC beside other programs: the interoperability service by grpc-go and grpc-java, grpcurl and ghz."""

import base64
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grpc_messages import MESSAGES
from import_judges import judge, program
from programs import binary, started

import weir

pytestmark = pytest.mark.soak

WEIR = str(binary())
PROTO = Path(__file__).with_name("grpc_interop.proto")
JAVA = Path(__file__).parents[2] / "benches/peers/grpc/InteropServer.java"
FILES = ["--proto", str(PROTO), "--proto-path", str(PROTO.parent)]
UNARY_BYTES, RESPONSE_BYTES = 271_828, 314_159
SIZES = (31_415, 9, 2_653, 58_979)
SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"


def interop_server(name: str, port: int) -> list[str]:
    """Command of an interoperability server."""
    if name == "grpc-go":
        return [str(judge("go", "bin", "server")), "-port", str(port)]
    # A source is run by the compiler, which a runtime alone lacks.
    libraries, _ = judge("grpc-java", "lib"), program("javac")
    return [program("java"), "-cp", f"{libraries}/*", str(JAVA), str(port)]


@pytest.fixture(scope="module", params=["grpc-go", "grpc-java"])
def interop(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of each interoperability server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with started(*interop_server(request.param, port), silent=True):
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "the server does not listen"
                time.sleep(0.05)
        yield f"127.0.0.1:{port}"


def call(address: str, method: str, body: object, *flags: str, service: str = "TestService") -> dict[str, Any]:
    """The one request of `weir run` of a method of the interoperability service."""
    url = f"grpc://{address}/grpc.testing.{service}/{method}"
    return played(url, body, *FILES, *flags)


def played(url: str, body: object, *flags: str) -> dict[str, Any]:
    command = [WEIR, "run", url, "-b", "@-", "--json", "-v", *flags]
    done = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1), done
    request: dict[str, Any] = json.loads(done.stdout)["steps"][0]["requests"][0]
    return request


def replies(request: dict[str, Any]) -> list[Any]:
    return [json.loads(line) for line in request["response"].get("body", "").split("\n") if line]


def fields(request: dict[str, Any]) -> dict[str, str]:
    return dict(request["response"]["headers"])


def sizes(request: dict[str, Any]) -> list[int]:
    return [len(base64.b64decode(reply["payload"]["body"])) for reply in replies(request)]


def payload(size: int) -> dict[str, str]:
    return {"body": base64.b64encode(bytes(size)).decode()}


def test_empty_unary(interop: str) -> None:
    request = call(interop, "EmptyCall", {})
    assert (replies(request), fields(request)["grpc-status"]) == ([{}], "0")


@pytest.mark.parametrize("interop", ["grpc-java"], indirect=True)
def test_schema_by_reflection(interop: str) -> None:
    url = f"grpc://{interop}/grpc.testing.TestService/UnaryCall"
    assert sizes(played(url, {"responseSize": 9})) == [9]


@pytest.mark.parametrize("flags", [(), ("-H", "grpc-encoding: gzip")], ids=["large_unary", "client_compressed_unary"])
def test_large_unary(interop: str, flags: tuple[str, ...]) -> None:
    request = call(interop, "UnaryCall", {"responseSize": RESPONSE_BYTES, "payload": payload(UNARY_BYTES)}, *flags)
    status = fields(request)["grpc-status"]
    if flags and status == "12":
        pytest.skip("this server has no gzip")
    assert (sizes(request), status) == ([RESPONSE_BYTES], "0")


def test_server_compressed_unary(interop: str) -> None:
    body = {"responseSize": RESPONSE_BYTES, "responseCompressed": {"value": True}, "payload": payload(UNARY_BYTES)}
    request = call(interop, "UnaryCall", body)
    assert (sizes(request), fields(request)["grpc-status"]) == ([RESPONSE_BYTES], "0")
    if fields(request).get("grpc-encoding") != "gzip":
        pytest.skip("this server compresses nothing")


def test_client_streaming(interop: str) -> None:
    messages = [{"payload": payload(size)} for size in (27_182, 8, 1_828, 45_904)]
    assert replies(call(interop, "StreamingInputCall", messages)) == [{"aggregatedPayloadSize": 74_922}]


def test_server_streaming(interop: str) -> None:
    body = {"responseParameters": [{"size": size} for size in SIZES]}
    assert sizes(call(interop, "StreamingOutputCall", body)) == list(SIZES)
    run = weir.load(
        f"grpc://{interop}/grpc.testing.TestService/StreamingOutputCall",
        json=body,
        proto=PROTO,
        proto_path=PROTO.parent,
        requests=200,
        connections=4,
    )
    assert run.streams is not None
    assert (run.requests.ok, run.streams.events) == (200, 800)


def test_ping_pong_and_empty_stream(interop: str) -> None:
    pings = [
        {"responseParameters": [{"size": size}], "payload": payload(sent)}
        for size, sent in zip(SIZES, (27_182, 8, 1_828, 45_904), strict=True)
    ]
    assert sizes(call(interop, "FullDuplexCall", pings)) == list(SIZES)
    request = call(interop, "FullDuplexCall", [])
    assert (replies(request), fields(request)["grpc-status"]) == ([], "0")


@pytest.mark.parametrize("message", ["test status message", SPECIAL], ids=["plain", "special"])
def test_status_code_and_message(interop: str, message: str) -> None:
    status = {"responseStatus": {"code": 2, "message": message}}
    for method, body in (("UnaryCall", status), ("FullDuplexCall", [status])):
        run = weir.load(
            f"grpc://{interop}/grpc.testing.TestService/{method}",
            json=body,
            proto=PROTO,
            proto_path=PROTO.parent,
            requests=3,
            connections=1,
        )
        assert run.failures == {"UNKNOWN": 3}
        assert run.target.failure_details["UNKNOWN"].split() == message.split()


def test_unimplemented_method_and_service(interop: str) -> None:
    for service in ("TestService", "UnimplementedService"):
        request = call(interop, "UnimplementedCall", {}, service=service)
        assert fields(request)["grpc-status"] == "12"


def test_cancel_after_first_response(interop: str) -> None:
    body = {"responseParameters": [{"size": 9}, {"size": 9, "intervalUs": 30_000_000}]}
    command = [WEIR, "load", f"grpc://{interop}/grpc.testing.TestService/FullDuplexCall", *FILES]
    command += ["-b", json.dumps([body]), "--stream", "--max-events", "1", "-n", "6", "-c", "2", "--format", "json"]
    run = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert (run["requests"]["ok"], run["streams"]["stopped"], run["streams"]["events"]) == (6, 6, 6)


def test_timeout_on_sleeping_server_and_cancel_after_begin(interop: str) -> None:
    body = {"responseParameters": [{"size": 9, "intervalUs": 30_000_000}]}
    command = [WEIR, "load", f"grpc://{interop}/grpc.testing.TestService/FullDuplexCall", *FILES]
    command += ["-b", json.dumps([body]), "-n", "6", "-c", "2", "--timeout", "100ms", "--format", "json"]
    run = json.loads(subprocess.run(command, capture_output=True, check=False, timeout=60).stdout)
    # The deadline is the server's as well: the one that sees it first cancels the stream.
    assert sum(run["failures"].get(kind, 0) for kind in ("timeout", "DEADLINE_EXCEEDED")) == 6


def test_custom_metadata(interop: str) -> None:
    flags = ["-H", "x-grpc-test-echo-initial: test_initial_metadata_value"]
    flags += ["-H", "x-grpc-test-echo-trailing-bin: q6ur"]
    for method, body in (
        ("UnaryCall", {"responseSize": 1, "payload": payload(1)}),
        ("FullDuplexCall", [{"responseParameters": [{"size": 1}]}]),
    ):
        found = fields(call(interop, method, body, *flags))
        assert found["x-grpc-test-echo-initial"] == "test_initial_metadata_value"
        assert found["x-grpc-test-echo-trailing-bin"] == "q6ur"


def grpcurl(*args: str, body: object) -> subprocess.CompletedProcess[str]:
    command = [str(judge("go", "bin", "grpcurl")), "-plaintext", *args[:-2], "-d", "@", *args[-2:]]
    return subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, timeout=60, check=False)


def documents(text: str) -> list[Any]:
    """Values of JSON, one behind the other."""
    found, decoder, at = [], json.JSONDecoder(), 0
    while rest := re.match(r"\s*", text[at:]):
        at += rest.end()
        if at >= len(text):
            break
        value, end = decoder.raw_decode(text[at:])
        found.append(value)
        at += end
    return found


def test_json_is_that_of_grpcurl() -> None:
    judge("go", "bin", "grpcurl")
    with weir.serve("grpc") as service:
        address, different, unread = f"{service.host}:{service.port}", [], 0
        for message in MESSAGES:
            called = grpcurl(address, "weir.test.v1.Test/Mirror", body=message)
            if "error getting request data" in called.stderr:
                unread += 1  # a mask with a dot, and the longest duration
                continue
            theirs = documents(called.stdout)
            ours = replies(played(f"{service.url}/weir.test.v1.Test/Mirror", message))
            if len(ours) != 1 or ours != theirs:
                different.append((message, ours, theirs))
        assert not different, different
        assert len(MESSAGES) - unread >= 30
        body = {"count": 3, "echo": {"text": "a"}}
        theirs = documents(grpcurl(address, "weir.test.v1.Test/List", body=body).stdout)
        assert replies(played(f"{service.url}/weir.test.v1.Test/List", body)) == theirs
        rejected = grpcurl(address, "weir.test.v1.Test/Echo", body={"status": {"code": 9, "message": "nö 100%"}})
        assert "Code: FailedPrecondition" in rejected.stderr
        assert "Message: nö 100%" in rejected.stderr


def test_json_of_another_server_is_that_of_grpcurl(interop: str) -> None:
    judge("go", "bin", "grpcurl")
    flags = ("-proto", PROTO.name, "-import-path", str(PROTO.parent))
    for size in range(30):
        body = {"responseSize": size, "payload": payload(size)}
        theirs = documents(grpcurl(*flags, interop, "grpc.testing.TestService/UnaryCall", body=body).stdout)
        assert replies(call(interop, "UnaryCall", body)) == theirs


def test_ghz_counts_what_the_test_server_counts(tmp_path: Path) -> None:
    ghz = str(judge("go", "bin", "ghz"))
    with weir.serve("grpc") as service:
        command = [ghz, "--insecure", "--call", "weir.test.v1.Test/Echo", "-d", '{"text": "a"}']
        command += ["-n", "500", "-c", "10", "-O", "json", f"{service.host}:{service.port}"]
        found = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, timeout=60).stdout)
        assert (found["count"], found["statusCodeDistribution"]) == (500, {"OK": 500})
        # The others are those of reflection.
        assert service.stats()["status"]["OK"] >= 500
        run = weir.load(f"{service.url}/weir.test.v1.Test/Echo", json={"text": "a"}, requests=500, connections=10)
        assert run.status == {"OK": 500}
