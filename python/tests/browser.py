"""A headless Chromium, driven by its DevTools protocol over a pipe: a page is opened, asked, and watched."""

import base64
import fcntl
import json
import os
import select
import shutil
import time
from pathlib import Path
from typing import Any

import programs

FLAGS = [
    "--headless",
    "--no-sandbox",  # tests may run as root; the page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
WAIT_MS = 30_000
"""Milliseconds that a condition of a page may take."""
PATIENCE = 90.0
"""Seconds that one command may take."""


def chromium() -> str | None:
    """Where a Chromium is, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """A browser without a profile; one page at a time."""

    def __init__(self, folder: Path) -> None:
        """Start it, with its files in the folder."""
        path = chromium()
        assert path, "no Chromium here"
        command, self._write = os.pipe()
        self._read, answer = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4; neither may be in the way of the other.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (command, answer)]
        script = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}'
        command_line = ["bash", "-c", script, path, *FLAGS, f"--user-data-dir={folder}"]
        self._process = programs.start(*command_line, pass_fds=(ends[0], ends[1]), silent=True)
        for end in (command, answer, *ends):
            os.close(end)
        self._number = 0
        self._unread = b""
        self._session: str | None = None
        self._events: list[tuple[str, dict[str, Any]]] = []
        try:
            page = self.ask("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        os.close(self._write)
        self._process.kill()
        self._process.wait()
        os.close(self._read)

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command and return what it gives."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._next(until)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result
            self._keep(answer)

    def _keep(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self._events.append((message["method"], message.get("params", {})))

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            chunk = os.read(self._read, 1 << 20)
            assert chunk, "the browser has gone"
            self._unread += chunk
        message, _, self._unread = self._unread.partition(b"\0")
        value: dict[str, Any] = json.loads(message)
        return value

    def size(self, width: int, height: int, scale: float = 1, *, touch: bool = False) -> None:
        """Set the size of the window, in CSS pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": touch}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)

    def prefer(self, scheme: str) -> None:
        """Say that the user likes light or dark pages."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def open(self, url: str) -> float:
        """Open a page and return the seconds until all of it, its charts too, was painted once."""
        # What the page before says of its end is not about this one: its server may be gone.
        self._navigate("about:blank")
        self._events.clear()
        began = time.monotonic()
        self._navigate(url)
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - began

    def _navigate(self, url: str) -> None:
        loaded = self._loads()
        self.ask("Page.navigate", url=url)
        until = time.monotonic() + PATIENCE
        while self._loads() == loaded:
            self._keep(self._next(until))

    def _loads(self) -> int:
        return sum(name == "Page.loadEventFired" for name, _ in self._events)

    def evaluate(self, script: str) -> Any:
        """Run a script in the page and return its value, once that is there."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait in the page until a condition of JavaScript holds."""
        self.evaluate(f"""
            new Promise((done, fail) => {{
                const began = performance.now();
                const look = () => ({condition}) ? done(true)
                    : performance.now() - began > {WAIT_MS} ? fail(new Error({condition!r})) : setTimeout(look, 20);
                look();
            }})
        """)

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        text = key if len(key) == 1 else ""
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def mouse(self, kind: str, x: float, y: float, button: str = "none") -> None:
        """Move, press or release the mouse at a place in the window."""
        self.ask("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button=button, clickCount=1)

    def complaints(self) -> list[object]:
        """What the browser had to say against the page: errors, warnings, breaches of its policy."""
        bad = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [params for name, params in self._events if name in bad]

    def requests(self) -> list[str]:
        """What the page asked for: its own address, and nothing else if all is well."""
        sent = [params["request"]["url"] for name, params in self._events if name == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Keep a picture of what is in the window, or of the whole page."""
        picture = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))
