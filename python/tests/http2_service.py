"""A service that speaks HTTP/2, over plain TCP or TLS, and resets every second stream."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import h2.config
import h2.connection
import h2.errors
import h2.events


@contextmanager
def resetting_service(tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run the service on a thread; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, tls), daemon=True).start()
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, tls: ssl.SSLContext | None) -> None:
    try:
        while True:
            threading.Thread(target=_serve, args=(listener.accept()[0], tls), daemon=True).start()
    except OSError:
        pass


def _serve(accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    # A client may reset the connection at its end.
    with suppress(OSError), accepted if tls is None else tls.wrap_socket(accepted, server_side=True) as stream:
        stream.sendall(connection.data_to_send())
        while received := stream.recv(65536):
            for event in connection.receive_data(received):
                if isinstance(event, h2.events.RequestReceived):
                    number = event.stream_id or 0
                    if number // 2 % 2:
                        connection.reset_stream(number, h2.errors.ErrorCodes.INTERNAL_ERROR)
                    else:
                        connection.send_headers(number, [(":status", "204")], end_stream=True)
            stream.sendall(connection.data_to_send())
