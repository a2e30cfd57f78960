"""`examples/smart_endpoint.py`, run as documented, against an unreliable service."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from programs import started

import weir

pytestmark = pytest.mark.wide

EXAMPLES = Path(__file__).parents[2] / "examples"


@contextmanager
def endpoint(upstream: str) -> Iterator[str]:
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "smart_endpoint:app", "--port", "0"]
    with started(*command, "--no-access-log", env={**os.environ, "UPSTREAM": upstream}) as process:
        assert process.stderr
        printed = []
        for line in process.stderr:
            printed.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1]
                return
        raise AssertionError("".join(printed))


def test_the_smart_endpoint_responds_in_time() -> None:
    with (
        weir.serve("work", mix={"good": 5, "garbage": 2, "error": 3}, delay="1ms..5ms", seed=3) as upstream,
        endpoint(upstream.url + "/api/work") as url,
        weir.Client(base_url=url) as client,
    ):
        responses = [client.get("/api/smart/1000") for _ in range(60)]
        right = [response for response in responses if response.status_code == 200]
        assert all("time" in response.json() for response in right)
        # Three attempts, each successful with probability 1/2: 7 of 8 calls succeed.
        assert 42 <= len(right) < 60
        assert {response.status_code for response in responses} == {200, 502}
        assert client.get("/api/smart/0").status_code == 422


def test_the_smart_endpoint_times_out_with_its_upstream() -> None:
    with (
        weir.serve("work", mix={"good": 1}, delay="30s", seed=3) as upstream,
        endpoint(upstream.url + "/api/work") as url,
        weir.Client(base_url=url, timeout=20) as client,
    ):
        response = client.get("/api/smart/50")
        assert response.status_code == 504
        assert "no response after 0." in response.text
        assert upstream.stats()["requests"] == 1
