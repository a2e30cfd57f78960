"""Requests of an imported file, as the tool that it is from sends them and as weir sends them.

A service on the loopback interface records both. Compared are method, target, headers (but those of the connection and
those that name the program) and the bytes of the body; the boundary of a form is always the same.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from recording_service import RecordedRequest, RecordingService  # noqa: E402  it is where the scripts are

__all__ = ["Comparable", "Played", "RecordedRequest", "RecordingService", "comparable", "judge", "program"]

TIMEOUT_S = 100
Comparable: TypeAlias = tuple[str, str, list[str], str]

# Of the connection, or of the program that sends: caches, tracing, what it accepts.
UNCOMPARED = {
    "accept",
    "accept-encoding",
    "cache-control",
    "connection",
    "content-length",
    "expect",
    "host",
    "postman-token",
    "transfer-encoding",
    "user-agent",
}


def judge(*places: str) -> Path:
    """Program or folder of a judge in .venv; without it the test is skipped."""
    path = ROOT.joinpath(".venv", *places)
    if not path.exists():
        pytest.skip(f"no {path.relative_to(ROOT)}; scripts/setup.sh soak installs it")
    return path


def program(name: str) -> str:
    """Path of a program; without it the test is skipped."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name}")
    return path


def comparable(request: RecordedRequest) -> Comparable:
    """Return the request as it is compared."""
    boundary = request.header("content-type").partition("boundary=")[2].strip('"')

    def same(text: str) -> str:
        return text.replace(boundary, "BOUNDARY") if boundary else text

    kept = [(name.lower(), value) for name, value in request.headers if name.lower() not in UNCOMPARED]
    # A space behind the semicolon of a type means nothing, nor does the charset of a form or of JSON.
    plain = [
        (name, re.sub(";[ ]*(charset=utf-8)?", lambda found: "" if found[1] else ";", value, flags=re.I))
        for name, value in kept
    ]
    headers = sorted(same(f"{name}: {value}") for name, value in plain)
    return request.method, request.target, headers, same(request.body.decode("latin-1"))


class Played:
    """What both have sent, and what the import lists."""

    def __init__(self, file: Path, weir: list[str], tool: list[str]) -> None:
        """Play a file, in which PORT stands for the port of the service."""
        service = RecordingService()
        template = file.read_text()
        file.write_text(template.replace("PORT", str(service.port)))
        done = subprocess.run(tool, cwd=file.parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.output = done.stdout[-2000:] + done.stderr[-2000:]
        self.of_tool = [comparable(exchange.request) for exchange in service.exchanges]
        service.exchanges.clear()
        scenario = file.with_suffix(".hurl")
        imported = self._run([*weir, "import", file.name, "-o", scenario.name], file.parent)
        self.listed = imported.stderr
        values = file.with_suffix(".env")
        given = ["--variables-file", values.name] if values.exists() else []
        run = self._run([*weir, "run", scenario.name, *given], file.parent)
        self.trace = run.stdout[-2000:] + run.stderr[-2000:]
        self.of_weir = [comparable(exchange.request) for exchange in service.exchanges]
        self.scenario = scenario.read_text() if scenario.exists() else ""
        service.close()

    @staticmethod
    def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)

    def differences(self) -> str:
        """Return what differs, a line each."""
        lines = (
            [f"{len(self.of_tool)} and {len(self.of_weir)} requests"] if len(self.of_tool) != len(self.of_weir) else []
        )
        pairs = zip(self.of_tool, self.of_weir, strict=False)
        lines += [f"tool: {one}\nweir: {other}" for one, other in pairs if one != other]
        shown = f"{self.listed}\n{self.scenario}\n{self.trace}\n{self.output}"
        return "\n".join(lines) and "\n".join(lines) + "\n" + shown
