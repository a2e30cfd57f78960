"""Users that make calls of gRPC over TLS: the reflection of the server is asked on the way of the load."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from programs import finished

import weir

AUTHORITY = trustme.CA()
ECHO = "weir.test.v1.Test/Echo"


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def port() -> Iterator[int]:
    """Port of a service of gRPC behind TLS, whose certificate is for a name and an address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("127.0.0.1", "calls.test").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    with weir.serve("grpc") as running, socket.create_server(("127.0.0.1", 0)) as listener:

        def relay(stream: socket.socket) -> None:
            # Errors of connections are irrelevant here.
            with (
                suppress(OSError),
                stream,
                context.wrap_socket(stream, server_side=True) as secure,
                socket.create_connection((running.host, running.port)) as plain,
            ):
                back = threading.Thread(target=_pass_on, args=(plain, secure), daemon=True)
                back.start()
                _pass_on(secure, plain)
                back.join()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=relay, args=[listener.accept()[0]], daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


class _Caller(weir.User):
    host = "grpcs://calls.test"

    @weir.task
    async def _echo(self) -> None:
        r = await self.grpc(ECHO, {"text": "ada"})
        r.check(r.json()["text"] == "ada")


def test_reflection_trusts_the_authority_of_the_load(port: int, tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(authority)
    host = f"grpcs://127.0.0.1:{port}"
    run = weir.load(_Caller, host=host, connections=1, requests=5, cacert=authority)
    assert run.status == {"OK": 5}
    assert weir.load(_Caller, host=host, connections=1, requests=2, insecure=True).status == {"OK": 2}
    # The way to another address, with the name of the URL.
    run = weir.load(_Caller, connections=1, requests=2, cacert=authority, connect_to=f"127.0.0.1:{port}")
    assert run.status == {"OK": 2}


def test_reflection_without_the_authority_is_one_line(
    port: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(weir.SetupError, match="certificate"):
        weir.load(_Caller, host=f"grpcs://127.0.0.1:{port}", connections=1, requests=1)
    file = tmp_path / "calls.py"
    file.write_text(
        "import weir\n\n\nclass Caller(weir.User):\n    @weir.task\n    async def echo(self):\n"
        f'        r = await self.grpc("{ECHO}", {{"text": "a"}})\n        r.check(r.json()["text"] == "a")\n'
    )
    authority = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(authority)
    flags = (f"grpcs://127.0.0.1:{port}", "--cacert", str(authority))
    for command in (("load", "-s", str(file), *flags, "-n", "3", "-c", "1"), ("run", str(file), *flags)):
        done = finished(sys.executable, "-m", "weir", *command)
        assert done.returncode == 0, done
    assert "certificate" not in capfd.readouterr().err
