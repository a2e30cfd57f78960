"""Senders that share a queue on a Redis server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis_place import redis_at

import weir


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[str]:
    """The address of a queue on a private server."""
    place = tmp_path / "r.sock"
    with redis_at(place):
        yield f"redis+unix://{place}?queue=orders&lease=10s"


def test_who_submits_has_the_results_whichever_sender_sends(queue: str) -> None:
    with weir.serve("httpbin") as service:
        url = f"{service.url}/static"
        with weir.Sender(url, store=queue) as one, weir.Sender(url, store=queue) as other:
            # One key, and only one of the two can send by it.
            results = [sender.submit(id=f"{name}{n}") for n in range(5) for name, sender in (("a", one), ("b", other))]
            sent = [sender.stats().done for sender in (one, other)]
        assert [(result.state, result.status) for result in results] == [("done", 200)] * 10
        assert sorted(sent) == [0, 10]
        assert all(result.content for result in results)


def test_an_address_that_makes_no_sense_is_a_mistake_in_the_call() -> None:
    with pytest.raises(weir.UsageError, match="strict is 'yes'"):
        weir.Sender("http://localhost/", store="redis://localhost?strict=yes")


def test_a_server_that_is_not_there_is_told_without_its_password() -> None:
    with pytest.raises(weir.SetupError, match="is unreachable") as told:
        weir.Sender("http://localhost/", store="redis://me:secret@127.0.0.1:1/")
    assert "secret" not in str(told.value)
