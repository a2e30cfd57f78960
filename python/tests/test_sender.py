"""`weir.Sender`: jobs, their results, and their ends; against services that count what they are sent."""

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Service
from programs import child
from sender_service import API, KEYS, TIMEOUT_S, two_keys

import weir


@pytest.fixture
def exchange() -> Iterator[weir.Service]:
    with two_keys() as service:
        yield service


def test_a_job_is_delivered_and_its_result_says_how(service: Service) -> None:
    with weir.Sender(service.url, headers={"X-Source": "tests", "X-Id": "{id}"}) as sender:
        result = sender.submit("/orders", json={"amount": 3}, id="order-7", method="put")
    assert (result.ok, result.state, result.status, result.failure) == (True, "done", 200, None)
    assert (result.content, result.text, result.id, result.number) == (b"hello", "hello", "order-7", 1)
    assert (result.attempts, result.last_key, result.maybe_sent) == (1, "none", False)
    assert result.sent_ms is not None
    assert result.service_ms is not None
    assert result.created_ms <= result.sent_ms <= result.ended_ms == result.created_ms + result.response_ms
    assert result.raise_for_state() is result
    assert repr(result) == "<weir.JobResult order-7 done: 200>"
    (seen,) = service.seen
    assert (seen.method, seen.path, seen.body) == ("PUT", "/orders", b'{"amount":3}')
    assert (seen.headers["X-Source"], seen.headers["X-Id"]) == ("tests", "order-7")
    assert seen.headers["Content-Type"] == "application/json"
    line = result.to_dict()
    assert json.loads(json.dumps(line)) == line
    assert list(line)[:4] == ["id", "state", "status", "body"]


def test_bodies_are_as_with_the_client(service: Service) -> None:
    with weir.Sender(service.url) as sender:
        sender.submit(content="grün")
        sender.submit(content=b"\x00\xff")
        sender.submit(data={"a": [1, 2]}, headers={"X-A": "b"})
        sender.submit()
    kinds = [(seen.method, seen.headers["Content-Type"], seen.body) for seen in service.seen]
    assert kinds == [
        ("POST", "text/plain; charset=utf-8", "grün".encode()),
        ("POST", None, b"\x00\xff"),
        ("POST", "application/x-www-form-urlencoded", b"a=1&a=2"),
        ("GET", None, b""),
    ]


def test_jobs_are_data_unless_their_fields_are_wanted(service: Service) -> None:
    text = "Repeat: {key}, {nonce}, {id} {other}"
    headers = {"X-Key": "{key}"}
    with weir.Sender(service.url, keys=KEYS[:1], headers=headers, max_concurrency=1) as sender:
        sender.submit(json={"content": text}, id="a", headers={"X-Id": "{id}"})
        sender.submit("/{id}?k={key}", content=text, id="b")
        sender.submit(data={"a": text}, id="c")
    with weir.Sender(service.url, keys=KEYS[:1], body_fields=True, url_fields=True) as sender:
        sender.submit("/{id}", json={"content": "{id}"}, id="d")
        with pytest.raises(weir.UsageError, match=r"unknown field '\{user\}'"):
            sender.submit("/{user}")
    a, b, c, d = service.seen
    assert (json.loads(a.body), a.headers["X-Id"], a.headers["X-Key"]) == ({"content": text}, "{id}", KEYS[0])
    assert (b.path, b.body) == ("/%7Bid%7D?k={key}", text.encode())
    assert c.body == b"a=Repeat%3A+%7Bkey%7D%2C+%7Bnonce%7D%2C+%7Bid%7D+%7Bother%7D"
    assert (d.path, d.body) == ("/d", b'{"content":"d"}')


