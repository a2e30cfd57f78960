"""Scripts of k6 that make calls of gRPC, with grpcio as the server: streams, health, and certificates of both sides."""

import importlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trustme
from programs import binary, finished

pytestmark = pytest.mark.wide

grpc = pytest.importorskip("grpc")
protoc = pytest.importorskip("grpc_tools.protoc")
health = pytest.importorskip("grpc_health.v1.health")
health_pb2 = pytest.importorskip("grpc_health.v1.health_pb2")
health_rpc = pytest.importorskip("grpc_health.v1.health_pb2_grpc")

PROTO = """
syntax = "proto3";
package peer.v1;
service Numbers {
  rpc Add(stream Number) returns (Number);
  rpc Count(Number) returns (stream Number);
  rpc Double(stream Number) returns (stream Number);
}
message Number { int64 value = 1; }
"""

AUTHORITY = trustme.CA()


class Numbers:
    """What the server does, and the metadata of its calls."""

    def __init__(self, folder: Path) -> None:
        """Make the modules of the service in a folder."""
        (folder / "peer_numbers.proto").write_text(PROTO)
        outputs = [f"--python_out={folder}", f"--grpc_python_out={folder}"]
        assert protoc.main(["protoc", f"-I{folder}", *outputs, str(folder / "peer_numbers.proto")]) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(folder))
            self.pb: Any = importlib.import_module("peer_numbers_pb2")
            self.rpc: Any = importlib.import_module("peer_numbers_pb2_grpc")
        self.metadata: list[dict[str, Any]] = []
        self.cancelled: list[bool] = []

    def servicer(self) -> Any:
        """Methods of the service."""
        pb = self.pb

        def add(_: object, numbers: Any, context: Any) -> Any:
            self.metadata.append(dict(context.invocation_metadata()))
            return pb.Number(value=sum(number.value for number in numbers))

        def count(_: object, number: Any, context: Any) -> Any:
            for value in range(number.value):
                yield pb.Number(value=value)
            if number.value > 5:
                context.abort(grpc.StatusCode.OUT_OF_RANGE, "too far")

        def double(_: object, numbers: Any, context: Any) -> Any:
            context.add_callback(lambda: self.cancelled.append(context.code() is None))
            for number in numbers:
                yield pb.Number(value=2 * number.value)

        return type("Servicer", (self.rpc.NumbersServicer,), {"Add": add, "Count": count, "Double": double})()

    def start(self, credentials: Any = None) -> tuple[Any, str]:
        """Start a server; return it and its address."""
        server = grpc.server(ThreadPoolExecutor(8))
        self.rpc.add_NumbersServicer_to_server(self.servicer(), server)
        checked = health.HealthServicer()
        checked.set("", health_pb2.HealthCheckResponse.SERVING)
        checked.set("peer.v1.Numbers", health_pb2.HealthCheckResponse.NOT_SERVING)
        health_rpc.add_HealthServicer_to_server(checked, server)
        if credentials is None:
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            port = server.add_secure_port("127.0.0.1:0", credentials)
        server.start()
        return server, f"127.0.0.1:{port}"


@pytest.fixture
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    return _NUMBERS.setdefault("", Numbers(tmp_path_factory.mktemp("peer")))


_NUMBERS: dict[str, Numbers] = {}

HEAD = """
import grpc from 'k6/net/grpc';
import { check } from 'k6';
const client = new grpc.Client();
client.load(['.'], 'peer.proto');
const stream = (method, values, params) => new Promise((done) => {
  const events = [];
  const one = new grpc.Stream(client, `peer.v1.Numbers/${method}`, params);
  one.on('data', (message) => events.push(Number(message.value)));
  one.on('error', (error) => events.push(`${error.code} ${error.message}`));
  one.on('end', () => done(events));
  for (const value of values) one.write({ value });
  one.end();
});
"""


def played(folder: Path, script: str, *flags: str) -> dict[str, Any]:
    (folder / "peer.proto").write_text(PROTO)
    (folder / "script.js").write_text(HEAD + script)
    command = ["load", "-s", str(folder / "script.js"), "-c", "1", "-n", "1", "-f", "json", *flags]
    done = finished(str(binary()), *command, timeout_s=60)
    result: dict[str, Any] = json.loads(done.stdout)
    # An iteration with a call that fails on purpose is none that has succeeded.
    assert done.returncode in (0, 3), done.stderr
    assert not result["script"]["exceptions"], result["script"]["exceptions"]
    failed = [check for check in result["script"]["checks"] if check["failed"]]
    assert result["script"]["checks"]
    assert not failed, (failed, done.stderr)
    return result


