"""Calls a page repeatedly with an HTTP client for Python, and prints the CPU time of the calls.

    python client.py --client NAME --url URL --seconds S [--warmup S] [--at-once N] [--awaited] [--bytes N]

All bodies are read, and their lengths checked. CPU time is of all threads of the process, after the warm-up. The output
is a line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import importlib
import io
import json
import sys
import time
import urllib.parse
from collections.abc import Awaitable, Callable
from importlib import metadata
from typing import Any

Call = Callable[[], bytes]
Awaited = Callable[[], Awaitable[bytes]]


class Meter:
    """Counter of calls, time and CPU time after the warm-up."""

    def __init__(self, warmup_s: float, seconds: float, length: int) -> None:
        """Make a meter for bodies of `length` bytes."""
        self.warmup_s, self.seconds, self.length = warmup_s, seconds, length
        self.calls = 0
        self.going = True
        self._mark = (0, 0.0, 0.0)
        self._result = (0, 0.0, 0.0)

    def count(self, body: bytes) -> None:
        """Count a call."""
        if len(body) != self.length:
            sys.exit(f"a body of {len(body)} bytes instead of {self.length}")
        self.calls += 1

    def begin(self) -> None:
        """End the warm-up."""
        self._mark = (self.calls, time.monotonic(), time.process_time())

    def end(self) -> None:
        """End the measurement."""
        calls, wall, cpu = self._mark
        self._result = (self.calls - calls, time.monotonic() - wall, time.process_time() - cpu)
        self.going = False

    def result(self) -> dict[str, float]:
        """Return calls, time and CPU time of the measurement."""
        calls, wall_s, cpu_s = self._result
        return {"calls": calls, "seconds": wall_s, "cpu_s": cpu_s}


# --- One at a time


def weir_sync(url: str) -> Call:
    """Make calls with `weir.Client`."""
    client = _module("weir").Client()
    return lambda: client.get(url).content


def http_client(url: str) -> Call:
    """Make calls with a connection of the standard library."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)

    def call() -> bytes:
        connection.request("GET", parts.path)
        return connection.getresponse().read()

    return call


def requests(url: str) -> Call:
    """Make calls with a session of requests."""
    session = _module("requests").Session()
    session.trust_env = False
    return lambda: session.get(url).content


def niquests(url: str) -> Call:
    """Make calls with a session of niquests."""
    session = _module("niquests").Session()
    session.trust_env = False
    return lambda: session.get(url).content


def httpx(url: str) -> Call:
    """Make calls with a client of httpx."""
    client = _module("httpx").Client(trust_env=False)
    return lambda: client.get(url).content


def httpx2(url: str) -> Call:
    """Make calls with a client of httpx2."""
    client = _module("httpx2").Client(trust_env=False)
    return lambda: client.get(url).content


def httpx_by_weir(url: str) -> Call:
    """Make calls with a client of httpx, over weir's transport."""
    return _by_transport("httpx", url)


def httpx2_by_weir(url: str) -> Call:
    """Make calls with a client of httpx2, over weir's transport."""
    return _by_transport("httpx2", url)


def _by_transport(name: str, url: str) -> Call:
    transport = _module(f"weir.{name}").Transport(deadline=30, retries=2)
    client = _module(name).Client(transport=transport)
    return lambda: client.get(url).content


def requests_by_weir(url: str) -> Call:
    """Make calls with a session of requests, over weir's adapter."""
    session = _module("requests").Session()
    session.trust_env = False
    session.mount("http://", _module("weir.requests").Adapter(deadline=30, retries=2))
    return lambda: session.get(url).content


def stream_httpx2(url: str) -> Call:
    """Read streamed responses with a client of httpx2."""
    return _stream(_module("httpx2").Client(trust_env=False), url)


def stream_httpx2_by_weir(url: str) -> Call:
    """Read streamed responses with a client of httpx2, over weir's transport."""
    return _stream(_module("httpx2").Client(transport=_module("weir.httpx2").Transport(deadline=30)), url)


