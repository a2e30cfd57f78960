"""The limits of benches/harness/limits.py and their oracle by what can be worked out by hand; the service with them."""

import http.client
import math
import os
import random
from contextlib import suppress
from http.client import HTTPMessage

import pytest
from harness import limits
from harness.limited import Limited, limited, log

pytestmark = pytest.mark.wide


def taken(text: str, seconds: float, seed: int) -> list[float]:
    """Return the times of accepted requests of a client that sends at random times."""
    limit, rng, now_s, accepted = limits.read(text), random.Random(seed), 100.0, []
    assert limit
    while now_s < 100 + seconds:
        if limit.take(now_s) == 0:
            accepted.append(now_s)
        now_s += rng.expovariate(50)
    return accepted


def most(text: str, **more: float) -> list[float]:
    """Return the times of the oracle, from 100 s on."""
    limit = limits.read(text)
    assert limit
    return limits.oracle(limit, begin_s=100, until_s=more.pop("until_s", 110), **more)  # type: ignore[arg-type]


def get(port: int, target: str) -> tuple[int, HTTPMessage]:
    """Status and headers of a response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", target)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.headers


@pytest.mark.parametrize(("limit", "count"), [("bucket:20/1s", 20 + 200), ("fixed:20/1s", 200), ("sliding:20/1s", 200)])
def test_the_oracle_gets_what_the_limit_allows(limit: str, count: int) -> None:
    assert len(most(limit)) == pytest.approx(count, abs=1)


def test_no_client_gets_more_than_the_oracle() -> None:
    for limit in ("bucket:20/1s", "fixed:20/1s", "sliding:20/1s"):
        for seed in range(20):
            assert len(taken(limit, 10, seed)) <= len(most(limit)), (limit, seed)


def test_a_sliding_window_never_has_more_than_its_count() -> None:
    times = taken("sliding:20/1s", 10, 1)
    assert all(late - early >= 1 - 1e-6 for early, late in zip(times, times[20:], strict=False))


def test_the_oracle_of_a_half_used_bucket_with_a_neighbour() -> None:
    limit = limits.read("bucket:2000/10s")
    assert limit
    assert limit.take(100, 1000) == 0
    others = [100 + number / 50 for number in range(1, 10_000)]
    done = limits.oracle(limit, begin_s=100, until_s=math.inf, jobs=3000, others=others)
    # 2,000 more than there are, at 200 less 50 in a second.
    assert done[-1] - done[0] == pytest.approx(2000 / 150, rel=0.01)


def test_the_oracle_of_a_concurrency_limit_keeps_all_of_it_at_work() -> None:
    done = most("concurrency:5", work=Limited(work=(0.1, 0.3)).work_times())  # type: ignore[arg-type]
    assert len(done) == pytest.approx(5 * 10 / 0.2, rel=0.05)


def test_what_a_rejection_is_told_to_wait_is_enough() -> None:
    for text in ("bucket:20/1s", "fixed:20/1s", "sliding:20/1s"):
        limit = limits.read(text)
        assert limit
        assert [limit.take(100.3) for _ in range(20)] == [0.0] * 20
        wait_s = limit.take(100.3)
        assert limit.take(100.3 + wait_s / 2) > 0, text
        assert limit.take(100.3 + wait_s + 1e-6) == 0, text


@pytest.mark.parametrize("text", ["bucket:20", "concurrency:5/1s", "window:5/1s", "5/1s"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid limit"):
        limits.read(text)


def test_the_service_counts_what_it_accepts_and_rejects() -> None:
    what = Limited("bucket:3/60s", used=1, headers=True, retry_after=True, way=(0, 0), work=(0, 0))
    with limited(what, min(os.sched_getaffinity(0))) as server:
        responses = [get(server.port, f"/job?id={name}") for name in "abbc"]
        seen = log(server)
    assert [status for status, _ in responses] == [200, 200, 429, 429]
    assert [headers["x-ratelimit-remaining-requests"] for _, headers in responses] == ["1", "0", "0", "0"]
    assert 19 <= int(responses[2][1]["retry-after"]) <= 20
    assert (seen.ids, len(seen.rejected), seen.delivered()) == (["a", "b"], 2, 2)


def test_the_service_counts_requests_in_an_outage() -> None:
    what = Limited(outage="503", outage_after_s=0, outage_s=60, way=(0, 0), work=(0, 0))
    with limited(what, min(os.sched_getaffinity(0))) as server:
        statuses: list[int] = []
        while statuses.count(503) < 2:
            with suppress(OSError, http.client.HTTPException):  # connections are reset when it begins
                statuses.append(get(server.port, "/job?id=a")[0])
        seen = log(server)
    assert len(seen.in_outage) == 2
    assert len(seen.accepted) >= statuses.count(200), "one was worked on when it began"
