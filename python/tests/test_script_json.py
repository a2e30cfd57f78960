"""JSON in scripts: what Python's own module reads and writes, to the byte and to the exception."""

import json
import math
import random
import threading
from collections import OrderedDict
from collections.abc import Iterator
from enum import IntEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import weir
from weir import _weir


class _Echo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


LINES = r"""
{} [] null true false "" 0 -0 -0.0 1e5 1E+2 2.50 {"a":1,"b":2,"a":3} {"a":{"a":[{"a":"a"}]}} [[],{},[[]]] {"":""}
9223372036854775807 9223372036854775808 -9223372036854775809 1e999 -1e999 1e-999 0.1 123456789.123456789e-7
2.2250738585072014e-308 5e-324 17976931348623157e292 NaN [Infinity] -Infinity nan +1 01 1. .5 1e --1 0x10 1_000
"\"\\\/\b\f\n\r\t" "\u00e9\u20AC" "\ud83d\ude00x" "\ud83d" "\ude00\ud83d" "\ud83dx" "\ud83d\n" "Grüße世界😀"
{"schlüssel":"ß"}
[1,] {"a":1,} [1][2] {"a"1} {1:2} [ {"a" "abc "\x" "\u12 "\u12G4" ] tru nulll truefalse 'a' {"a":"b}
"""
TEXTS = [
    *(text.encode() for text in LINES.split()),
    *(
        b" [ 1 , 2 ]\t\r\n",
        b"[1 2]",
        b"- 1",
        b"[1] x",
        b"",
        b" ",
        b'"\x7f"',
        b'"\x01"',
        b'"a\nb"',
        b'"a\x00b"',
        b"\x00[1]",
    ),
    *("\ufeff[1]".encode(), "[1]".encode("utf-16"), b'"\xff"', b"1" * 60, b'{"k' + b"e" * 100 + b'y": 1}'),
    *(b"[" * 90 + b"]" * 90, b"[" * 300 + b"]" * 300, b"[" * 100_000),
]


def _random_value(source: random.Random, depth: int = 0) -> Any:
    kind = source.randrange(8 if depth < 4 else 6)
    if kind == 0:
        return source.choice([None, True, False])
    if kind == 1:
        return source.randrange(-(10 ** source.randrange(1, 25)), 10 ** source.randrange(1, 25))
    if kind in {2, 3}:
        return source.choice([source.uniform(-1, 1), source.uniform(-1, 1) * 10.0 ** source.randrange(-300, 300)])
    if kind in {4, 5}:
        return _random_text(source)
    if kind == 6:
        return [_random_value(source, depth + 1) for _ in range(source.randrange(5))]
    return {_random_text(source): _random_value(source, depth + 1) for _ in range(source.randrange(5))}


def _random_text(source: random.Random) -> str:
    return "".join(source.choice('ab"\\/\n\x00\x1f\x7f é€😀{}[],:') for _ in range(source.randrange(8)))


def _outcome(read: Any) -> tuple[str, str, str]:
    """Value of a call with the types within it, or its exception."""
    try:
        value = read()
    except RecursionError:
        return "RecursionError", "", ""
    except Exception as error:
        return type(error).__name__, str(error), ""
    return "value", repr(value), str(type(value))


def test_bodies_are_read_as_by_the_module_json(echo: str) -> None:
    source = random.Random(22)
    texts = list(TEXTS)
    for _ in range(300):
        text = json.dumps(_random_value(source), ensure_ascii=source.random() < 0.5).encode("utf-8", "surrogatepass")
        texts.append(text)
        # One byte too few, too many, or another one.
        at = source.randrange(len(text))
        texts += [text[:at], text[:at] + bytes([source.randrange(256)]) + text[at + source.randrange(2) :]]
    found: list[tuple[Any, ...]] = []

    class Reader(weir.User):
        @weir.task
        async def read(self) -> None:
            for text in texts:
                r = await self.post("/", data=text, name="echo")
                found.append((text, r.content, _outcome(r.json)))
                if b"." in text:
                    found.append((text, text, _outcome(lambda r=r: r.json(parse_float=str)), True))

    run = weir.load(Reader, host=echo, users=1, loops=1)
    assert run.requests.ok == len(texts)
    assert {text for text, *_ in found} == set(texts)
    for text, content, outcome, *has_options in found:
        options: Any = {"parse_float": str} if has_options else {}
        expected = _outcome(lambda text=text, options=options: json.loads(text, **options))
        assert (content, outcome) == (text, expected), text[:200]


class _Level(IntEnum):
    LOW = 1


class _Text(str):
    __slots__ = ()


def test_bodies_are_written_as_by_the_module_json() -> None:
    source = random.Random(23)
    circular: list[Any] = []
    circular.append(circular)
    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    values = [
        *(None, True, False, 0, -1, 2**70, 1.0, -0.0, 1e16, 1e-7, 0.1, "", "a\u2028\ud83d", (1, (2,)), [[]], {}),
        *(math.nan, [math.inf], {"a": -math.inf}, {1: 2}, {None: 1, True: 2, 1.5: 3}, {(1,): 2}, OrderedDict(a=1)),
        *({_Text("k"): _Text("v")}, _Level.LOW, [_Level.LOW], {1, 2}, b"bytes", object, circular, deep, 10**5000),
        *(_random_value(source) for _ in range(500)),
    ]  # fmt: skip
    quick = 0
    for value in values:
        expected = _outcome(lambda value=value: json.dumps(value, allow_nan=False).encode())
        body = _weir.json_body(value)
        quick += body is not None
        assert body is None or ("value", repr(body), str(bytes)) == expected, repr(value)[:200]
    # What is common does not need Python.
    assert quick > 400
    assert _weir.json_body({"user": "bob", "tags": ["a", 1, 1.5, None, True]}) is not None