def test_keys_and_credentials_go_to_their_hosts_only(service: Service) -> None:
    own = "http://127.0.0.1:1/"
    with weir.Sender(own, keys=KEYS[:1], headers={"Authorization": "Bearer {key}"}) as sender:
        with pytest.raises(weir.UsageError, match=r"needs an API key, and http://127.*; give key_hosts=http"):
            sender.submit(service.url)
        assert sender.submit(service.url, headers={"Authorization": "own"}).ok
    with weir.Sender(own, headers={"Cookie": "s=1", "X-Trace": "7"}) as sender:
        assert sender.submit(service.url).ok
    host = service.url.removeprefix("http://").strip("/")
    with weir.Sender(own, keys=KEYS[:1], key_hosts=host, headers={"Authorization": "{key}"}) as sender:
        assert sender.submit(service.url).ok
    first, second, third = service.seen
    assert first.headers["Authorization"] == "own"
    assert (second.headers["Cookie"], second.headers["X-Trace"]) == (None, "7")
    assert third.headers["Authorization"] == KEYS[0]


def test_a_job_that_fails_has_a_result_that_raises_when_asked(service: Service) -> None:
    with weir.Sender(service.url, retries=0) as sender:
        lost = sender.submit("/status?code=404", id="gone")
        assert (lost.ok, lost.state, lost.status, lost.failure) == (False, "dead_lettered", 404, "status 404")
        with pytest.raises(weir.JobFailed, match=r"^job gone failed: status 404$") as caught:
            lost.raise_for_state()
        assert caught.value.result is lost
        cut = sender.submit("/close")
        assert (cut.state, cut.status) == ("dead_lettered", None)
        assert cut.failure
        stats = sender.stats()
    assert (stats.dead_lettered, stats.failed, stats.done, stats.rejected) == (2, 2, 0, {429: 0, 400: 0})


def test_stats_name_what_limits_a_sender() -> None:
    with weir.serve("ratelimit", key=KEYS[:1], limit=["1/1h"], latency_in="0ms", latency_out="0ms") as exchange:
        sender = weir.Sender(exchange.url + API, keys=KEYS[:1], limits="1/1h")
        for number in range(3):
            sender.enqueue(id=f"job-{number}")
        until = time.monotonic() + TIMEOUT_S
        while sender.stats().limited_by != "rate_limit":
            assert time.monotonic() < until, sender.stats()
            time.sleep(0.05)
        sender.stop(0)


def test_a_job_whose_time_is_over_is_expired() -> None:
    with weir.serve("ratelimit", key=KEYS[:1], limit=["1/1h"], latency_in="0ms", latency_out="0ms") as exchange:
        with weir.Sender(exchange.url + API, keys=KEYS[:1], limits="1/1h") as sender:
            assert sender.submit(id="first").ok
            late = sender.submit(id="second", ttl="50ms")
        assert exchange.stats()["rejected"]["rate_limited"] == 0
    assert (late.state, late.attempts, late.status) == ("expired", 0, None)
    with pytest.raises(weir.JobExpired) as caught:
        late.raise_for_state()
    assert isinstance(caught.value, TimeoutError)


def test_nothing_is_rejected_within_the_limits(exchange: weir.Service) -> None:
    with weir.Sender(exchange.url + API, keys=KEYS, limits=["20/1s"], delay_bound="1s", ordered=True) as sender:
        results = list(sender.map({"id": n} for n in range(100)))
        stats = sender.stats()
    assert [result.id for result in results] == [str(n) for n in range(100)]
    assert [result.json()["req_id"] for result in results] == [str(n) for n in range(100)]
    assert {result.ok for result in results} == {True}
    assert len({result.last_key for result in results}) == 2
    assert (stats.done, stats.failed, stats.rejected) == (100, 0, {429: 0, 400: 0})
    counted = exchange.stats()
    assert (counted["accepted"], set(counted["rejected"].values())) == (100, {0})


def test_results_come_as_they_end_or_in_order(service: Service) -> None:
    jobs = ["/?ms=300", *(f"/?ms=0&n={n}" for n in range(5))]
    with weir.Sender(service.url) as sender:
        assert [result.number for result in sender.map(jobs)] == [1, 2, 3, 4, 5, 6]
        ended = [result.number for result in sender.as_completed(jobs)]
    assert sorted(ended) == [7, 8, 9, 10, 11, 12]
    assert ended[-1] == 7


