"""`examples/smart_endpoint.py`, as it says that it is run, against a service that misbehaves."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs import started

import weir

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def endpoint(upstream: str) -> Iterator[str]:
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "smart_endpoint:app", "--port", "0"]
    with started(*command, "--no-access-log", env={**os.environ, "UPSTREAM": upstream}) as process:
        assert process.stderr
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1]
                return
        raise AssertionError("".join(said))


def test_the_smart_endpoint_answers_in_time() -> None:
    with (
        weir.serve("work", mix={"good": 5, "garbage": 2, "error": 3}, delay="1ms..5ms", seed=3) as upstream,
        endpoint(upstream.url + "/api/work") as url,
        weir.Client(base_url=url) as client,
    ):
        answers = [client.get("/api/smart/1000") for _ in range(60)]
        right = [answer for answer in answers if answer.status_code == 200]
        assert all("time" in answer.json() for answer in right)
        # Of three attempts, each right in half of all cases, one is: 7 in 8.
        assert 42 <= len(right) < 60
        assert {answer.status_code for answer in answers} == {200, 502}
        assert client.get("/api/smart/0").status_code == 422


def test_the_smart_endpoint_is_late_when_its_upstream_is() -> None:
    with (
        weir.serve("work", mix={"good": 1}, delay="30s", seed=3) as upstream,
        endpoint(upstream.url + "/api/work") as url,
        weir.Client(base_url=url, timeout=20) as client,
    ):
        answer = client.get("/api/smart/50")
        assert answer.status_code == 504
        assert "no answer after 0.05" in answer.text
        assert upstream.stats()["requests"] == 1