def _stream(client: Any, url: str) -> Call:
    def call() -> bytes:
        with client.stream("GET", url) as response:
            return b"".join(response.iter_raw())

    return call


def stream_pycurl(url: str) -> Call:
    """Read streamed responses with a reused easy handle of libcurl, piece by piece."""
    module = _module("pycurl")
    handle = module.Curl()
    handle.setopt(module.URL, url)

    def call() -> bytes:
        pieces: list[bytes] = []
        handle.setopt(module.WRITEFUNCTION, pieces.append)
        handle.perform()
        return b"".join(pieces)

    return call


def curl_cffi(url: str) -> Call:
    """Make calls with a session of curl_cffi."""
    session = _module("curl_cffi.requests").Session(trust_env=False)
    return lambda: session.get(url).content


def pycurl(url: str) -> Call:
    """Make calls with a reused easy handle of libcurl."""
    module = _module("pycurl")
    handle = module.Curl()
    handle.setopt(module.URL, url)

    def call() -> bytes:
        body = io.BytesIO()
        handle.setopt(module.WRITEDATA, body)
        handle.perform()
        return body.getvalue()

    return call


# --- Awaited


def weir_async(url: str, _at_once: int) -> Awaited:
    """Make calls with `weir.AsyncClient`."""
    client = _module("weir").AsyncClient()

    async def call() -> bytes:
        return bytes((await client.get(url)).content)

    return call


def aiohttp(url: str, at_once: int) -> Awaited:
    """Make calls with a session of aiohttp."""
    module = _module("aiohttp")
    session = module.ClientSession(connector=module.TCPConnector(limit=at_once))

    async def call() -> bytes:
        async with session.get(url) as response:
            return bytes(await response.read())

    return call


def httpx_async(url: str, at_once: int) -> Awaited:
    """Make calls with a client of httpx that keeps all connections alive."""
    return _like_httpx("httpx", url, at_once)


def httpx2_async(url: str, at_once: int) -> Awaited:
    """Make calls with a client of httpx2 that keeps all connections alive."""
    return _like_httpx("httpx2", url, at_once)


def httpx_async_by_weir(url: str, _at_once: int) -> Awaited:
    """Make calls with a client of httpx, over weir's transport."""
    return _by_async_transport("httpx", _module("weir.httpx").AsyncTransport(deadline=30, retries=2), url)


def httpx2_async_by_weir(url: str, _at_once: int) -> Awaited:
    """Make calls with a client of httpx2, over weir's transport."""
    return _by_async_transport("httpx2", _module("weir.httpx2").AsyncTransport(deadline=30, retries=2), url)


def httpx_aiohttp(url: str, at_once: int) -> Awaited:
    """Make calls with a client of httpx, over aiohttp."""
    limits = _module("httpx").Limits(max_connections=at_once, max_keepalive_connections=at_once)
    return _by_async_transport("httpx", _module("httpx_aiohttp").AiohttpTransport(limits=limits), url)


def _by_async_transport(name: str, transport: Any, url: str) -> Awaited:
    client = _module(name).AsyncClient(transport=transport)

    async def call() -> bytes:
        return bytes((await client.get(url)).content)

    return call


def _like_httpx(name: str, url: str, at_once: int) -> Awaited:
    module = _module(name)
    limits = module.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    client = module.AsyncClient(limits=limits, trust_env=False)

    async def call() -> bytes:
        return bytes((await client.get(url)).content)

    return call


