#!/usr/bin/env python3
"""Plays .hurl files with hurl and with weir against the same recording service, and compares what both do.

    scripts/hurl_equality.py HURL WEIR FOLDER [--golden FILE] [--url HOST:PORT] [--only PART]

HURL and WEIR are the two programs. Each file of FOLDER is played by both against a fresh service (see
recording_service.py), which records all requests; with --url, through a relay to a service that runs already. Compared
are the requests (method, target, headers, body), the captures, the verdict, and which checks have failed. Not compared
are the User-Agent, the order of headers and of cookies, a Content-Length of 0, the values of random functions, and how
the two reports write dates, bytes (Base64 or hexadecimal digits) and integers of more than 64 bits. The exit code is 1
if a file differs.

--golden FILE saves what hurl did, with the responses: the tests of weir play them back without hurl.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TypeAlias

from recording_service import Address, RecordedRequest, RecordingService

#: Variables of every file, besides the service's address.
VARIABLES = {
    "id": "42",
    "name": "Ada",
    "flag": "true",
    "half": "0.5",
    "digits": '"123"',
    "spaced": "two words",
    "quoted": 'say "hi"',
    "tries": "3",
    "interval": "10",
    "no": "false",
    "token": "abc123",
}

#: Method, target, headers and body as they are compared: a list, as in the golden file.
NormalRequest: TypeAlias = list[str | list[list[str]]]


@dataclass(frozen=True)
class Player:
    """A program that plays files, and the names in its report."""

    command: tuple[str, ...]
    success: str
    steps: str
    checks: str


@dataclass(frozen=True)
class Play:
    """What a program did with a file; it has neither captures nor failed checks if it printed no report."""

    verdict: str
    requests: list[NormalRequest]
    captures: list[tuple[str, object]] | None
    #: For each step with failed checks, their positions.
    failed: list[list[int]] | None
    responses: list[str]
    stderr: str


def main() -> int:
    """Play the files, print what differs and save what hurl did."""
    args = _arguments()
    hurl = Player((args.hurl, "--json", "--no-color"), success="success", steps="entries", checks="asserts")
    weir_command = (str(args.weir.resolve()), "run", "--json", "--show-secrets")
    weir = Player(weir_command, success="ok", steps="steps", checks="checks")
    files = sorted(file for file in args.folder.rglob("*.hurl") if args.only in file.name)
    golden: dict[str, Play] = {}
    different = 0
    for file in files:
        expected, found = _play(hurl, file, args.url), _play(weir, file, args.url)
        golden[file.stem] = expected
        if lines := _differences(expected, found):
            different += 1
            print(f"{file.name} differs")
            for line in lines:
                print(f"    {line}")
            for play in (expected, found):
                if play.stderr:
                    print("    | " + play.stderr[:700].replace("\n", "\n    | "))
    share = 100 * (1 - different / max(len(files), 1))
    print(f"{len(files) - different} of {len(files)} files are equal ({share:.1f}%)")
    if args.golden:
        cases = [f"{json.dumps(name)}: {_golden_case(play)}" for name, play in golden.items()]
        args.golden.write_text("{\n" + ",\n".join(cases) + "\n}\n")
    return int(different > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("hurl")
    parser.add_argument("weir", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--url", type=_address, help="HOST:PORT of a service that runs already")
    parser.add_argument("--only", default="", help="part of the names of files")
    return parser.parse_args()


def _address(text: str) -> Address:
    host, port = text.rsplit(":", 1)
    return host, int(port)


# --- Playing a file


def _play(player: Player, file: Path, upstream: Address | None) -> Play:
    """Play a file against a fresh service."""
    service = RecordingService(upstream)
    port = service.port
    variables = {"host": f"http://127.0.0.1:{port}", "address": f"127.0.0.1:{port}", **VARIABLES}
    given = [part for name, value in variables.items() for part in ("--variable", f"{name}={value}")]
    command = [*player.command, *given, file.name]
    done = subprocess.run(command, cwd=file.parent, check=False, capture_output=True, timeout=60)
    service.close()
    requests = [_normal_request(exchange.request, port) for exchange in service.exchanges]
    responses = [_without_port(exchange.response.decode("latin-1"), port) for exchange in service.exchanges]
    stderr = done.stderr.decode(errors="replace").strip()
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return Play("invalid", requests, None, None, responses, stderr)
    steps = report[player.steps]
    captures = [(each["name"], _normal_value(each["value"], port)) for step in steps for each in step["captures"]]
    failed = [_failed_positions([check[player.success] for check in step[player.checks]]) for step in steps]
    verdict = "ok" if report[player.success] else "failed"
    return Play(verdict, requests, captures, [positions for positions in failed if positions], responses, stderr)


def _failed_positions(checks: list[bool]) -> list[int]:
    """Positions of failed checks, counted from the last one: hurl has implicit checks before the first one."""
    return [len(checks) - at for at, is_ok in enumerate(checks) if not is_ok]


def _golden_case(play: Play) -> str:
    """JSON of what hurl did, for tests without hurl."""
    return json.dumps({
        "verdict": play.verdict,
        "requests": play.requests,
        "captures": play.captures,
        "failed": play.failed,
        "responses": play.responses,
    })  # fmt: skip


# --- Requests and values without what differs between two plays


def _without_port(text: str, port: int) -> str:
    return text.replace(f"127.0.0.1:{port}", "127.0.0.1:PORT").replace(f"localhost:{port}", "localhost:PORT")


def _normal_text(text: str, port: int) -> str:
    """Text without ports, random values, times and nonces of clients."""
    text = _without_port(text, port)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)", "DATE", text)
    return re.sub(r'(cnonce|response)="[^"]*"', r'\1="*"', text)


def _normal_value(value: object, port: int) -> object:
    """Captured value as it is compared."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return _normal_text(value, port) if isinstance(value, str) else value


