"""Programs of users as strict type checkers read them: those of `typed_snippets`, and what they are to reject."""

import json
import sys
from pathlib import Path

import pytest
from naming import ROOT
from programs import finished

pytestmark = pytest.mark.wide

SNIPPETS = Path(__file__).with_name("typed_snippets.py")
PYRIGHT = ROOT / ".venv" / "pyright" / "node_modules" / ".bin" / "pyright"

WRONG = """
import httpx2
import weir
import weir.httpx2

weir.httpx2.Transport(deadlines=1)
weir.httpx2.Transport(retry_methods="some")
weir.httpx2.Transport(limit="auto")
weir.httpx2.Transport(hedge=0.2)
httpx2.AsyncClient(transport=weir.httpx2.Transport())
weir.retry(on="ConnectionError")
weir.retry(on=OSError, attempt=3)
"""


def test_there_are_fifty_snippets() -> None:
    text = SNIPPETS.read_text("utf-8")
    assert sum(line.startswith(("def ", "async def ", "    def ")) for line in text.splitlines()) >= 50


def wrong_lines() -> set[int]:
    """Numbers of the lines that are wrong, from 1."""
    lines = enumerate(WRONG.splitlines(), 1)
    return {number for number, line in lines if line and not line.startswith("import")}


def test_mypy(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    # Both at once: what they import takes most of the time.
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "--output", "json")
    done = finished(*mypy, str(SNIPPETS), str(file), timeout_s=300)
    problems = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one for one in problems if Path(one["file"]).name != file.name] == [], done.stdout
    assert {one["line"] for one in problems} == wrong_lines(), done.stdout


def test_pyright(tmp_path: Path) -> None:
    if not PYRIGHT.exists():
        pytest.skip("no pyright; scripts/setup.sh test-all installs it if npm is there")
    (tmp_path / "snippets.py").write_text(SNIPPETS.read_text("utf-8"))
    (tmp_path / "wrong.py").write_text(WRONG)
    settings = {
        "include": ["*.py"],
        "extraPaths": [str(ROOT / "python")],
        "venvPath": str(ROOT),
        "venv": ".venv",
        "typeCheckingMode": "strict",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = finished(str(PYRIGHT), "-p", str(tmp_path), "--outputjson", timeout_s=300)
    problems = json.loads(done.stdout)["generalDiagnostics"]
    found = [(Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"]) for one in problems]
    assert [one for one in found if one[0] == "snippets.py"] == []
    assert {line for _, line, _ in found} == wrong_lines(), found
