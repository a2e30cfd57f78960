"""Certificates, of client and sender, and HTTP/2 over TLS: a real service with an authority of its own."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest
import trustme

import weir

AUTHORITY = trustme.CA()


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The authority's certificate, a PEM file."""
    path = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return path


def http1(stream: ssl.SSLSocket) -> None:
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.recv(1)
            if not byte:
                return
            head += byte
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def http2(stream: ssl.SSLSocket) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    stream.sendall(connection.data_to_send())
    while received := stream.recv(65536):
        for event in connection.receive_data(received):
            if isinstance(event, h2.events.RequestReceived):
                number = event.stream_id or 0
                connection.send_headers(number, [(":status", "200")])
                connection.send_data(number, b"hello", end_stream=True)
        stream.sendall(connection.data_to_send())


@contextmanager
def service(name: str, protocols: list[str], *, known: bool = False) -> Iterator[str]:
    """A service with a certificate for a name; ``known``: only for clients that have one, too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(name).configure_cert(context)
    context.set_alpn_protocols(protocols)
    if known:
        AUTHORITY.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(stream: socket.socket) -> None:
        # Errors of connections are irrelevant here.
        with suppress(OSError), stream, context.wrap_socket(stream, server_side=True) as secure:
            talk: Callable[[ssl.SSLSocket], None] = http2 if secure.selected_alpn_protocol() == "h2" else http1
            talk(secure)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    accepting.join()


def test_a_certificate_is_checked_unless_told_otherwise(authority: Path) -> None:
    with service("127.0.0.1", ["http/1.1"]) as url:
        assert weir.Client(verify=authority).get(url).text == "hello"
        assert weir.Client(verify=str(authority)).get(url).text == "hello"
        assert weir.Client(verify=False).get(url).text == "hello"
        with pytest.raises(weir.ConnectFailed, match="tls"):
            weir.Client().get(url)
    with service("other.example", ["http/1.1"]) as url, pytest.raises(weir.ConnectFailed, match="tls"):
        weir.Client(verify=authority).get(url)


def test_a_sender_believes_whom_it_is_told_to(authority: Path) -> None:
    with service("127.0.0.1", ["http/1.1"]) as url:
        for verify in (authority, str(authority), False):
            with weir.Sender(verify=verify) as sender:
                assert sender.submit(url).text == "hello"
    with pytest.raises(weir.UsageError, match="verify"):
        weir.Sender(verify=authority.with_name("none.pem"))


def test_a_certificate_of_our_own_is_shown(authority: Path, tmp_path: Path) -> None:
    own = AUTHORITY.issue_cert("client.example")
    both, cert, key = (tmp_path / name for name in ("both.pem", "cert.pem", "key.pem"))
    own.private_key_and_cert_chain_pem.write_to_path(both)
    own.cert_chain_pems[0].write_to_path(cert)
    own.private_key_pem.write_to_path(key)
    with service("127.0.0.1", ["http/1.1"], known=True) as url:
        assert weir.Client(verify=authority, cert=both).get(url).text == "hello"
        assert weir.Client(verify=authority, cert=(cert, key)).get(url).text == "hello"
        with pytest.raises(weir.WeirError):
            weir.Client(verify=authority).get(url)


@pytest.mark.parametrize(
    ("offered", "wanted", "version"),
    [
        (["h2", "http/1.1"], True, "HTTP/2"),
        (["h2", "http/1.1"], False, "HTTP/1.1"),
        (["http/1.1"], True, "HTTP/1.1"),
    ],
)
def test_http2_is_spoken_if_both_ends_want_it(authority: Path, offered: list[str], wanted: bool, version: str) -> None:
    with service("127.0.0.1", offered) as url:
        with weir.Client(verify=authority, http2=wanted) as client:
            responses = [client.get(url) for _ in range(3)]
        assert [(response.http_version, response.text) for response in responses] == [(version, "hello")] * 3

        async def many() -> list[weir.Response]:
            async with weir.AsyncClient(verify=authority, http2=wanted) as client:
                return await asyncio.gather(*(client.get(url) for _ in range(50)))

        assert {(response.http_version, response.text) for response in asyncio.run(many())} == {(version, "hello")}