def _normal_request(request: RecordedRequest, port: int) -> NormalRequest:
    headers = [(name.lower(), value) for name, value in request.headers]
    body = request.body.decode("latin-1")
    content_type = next((value for name, value in headers if name == "content-type"), "")
    boundary = re.search(r"boundary=\"?([^\";]+)", content_type)
    if boundary:
        body = body.replace(boundary[1], "BOUNDARY")
    body = _normal_text(body, port)
    has_fixed_length = boundary is None and "DATE" not in body
    compared = [
        [name, _normal_header(name, value, port)]
        for name, value in headers
        if not (name == "user-agent" and value.startswith(("hurl/", "weir/")))
        and not (name == "content-length" and (value == "0" or not has_fixed_length))
    ]
    return [request.method, _normal_text(request.target, port), sorted(compared), body]


def _normal_header(name: str, value: str, port: int) -> str:
    if name == "user-agent":
        return value
    if name == "cookie":
        return "; ".join(sorted(value.split("; ")))
    return _normal_text(re.sub(r"boundary=.*", "boundary=BOUNDARY", value), port)


# --- The comparison


def _differences(hurl: Play, weir: Play) -> list[str]:
    """What differs between two plays, for a person."""
    found = []
    if hurl.verdict != weir.verdict:
        found.append(f"verdict: hurl {hurl.verdict}, weir {weir.verdict}")
    for number, (left, right) in enumerate(zip_longest(hurl.requests, weir.requests), 1):
        if left != right:
            found.append(f"request {number}:\n      hurl {left}\n      weir {right}")
    by_hurl, by_weir = dict(hurl.captures or []), dict(weir.captures or [])
    for name in by_hurl | by_weir:
        value, other = by_hurl.get(name), by_weir.get(name)
        if not _is_same_value(value, other):
            found.append(f"capture {name}:\n      hurl {value}\n      weir {other}")
    if hurl.failed != weir.failed:
        found.append(f"failed: hurl {hurl.failed}, weir {weir.failed}")
    return found


def _is_same_value(hurl: object, weir: object) -> bool:
    """Whether two values are the same; hurl writes bytes in Base64 and weir as hexadecimal digits."""
    if hurl == weir:
        return True
    try:
        return isinstance(hurl, str) and base64.b64decode(hurl, validate=True).hex() == weir
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