def test_jobs_are_taken_no_further_ahead_than_asked(service: Service) -> None:
    taken = 0

    def jobs() -> Iterator[str]:
        nonlocal taken
        for _ in range(2000):
            taken += 1
            yield "/"

    with weir.Sender(service.url) as sender:
        results = sender.map(jobs(), ahead=10)
        assert next(results).ok
        # Jobs that come quickly are taken together, up to twice as many each time.
        assert taken < 50
        assert sum(result.ok for result in results) == 1999


def test_many_jobs_are_taken_in_together(service: Service) -> None:
    with weir.Sender(service.url) as sender:
        batch = sender.enqueue_many([weir.Job("/a"), {"url": "/b", "priority": 1}, "/c"])
        assert len(batch) == 3
        assert batch.wait(TIMEOUT_S)
        assert [result.state for result in batch] == ["done"] * 3
        assert [result.number for result in batch] == [1, 2, 3]
        assert batch.open == 0
        assert repr(batch) == "<weir.Batch of 3 jobs, 0 open>"
        assert len(sender.enqueue_many([])) == 0
    assert {seen.path for seen in service.seen} == {"/a", "/b", "/c"}


def test_a_ticket_has_its_result_when_there_is_one(service: Service) -> None:
    called: list[weir.Ticket] = []
    ended = threading.Event()

    def callback(ticket: weir.Ticket) -> None:
        called.append(ticket)
        ended.set()

    with weir.Sender(service.url) as sender:
        ticket = sender.enqueue("/slow?ms=300")
        assert not ticket.done()
        ticket.add_done_callback(callback)
        with pytest.raises(TimeoutError, match=r"job 1 has no result after 0\.01 s"):
            ticket.result(0.01)
        assert ticket.result().ok
        assert ended.wait(TIMEOUT_S)
        assert called == [ticket]
        ended.clear()
        ticket.add_done_callback(callback)
        assert ended.wait(TIMEOUT_S)
    assert called == [ticket, ticket]
    assert ticket.result().ok


def test_threads_share_a_sender(exchange: weir.Service) -> None:
    with (
        weir.Sender(exchange.url + API, keys=KEYS, limits="20/1s", delay_bound="1s", ordered=True) as sender,
        ThreadPoolExecutor(8) as pool,
    ):
        results = list(pool.map(lambda n: sender.submit(id=n), range(60)))
    assert [result.id for result in results] == [str(n) for n in range(60)]
    assert all(result.ok for result in results)
    assert set(exchange.stats()["rejected"].values()) == {0}


def test_submitting_waits_while_the_queue_is_full(service: Service) -> None:
    with weir.Sender(service.url, max_queue=2, max_concurrency=1) as sender:
        tickets = [sender.enqueue("/slow?ms=50") for _ in range(5)]
        # The last one came in when all but two were delivered.
        assert [ticket.done() for ticket in tickets[:3]] == [True] * 3
        with (
            pytest.raises(weir.NotAccepted, match="bytes, and the queue holds"),
            weir.Sender("http://h", max_queue_bytes=10) as small,
        ):
            small.enqueue(content="x" * 100)


def test_every_result_is_passed_to_a_callback(service: Service) -> None:
    told: list[int] = []

    def on_result(result: weir.JobResult) -> None:
        told.append(result.number)
        if result.number == 2:
            raise RuntimeError("a mistake of the caller's")

    with weir.Sender(service.url, on_result=on_result) as sender:
        sender.enqueue_many(["/"] * 4)
    assert sorted(told) == [1, 2, 3, 4]