def test_streams_and_health_with_a_server_of_grpcio(numbers: Numbers, tmp_path: Path) -> None:
    server, address = numbers.start()
    script = """
    export default async () => {
      client.connect(__ENV.HOST, { plaintext: true });
      const same = (one, other) => JSON.stringify(one) === JSON.stringify(other) || console.log(JSON.stringify(one));
      const added = await stream('Add', [1, 2, 3], { metadata: { 'x-note': 'a' } });
      const counted = await stream('Count', [4]);
      const doubled = await stream('Double', [5, 6, 7]);
      const failed = await stream('Count', [6]);
      const many = await stream('Double', Array.from({ length: 2000 }, (_, n) => n));
      const [all, own, other] = [client.healthCheck(), client.healthCheck('peer.v1.Numbers'), client.healthCheck('x')];
      check(null, {
        'client': () => same(added, [6]),
        'server': () => same(counted, [0, 1, 2, 3]),
        'both': () => same(doubled, [10, 12, 14]),
        'status': () => same(failed, [0, 1, 2, 3, 4, 5, '11 too far']),
        'many': () => many.length === 2000 && many[1999] === 3998,
        'health': () => all.status === grpc.StatusOK && all.message.status === grpc.HealthCheckServing,
        'health of a service': () => own.message.status === grpc.HealthCheckNotServing,
        'health of an unknown one': () => other.status === grpc.StatusNotFound && other.message === null,
      });
    };
    """
    result = played(tmp_path, script, "-e", f"HOST={address}")
    server.stop(None).wait()
    assert numbers.metadata[-1]["x-note"] == "a"
    assert result["status"] == {"OK": 6, "OUT_OF_RANGE": 1, "NOT_FOUND": 1}, result["status"]


def test_a_client_closes_what_is_open(numbers: Numbers, tmp_path: Path) -> None:
    numbers.cancelled.clear()
    server, address = numbers.start()
    script = """
    export default async () => {
      client.connect(__ENV.HOST, { plaintext: true });
      const one = new grpc.Stream(client, 'peer.v1.Numbers/Double');
      const events = [];
      one.on('data', () => { events.push('data'); client.close(); });
      one.on('error', () => events.push('error'));
      await new Promise((done) => { one.on('end', done); one.write({ value: 1 }); });
      check(events, { 'one message, no error': () => events.join() === 'data' });
    };
    """
    played(tmp_path, script, "-e", f"HOST={address}")
    server.stop(None).wait()
    assert numbers.cancelled == [True]


def test_certificates_of_a_client_are_those_of_its_connection(numbers: Numbers, tmp_path: Path) -> None:
    own = AUTHORITY.issue_cert("127.0.0.1")
    key, chain = own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes()
    root = AUTHORITY.cert_pem.bytes()
    credentials = grpc.ssl_server_credentials([(key, chain)], root, require_client_auth=True)
    server, address = numbers.start(credentials)
    client = AUTHORITY.issue_cert("client@example.com")
    for name, text in [
        ("ca.pem", root),
        ("cert.pem", client.cert_chain_pems[0].bytes()),
        ("key.pem", client.private_key_pem.bytes()),
    ]:
        (tmp_path / name).write_bytes(text)
    script = """
    const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => open(name));
    export default async () => {
      client.connect(__ENV.HOST, { tls: { cacerts: [ca], cert, key } });
      const added = await stream('Add', [1, 2]);
      const health = client.healthCheck();
      client.connect(__ENV.HOST, { tls: { cacerts: ca } });
      const unknown = client.healthCheck();
      client.connect(__ENV.HOST, {});
      const untrusted = client.healthCheck();
      check(null, {
        'with all': () => added.join() === '3' && health.message.status === 'SERVING',
        'without a certificate': () => unknown.status === grpc.StatusUnavailable,
        'without trust': () => untrusted.status === grpc.StatusUnavailable,
      });
    };
    """
    played(tmp_path, script, "-e", f"HOST={address}", "--timeout", "5s")
    server.stop(None).wait()
