"""The adapter for requests: what it returns is what requests' own returns, and what it adds."""

import io
import itertools
import pickle
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import urllib3
from raw_service import Pieces, raw_service, response
from transport_calls import BROKEN, ODD, closing, failing, requests_of, silent, stalled

import weir
import weir.requests


def session(**options: Any) -> requests.Session:
    """A session with the adapter."""
    made = requests.Session()
    made.trust_env = False
    adapter = weir.requests.Adapter(**options)
    made.mount("http://", adapter)
    made.mount("https://", adapter)
    return made


def own() -> requests.Session:
    """A session with requests' own."""
    made = requests.Session()
    made.trust_env = False
    return made


def outcome(call: Callable[[], requests.Response]) -> Any:
    """What a caller sees of a call: the response, or the exception with all its classes."""
    try:
        got = call()
    except requests.RequestException as error:
        return type(error).__mro__, error.request is not None
    dated = [(name, value) for name, value in got.raw.headers.items() if name.lower() != "date"]
    cookies = sorted((cookie.name, cookie.value) for cookie in got.cookies)
    return got.status_code, got.reason, dated, got.content, got.url, got.raw.version, cookies, got.is_redirect


def test_two_hundred_requests_have_the_same_outcome() -> None:
    with weir.serve("httpbin") as service, own() as plain, session() as ours:
        for method, url, shape in requests_of(service.url):
            if "files" in shape:
                # Its boundary is drawn anew.
                continue
            arguments = {"data" if name == "content" else name: value for name, value in shape.items()}
            both = [
                outcome(lambda one=one: one.request(method, url, allow_redirects=False, **arguments))  # type: ignore[misc]  # noqa: B023
                for one in (plain, ours)
            ]
            assert both[0] == both[1], (method, url, shape)


@pytest.mark.parametrize("kind", sorted({*ODD, *BROKEN} - {"interim"}))
def test_odd_and_broken_responses_have_the_same_outcome(kind: str) -> None:
    with raw_service(closing((ODD | BROKEN)[kind])) as service:
        both = [outcome(lambda one=one: one.get(service.url, allow_redirects=False)) for one in (own(), session())]  # type: ignore[misc]
    if kind == "half a head":
        # http.client takes what there is for all of it.
        assert both[1][0][0] is requests.ConnectionError
    else:
        assert both[1][0] == both[0][0]
        assert isinstance(both[0][0], tuple) or both[1] == both[0]


def test_an_interim_response_is_not_the_final_one() -> None:
    # http.client takes it for that.
    with raw_service(closing(ODD["interim"])) as service:
        assert session().get(service.url).status_code == 200


def test_requests_that_cannot_be_sent_fail_as_before() -> None:
    for url in ("http://127.0.0.1:1/", "http://name.invalid/"):
        both = [outcome(lambda one=one: one.get(url)) for one in (own(), session())]  # type: ignore[misc]  # noqa: B023
        assert both[0] == both[1], url
    wrong: list[Any] = ["soon", -1, (1, 2, 3)]
    for timeout in wrong:
        with pytest.raises(ValueError, match=r"[Tt]imeout"):
            session().get("http://127.0.0.1:1/", timeout=timeout)
    with pytest.raises(OSError, match=r"invalid path: /nowhere\.pem"):
        session().get("https://127.0.0.1:1/", verify="/nowhere.pem")


@pytest.mark.parametrize("timeout", [0.2, (60, 0.2), urllib3.Timeout(connect=60, read=0.2)])
def test_timeouts_hold(timeout: Any) -> None:
    with raw_service(silent) as service, pytest.raises(requests.ReadTimeout, match="Read timed out"):
        session().get(service.url, timeout=timeout)
    # As requests has it, a body that does not come in time is a ConnectionError.
    with raw_service(stalled) as service, pytest.raises(requests.ConnectionError):
        session().get(service.url, timeout=timeout)


def test_a_deadline_retries_and_attempts() -> None:
    with raw_service(silent) as service, pytest.raises(requests.Timeout) as raised:
        session(deadline=0.2).get(service.url)
    assert isinstance(raised.value.__cause__, weir.DeadlineExceeded)
    with raw_service(failing(2)) as service:
        got = session(retries=2).get(service.url)
        assert (got.text, [attempt.outcome for attempt in got.weir.attempts]) == ("ok", ["status", "status", "won"])  # type: ignore[attr-defined]
    with raw_service(failing(9)) as service:
        assert session(retries=2).post(service.url, data=b"x").status_code == 503
        assert len(service.heads) == 1


def test_redirects_cookies_and_credentials_are_as_before() -> None:
    def respond(head: str) -> Pieces:
        if "GET /first" in head:
            return [response(b"", "Location: /second", "Set-Cookie: a=b; Path=/", status="302 Found")]
        return [response(b"there")]

    seen = []
    for one in (own(), session()):
        with raw_service(respond) as service:
            got = one.get(service.url + "/first", auth=("user", "secret"))
            assert (got.text, [step.status_code for step in got.history]) == ("there", [302])
            last = service.heads[-1].replace(service.url.partition("//")[2], "HOST").split("\r\n")
            seen.append(sorted(line for line in last if not line.lower().startswith("host")))
    assert seen[0] == seen[1]
    assert "Cookie: a=b" in seen[0]


def test_bodies_stream_both_ways() -> None:
    with weir.serve("httpbin", max_body=1 << 24) as service, session() as one:
        with one.get(service.url + "/static?bytes=3000000", stream=True) as got:
            assert sum(len(piece) for piece in got.iter_content(50_000)) == 3_000_000
        with one.get(service.url + "/static?bytes=3000000", stream=True) as got:
            assert len(got.raw.read(1000)) == 1000
        file = io.BytesIO(bytes(3_000_000))
        assert len(one.post(service.url + "/echo", data=file).content) == 3_000_000

        def pieces() -> Iterator[bytes]:
            yield from itertools.repeat(bytes(10_000), 300)

        assert len(one.post(service.url + "/echo", data=pieces()).content) == 3_000_000
        assert one.post(service.url + "/echo", data="text").text == "text"


def test_threads_share_a_session() -> None:
    with weir.serve("httpbin") as service, session(retries=1) as one:
        statuses: list[int] = []

        def calls() -> None:
            statuses.extend(one.get(service.url + "/status/200").status_code for _ in range(20))

        threads = [threading.Thread(target=calls) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 160


def test_calls_by_a_proxy_are_the_librarys_own() -> None:
    with raw_service(lambda _: [response(b"by proxy")]) as proxy, session(deadline=5) as one:
        with pytest.warns(UserWarning, match="calls through a proxy are the library's own"):
            assert one.get("http://name.invalid/", proxies={"http": proxy.url}).text == "by proxy"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert one.get("http://name.invalid/", proxies={"http": proxy.url}).text == "by proxy"


def test_a_session_can_be_pickled() -> None:
    with raw_service(failing(1)) as service:
        restored = pickle.loads(pickle.dumps(session(retries=1, hedge=weir.Hedge(after=9))))
        began = time.monotonic()
        assert restored.get(service.url).text == "ok"
        assert time.monotonic() - began < 9
