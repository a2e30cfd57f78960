"""`weir.Sender`: invalid options and jobs."""

from typing import Any

import pytest

import weir

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "http://h/{token}"}, "url: unknown field '{token}'"),
    ({"url": "ftp://h"}, "url: "),
    ({"url": "http://h/{key}"}, "'{key}' is used, but there are no keys; give keys"),
    ({"keys": ["a", "a"]}, "is given twice"),
    ({"keys": [""]}, "keys: an empty key"),
    ({"limits": "0/1s"}, "limits: "),
    ({"limits": ["20"]}, "limits: "),
    ({"limits": "host=a.example"}, "limits: invalid limit 'host=a.example': a host without a limit"),
    ({"backoff": (0, 1)}, "invalid backoff: the first wait is above 0"),
    ({"backoff": (2, 1)}, "invalid backoff: "),
    ({"weight_limits": "x"}, "weight_limits: "),
    ({"delay_bound": "soon"}, "delay_bound: invalid time 'soon'"),
    ({"timeout": 0}, "timeout: "),
    ({"max_concurrency": 0}, "max_concurrency: 0 is out of range; give 1 to 60000"),
    ({"retries": -1}, "retries: -1 is out of range"),
    ({"order": "random"}, "unknown order 'random'; choose deadline or arrival"),
    ({"renew_expired": True}, "renew_expired: no ttl to renew"),
    ({"max_queue": 0}, "invalid max_queue 0; give 1 or more"),
    ({"success": "good"}, "success: unknown status 'good'"),
    ({"method": "GET /"}, 'invalid method "GET /"'),
    ({"headers": {"a b": "c"}}, "invalid header name"),
    ({"headers": {"a": "{user}"}}, "header: unknown field '{user}'"),
    ({"headers": {"Authorization": "x"}}, "header 'Authorization' is a credential, and no host may have it; give url"),
    ({"url": "http://h", "key_hosts": ["a/b"]}, "invalid key_hosts='a/b'; write HOST, HOST:PORT or https://HOST"),
    ({"max_pause": None}, "invalid max_pause"),
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[words for _, words in WRONG])
def test_options_that_make_no_sense_are_usage_errors(options: dict[str, Any], words: str) -> None:
    with pytest.raises(weir.UsageError) as caught:
        weir.Sender(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


WRONG_JOBS: list[tuple[Any, str]] = [
    ({"url": "ftp://h/"}, "'ftp'"),
    ({}, "no url, and the sender has none; give url to either"),
    ({"url": "http://h", "weight": 0}, "invalid weight 0"),
    ({"url": "http://h", "weight": -1}, "weight: "),
    ({"url": "http://h", "id": ""}, "empty id"),
    ({"url": "http://h", "ttl": "soon"}, "ttl: invalid time 'soon'"),
    ({"url": "http://h", "json": {}, "content": ""}, "exclude each other"),
    ({"url": "http://h", "json": float("nan")}, "json: "),
    ({"url": "http://h", "pinned_key": "another"}, "unknown pinned_key; give one of the sender's keys"),
    ({"url": "http://h", "headers": {"a": "b\r\nc: d"}}, "has a control character"),
]


@pytest.mark.parametrize(("job", "words"), WRONG_JOBS, ids=[words for _, words in WRONG_JOBS])
def test_jobs_that_make_no_sense_are_usage_errors(job: dict[str, Any], words: str) -> None:
    with weir.Sender(keys=["alpha-key-0123456789", "beta-key-0123456789"]) as sender:
        with pytest.raises(weir.UsageError) as caught:
            sender.submit(**job)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        with pytest.raises(weir.UsageError, match=r"^job 0: "):
            sender.enqueue_many([job, job])
        assert sender.stats().queued == 0


def test_wrong_types_are_type_errors() -> None:
    with weir.Sender("http://127.0.0.1:1/") as sender:
        for jobs in ([3], [{"urls": "/"}], [{"id": 1.5}], [{"headers": 3}], "/", 3):
            with pytest.raises(TypeError):
                sender.enqueue_many(jobs)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keys: "):
        weir.Sender(keys=[3])  # type: ignore[list-item]
