"""TLS proxy in front of a service, as the original service had TLS: decrypts, and passes everything on.

    python tls.py --to PORT --folder FOLDER

The first line on stdout is the address; ca.pem, in the folder, is the CA certificate.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import ssl
from pathlib import Path
from typing import cast

import trustme
import uvloop

HOST = "127.0.0.1"


class Outside(asyncio.Protocol):
    """Connection from a client."""

    def __init__(self, port: int) -> None:
        """Accept a connection for the service at this port."""
        self._port = port
        self._early = b""
        self._inside: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the service after the handshake."""
        # uvloop's transport does not derive from asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self._inside, _ = await loop.create_connection(lambda: Inside(self.transport), HOST, self._port)
        if self.transport.is_closing():
            self._inside.close()
        elif self._early:
            self._inside.write(self._early)

    def data_received(self, data: bytes) -> None:
        """Pass on a part of a request."""
        if self._inside is None:
            self._early += data
        else:
            self._inside.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the connection to the service."""
        if self._inside is not None:
            self._inside.close()


class Inside(asyncio.Protocol):
    """Connection to the service, for one client connection."""

    def __init__(self, outside: asyncio.Transport) -> None:
        """Pass everything on to this transport."""
        self._outside = outside

    def data_received(self, data: bytes) -> None:
        """Pass on a part of a response."""
        if not self._outside.is_closing():
            self._outside.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the client's connection."""
        self._outside.close()


async def serve(port: int, folder: Path) -> None:
    """Serve until terminated."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    server = await asyncio.get_running_loop().create_server(lambda: Outside(port), HOST, 0, ssl=context, backlog=4096)
    listening = server.sockets[0].getsockname()[1]
    print(json.dumps({"listening": f"https://{HOST}:{listening}"}), flush=True)
    await server.serve_forever()


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    args = parser.parse_args()
    # Aborted client connections are expected.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    uvloop.install()
    asyncio.run(serve(args.to, args.folder))


if __name__ == "__main__":
    main()
