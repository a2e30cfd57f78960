"""Time that the live page takes to draw 10,000 intervals and 50 steps in Chromium: prints milliseconds, median of 20.

python benches/scripts/draw_live.py WEIR
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests"))

from browser import Browser

DRAW = """
    (async () => {
        const { Store, page, render } = await import("/live.js");
        const store = new Store(1800, 1);
        const times = Array.from({ length: 120 }, (_, i) => [i * 1e4 + 1e5, i % 7 + 1]).flat();
        const bin = (n) => ({ n, w: 1, ok: 400, failed: 1, bytes: 9, in_flight: n % 9, backlog: 0,
            iterations: 9, cpu: 1e7, times, failed_times: [], status: { 200: 400 }, failures: { timeout: 1 },
            steps: Array.from({ length: 50 }, () => [8, 0, 0, 8e6]) });
        for (let n = 0; n < 10000; n++) store.take({ all: false, next: n + 1, bins: [bin(n)] });
        page.store = store;
        page.hello.steps = Array.from({ length: 50 }, (_, i) => `step ${i}`);
        const took = [];
        for (let n = 10000; n < 10020; n++) {
            await new Promise(requestAnimationFrame);
            store.take({ all: false, next: n + 1, bins: [bin(n)] });
            const began = performance.now();
            render();
            document.body.getBoundingClientRect();
            took.push(performance.now() - began);
        }
        return took.sort((a, b) => a - b)[10];
    })()
"""


def main(weir: str) -> None:
    """Open the page of a load, give it intervals, and print the time."""
    with tempfile.TemporaryDirectory(prefix="weir-draw-") as folder:
        serve = [weir, "serve", "httpbin", "--port", "0", "--quiet"]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as service:
            assert service.stdout
            url = re.findall(r"http://[^\"\s]+", service.stdout.readline())[0]
            load = [weir, "load", url, "--rate", "5", "-d", "120s", "--web=127.0.0.1:0", "--quiet"]
            with subprocess.Popen(load, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as loading:
                assert loading.stderr
                page = re.findall(r"http://\S+/#[\w-]+", loading.stderr.readline())[0]
                browser = Browser(Path(folder))
                try:
                    browser.size(1280, 900)
                    browser.open(page)
                    browser.evaluate("""
                        new Promise((done) => {
                            const found = () => document.querySelector("#figures data");
                            const look = () => found() ? done(true) : setTimeout(look, 20);
                            look();
                        })
                    """)
                    print(browser.evaluate(DRAW))
                finally:
                    browser.close()
                    loading.kill()
                    service.kill()


if __name__ == "__main__":
    main(sys.argv[1])