SYNC: dict[str, tuple[str, Callable[[str], Call]]] = {
    "weir.Client": ("weir-http", weir_sync),
    "http.client": ("", http_client),
    "requests": ("requests", requests),
    "niquests": ("niquests", niquests),
    "httpx": ("httpx", httpx),
    "httpx2": ("httpx2", httpx2),
    "httpx, weir's transport": ("httpx", httpx_by_weir),
    "httpx2, weir's transport": ("httpx2", httpx2_by_weir),
    "requests, weir's adapter": ("requests", requests_by_weir),
    "stream httpx2": ("httpx2", stream_httpx2),
    "stream httpx2, weir's transport": ("httpx2", stream_httpx2_by_weir),
    "stream pycurl": ("pycurl", stream_pycurl),
    "curl_cffi": ("curl_cffi", curl_cffi),
    "pycurl": ("pycurl", pycurl),
}
ASYNC: dict[str, tuple[str, Callable[[str, int], Awaited]]] = {
    "weir.AsyncClient": ("weir-http", weir_async),
    "aiohttp": ("aiohttp", aiohttp),
    "httpx": ("httpx", httpx_async),
    "httpx2": ("httpx2", httpx2_async),
    "httpx, weir's transport": ("httpx", httpx_async_by_weir),
    "httpx2, weir's transport": ("httpx2", httpx2_async_by_weir),
    "httpx-aiohttp": ("httpx-aiohttp", httpx_aiohttp),
}
MULTI = "pycurl multi"
UVLOOP = " + uvloop"


def _module(name: str) -> Any:
    return importlib.import_module(name)


def run_sync(call: Call, meter: Meter) -> None:
    """Make calls in sequence."""
    for seconds, then in ((meter.warmup_s, meter.begin), (meter.seconds, meter.end)):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            meter.count(call())
        then()


async def run_async(make: Callable[[], Awaited], meter: Meter, at_once: int) -> None:
    """Make calls in sequence from each of `at_once` coroutines."""
    call = make()

    async def caller() -> None:
        while meter.going:
            meter.count(await call())

    callers = [asyncio.ensure_future(caller()) for _ in range(at_once)]
    await asyncio.sleep(meter.warmup_s)
    meter.begin()
    await asyncio.sleep(meter.seconds)
    meter.end()
    await asyncio.gather(*callers)


def run_multi(url: str, meter: Meter, at_once: int) -> None:
    """Make calls in the loop of libcurl, with a handle per call in flight."""
    module = _module("pycurl")
    multi = module.CurlMulti()
    bodies: dict[Any, io.BytesIO] = {}

    def start(handle: Any) -> None:
        bodies[handle] = io.BytesIO()
        handle.setopt(module.WRITEDATA, bodies[handle])
        multi.add_handle(handle)

    for _ in range(at_once):
        handle = module.Curl()
        handle.setopt(module.URL, url)
        start(handle)
    for seconds, then in ((meter.warmup_s, meter.begin), (meter.seconds, meter.end)):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            multi.perform()
            _, done, failed = multi.info_read()
            if failed:
                sys.exit(f"failed: {failed[0][1:]}")
            for handle in done:
                meter.count(bodies[handle].getvalue())
                multi.remove_handle(handle)
                start(handle)
            if not done:
                multi.select(1.0)
        then()


def version(package: str) -> str:
    """Return the version of a package, or of Python for the standard library."""
    if not package:
        return sys.version.split()[0]
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # imported by a path, not installed
        return "?"


def main() -> None:
    """Measure a client, and print its result."""
    parser = argparse.ArgumentParser(description="Measure the CPU time of calls with an HTTP client.")
    parser.add_argument("--client", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--awaited", action="store_true")
    parser.add_argument("--bytes", type=int, default=1024)
    args = parser.parse_args()
    meter = Meter(args.warmup, args.seconds, args.bytes)
    name = args.client.removesuffix(UVLOOP)
    if name == MULTI:
        package = "pycurl"
        run_multi(args.url, meter, args.at_once)
    elif args.at_once == 1 and name in SYNC and not args.awaited:
        package, make_sync = SYNC[name]
        run_sync(make_sync(args.url), meter)
    elif name in ASYNC:
        package, make = ASYNC[name]
        loop = _module("uvloop").new_event_loop() if args.client.endswith(UVLOOP) else asyncio.new_event_loop()
        loop.run_until_complete(run_async(lambda: make(args.url, args.at_once), meter, args.at_once))
    else:
        parser.error(f"unknown client '{args.client}'; choose {', '.join([*SYNC, *ASYNC, MULTI])}")
    print(json.dumps({**meter.result(), "version": version(package)}))


if __name__ == "__main__":
    main()