def test_jobs_in_a_file_go_on_with_the_next_sender(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    with (
        contextlib.suppress(RuntimeError),
        weir.Sender(service.url, store=store, max_concurrency=1, grace=0) as sender,
    ):
        left = sender.enqueue_many({"url": "/slow?ms=10000", "id": n} for n in range(3))
        raise RuntimeError("out of the block")
    with pytest.raises(weir.SenderEnded, match=r"it stays in .*jobs\.db"):
        list(left)
    told: list[str | None] = []
    with weir.Sender(service.url, store=store, on_result=lambda result: told.append(result.id)) as sender:
        assert counted(store) == 3
        sender.stop(grace=0)
        assert sender.is_closed
    assert told == []


def counted(store: Path) -> int:
    with contextlib.closing(sqlite3.connect(store)) as rows:
        return int(rows.execute("SELECT count(*) FROM job").fetchone()[0])


def test_a_file_that_this_process_reads_with_a_sqlite_of_its_own_keeps_its_log(
    service: Service, tmp_path: Path
) -> None:
    store = tmp_path / "jobs.db"
    with (
        contextlib.suppress(RuntimeError),
        weir.Sender(service.url, store=store, max_concurrency=1, grace=0) as sender,
    ):
        sender.enqueue("/slow?ms=10000", id="first")
        for number in range(20):
            assert counted(store) == number + 1
            sender.enqueue("/", id=f"{number}")
        assert (tmp_path / "jobs.db-wal").exists()
        elsewhere = child(
            f"import sqlite3; print(*sqlite3.connect({str(store)!r}).execute('SELECT count(*) FROM job'))"
        )
        assert elsewhere.stdout == "(21,)\n"
        raise RuntimeError("out of the block")
    assert counted(store) == 21
    weir.Sender(service.url, store=store).close()


def test_a_job_is_sent_once_by_its_name(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    with weir.Sender(service.url, store=store) as sender:
        first = sender.submit("/", id="once")
        again = sender.submit("/", id="once")
    with weir.Sender(service.url, store=store) as sender:
        later = sender.submit("/", id="once")
    assert (again.number, again.state, again.status) == (first.number, "done", 200)
    assert (later.number, later.state, later.status, later.text) == (first.number, "done", 200, "hello")
    assert len(service.seen) == 1


def test_two_wait_for_one_job(service: Service) -> None:
    with weir.Sender(service.url) as sender:
        tickets = [sender.enqueue("/slow?ms=100", id="shared") for _ in range(3)]
        assert {ticket.result(TIMEOUT_S).number for ticket in tickets} == {1}
    assert len(service.seen) == 1


def test_a_file_has_one_sender_at_a_time(tmp_path: Path) -> None:
    store = tmp_path / "jobs.db"
    with weir.Sender("http://h", store=store), pytest.raises(weir.SetupError, match=r"another process .*sends from"):
        weir.Sender("http://h", store=store)
    with weir.Sender("http://h", store=store):
        pass


def test_a_job_goes_by_the_key_that_it_names(exchange: weir.Service) -> None:
    keys = {"alpha": KEYS[0], "beta": KEYS[1]}
    with weir.Sender(exchange.url + API, keys=keys, limits="20/1s", delay_bound="1s", ordered=True) as sender:
        jobs = [{"pinned_key": ("alpha", KEYS[1], "beta")[number % 3]} for number in range(9)]
        sent = [result.last_key for result in sender.map(jobs)]
        assert sent == ["alpha", "beta", "beta"] * 3
        with pytest.raises(weir.UsageError, match="one of the sender's keys"):
            sender.submit(pinned_key="gamma")


def test_a_sender_without_a_usable_key_ends(exchange: weir.Service) -> None:
    sender = weir.Sender(exchange.url + API, keys=["wrong-key-0123456789"], limits="20/1s")
    with pytest.raises(weir.SenderEnded, match="all keys are disabled"):
        sender.submit()
    with pytest.raises(weir.SenderEnded, match="check the keys"):
        sender.submit()
    assert list(sender.stats().disabled_keys.values()) == ["unknown API key (401)"]
    with pytest.raises(weir.SenderEnded):
        sender.close()


def test_a_closed_sender_takes_no_jobs(service: Service) -> None:
    with weir.Sender(service.url) as sender:
        pass
    for ask in (sender.submit, sender.enqueue, lambda: sender.enqueue_many([]), lambda: next(sender.map(["/"]))):
        with pytest.raises(weir.UsageError, match="the sender is closed"):
            ask()
    sender.close()
    sender.stop()


def test_without_a_limit_nothing_is_held_back(service: Service) -> None:
    with weir.Sender(service.url, limits="none") as sender:
        assert all(result.ok for result in sender.map(["/"] * 300))
    with pytest.raises(weir.UsageError, match="limit"):
        weir.Sender(service.url, limits=["none", "20/1s"])
