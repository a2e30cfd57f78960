"""Studies whose loads a Python script drives."""

import json
import sys
from pathlib import Path

from programs import finished

START = "from weir import _script; _script.main()"

SCRIPT = """
import weir

class Shopper(weir.User):
    @weir.task(3)
    async def work(self):
        await self.get("/api/work", name="work")

    @weir.task
    async def fail(self):
        raise KeyError("basket")
"""

STUDY = """
repeats = 1
timeouts = { warmup = "0s", ready = "10s", stop = "2s" }
[loads.work]
url = "http://127.0.0.1:{port}"
scenario = "shop.py"
users = 3
duration = "400ms"
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "good=1"]
[variants.slow]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "5ms", "--mix", "good=1"]
"""


def _study(folder: Path, script: str = SCRIPT, text: str = STUDY) -> tuple[int, str, str]:
    (folder / "shop.py").write_text(script)
    (folder / "study.toml").write_text(text)
    done = finished(sys.executable, "-c", START, "study", "study.toml", "--format", "json", cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_a_script_drives_a_load_and_its_exceptions_come_at_the_end(tmp_path: Path) -> None:
    code, out, err = _study(tmp_path)
    assert code == 0, err
    cells = json.loads(out)["measurements"]
    assert [cell["failure"] for cell in cells] == [None, None]
    assert all(cell["loads"][0]["rate_per_s"] > 0 for cell in cells)
    assert "Shopper.fail raised an exception" in err
    assert "KeyError: 'basket'" in err


def test_mistakes_are_one_line_before_anything_is_started(tmp_path: Path) -> None:
    code, _, err = _study(tmp_path, script="x = 1\n")
    assert (code, "shop.py has no class of users" in err) == (2, True), err
    code, _, err = _study(tmp_path, text=STUDY.replace("duration", "threads = 2\nduration"))
    assert (code, "Python runs on one thread" in err) == (2, True), err
