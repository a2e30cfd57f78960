"""`weir.Client`: the API of httpx, against real services."""

import gzip
import json
import pickle
import zlib
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from conftest import Service

import weir


def test_a_response_has_the_attributes_of_httpx(service: Service) -> None:
    with weir.Client() as client:
        response = client.get(service.url + "/hello?a=b")
    assert (response.status_code, response.reason_phrase, response.http_version) == (200, "OK", "HTTP/1.1")
    assert (response.content, response.text, response.encoding) == (b"hello", "hello", "utf-8")
    assert response.headers["CONTENT-length"] == "5"
    assert response.url == service.url + "/hello?a=b"
    assert repr(response) == "<weir.Response [200 OK]>"
    assert response.is_success
    assert not response.is_error
    assert response.raise_for_status() is response
    assert timedelta(0) < response.elapsed < timedelta(seconds=30)
    (attempt,) = response.attempts
    assert (attempt.number, attempt.reason, attempt.outcome, attempt.status) == (1, "first", "won", 200)
    assert attempt.upstream == f"127.0.0.1:{service.port}"
    assert attempt.started_ms <= attempt.duration_ms
    assert response.won == attempt
    assert (response.request.method, response.request.url) == ("GET", response.url)


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_methods_have_their_names(service: Service, method: str) -> None:
    with weir.Client(base_url=service.url) as client:
        assert getattr(client, method)("/x").text == "hello"
        assert client.request(method, "/x").text == "hello"
    assert [seen.method for seen in service.seen] == [method.upper()] * 2


def test_a_request_is_encoded_as_by_httpx(service: Service) -> None:
    with weir.Client(base_url=service.url + "/api/", params={"v": 1}, headers={"X-Shared": "yes"}) as client:
        client.post("items", params={"q": "a b", "n": [1, 2], "t": True}, json={"ü": [1.5, None]}, headers={"x-a": "1"})
        client.post("/items", data={"name": "a&b", "n": 1})
        client.put("?x=ä", content="text", headers=[("x-m", "1"), ("x-m", "2"), ("user-agent", ""), ("X-Shared", "no")])
    first, second, third = service.seen
    assert first.path == "/api/items?v=1&q=a+b&n=1&n=2&t=true"
    assert first.body == '{"ü":[1.5,null]}'.encode()
    assert first.headers["content-type"] == "application/json"
    assert first.headers["accept-encoding"] == "gzip, deflate"
    assert first.headers["user-agent"] == f"weir/{weir.__version__}"
    assert (first.headers["x-shared"], first.headers["x-a"]) == ("yes", "1")
    assert (second.path, second.body) == ("/api/items?v=1", b"name=a%26b&n=1")
    assert second.headers["content-type"] == "application/x-www-form-urlencoded"
    assert third.path == "/api/?x=%C3%A4&v=1"
    assert third.headers.get_all("x-m") == ["1", "2"]
    assert third.headers["user-agent"] is None
    assert third.headers["x-shared"] == "no"
    assert third.body == b"text"


def test_authentication_is_basic(service: Service) -> None:
    with weir.Client(auth=("user", "pass")) as client:
        client.get(service.url)
        client.get(service.url, auth=("other", "pä"))
        response = client.get(service.url.replace("//", "//me:se%20cret@"))
    sent = [seen.headers["authorization"] for seen in service.seen]
    assert sent == ["Basic dXNlcjpwYXNz", "Basic b3RoZXI6cMOk", "Basic bWU6c2UgY3JldA=="]
    assert "cret" not in response.url
    assert "***" in repr(response.request.headers)


def test_a_url_is_that_of_a_browser(service: Service) -> None:
    with weir.Client(params={"p": "a b"}) as client:
        client.get(service.url + """/ä b<`{^}>?w={"a":'1'}&q=%2B#x""")
        client.get(service.url.replace("//", "//me@") + "/a/../b")
        for wrong in [
            "http://me:S3CRET@h:x/?q=S3CRET",
            "http://m%zz:S3CRET@[h]/",
            "http://me:S3/CRET@h/",
            "http:///S3CRET",
        ]:
            with pytest.raises(weir.UsageError, match="url: ") as raised:
                client.get(wrong)
            assert "CRET" not in str(raised.value), wrong
    first, second = service.seen
    assert first.path == "/%C3%A4%20b%3C%60%7B%5E%7D%3E?w={%22a%22:%271%27}&q=%2B&p=a+b"
    assert (second.path, second.headers["authorization"]) == ("/b?p=a+b", "Basic bWU6")


def test_an_error_status_raises_in_raise_for_status_only(service: Service) -> None:
    with weir.Client() as client:
        response = client.get(service.url + "/status?code=503")
    assert (response.status_code, response.is_server_error, response.is_error) == (503, True, True)
    assert response.won is None
    with pytest.raises(weir.HTTPStatusError, match="503 Service Unavailable") as caught:
        response.raise_for_status()
    assert caught.value.response is response


class _Bodies(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    text = "grüße " * 100

    def do_GET(self) -> None:
        coding = self.path[1:]
        plain = self.text.encode("latin-1")
        raw = zlib.compressobj(wbits=-15)
        body = {
            "gzip": gzip.compress(plain),
            "members": gzip.compress(plain[:300]) + gzip.compress(plain[300:]),
            "deflate": zlib.compress(plain),
            "raw": raw.compress(plain) + raw.flush(),
            "cut": gzip.compress(plain)[:-20],
            "br": b"\x8b\x00\x80x\x03",
            "zstd": b"(\xb5/\xfd\x04\x00\t\x00\x00x",
            "utf-8": plain,
            "wrong": plain,
        }[coding]
        self.send_response(200)
        self.send_header("Content-Type", 'text/plain; charset="ISO-8859-1"')
        named = {"members": "gzip", "raw": "deflate", "cut": "gzip", "wrong": "gzip"}.get(coding, coding)
        self.send_header("Content-Encoding", named)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "a=1")
        self.send_header("Set-Cookie", "b=2")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture(scope="module")
def bodies() -> Any:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bodies) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("coding", ["gzip", "members", "deflate", "raw", "utf-8"])
def test_bodies_are_decoded(bodies: str, coding: str) -> None:
    with weir.Client() as client:
        response = client.get(bodies + coding)
    assert response.encoding == "iso-8859-1"
    assert response.text == _Bodies.text
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    response.encoding = "ascii"
    assert "\ufffd" in response.text


@pytest.mark.parametrize("coding", ["cut", "wrong"])
def test_a_body_that_cannot_be_decoded_is_a_decoding_error(bodies: str, coding: str) -> None:
    with weir.Client() as client:
        response = client.get(bodies + coding)
        with pytest.raises(weir.DecodingError, match="not gzip"):
            _ = response.content


def test_json_and_large_bodies() -> None:
    with weir.serve("httpbin") as service, weir.Client(base_url=service.url) as client:
        assert len(client.get("/static?bytes=5000000").content) == 5_000_000
        with pytest.raises(json.JSONDecodeError):
            client.get("/static?bytes=10").json()
        assert client.head("/static?bytes=10").content == b""


USAGE: list[tuple[dict[str, Any], str]] = [
    ({"url": "nowhere"}, "url: 'nowhere' has no scheme"),
    ({"url": "ftp://x/"}, "scheme 'ftp'"),
    ({"url": "http://"}, "url: "),
    ({"method": "GET /"}, 'method: invalid method "GET /"'),
    ({"headers": {"a b": "c"}}, "headers: invalid name"),
    ({"headers": {"a": "b\r\nc: d"}}, "has a control character"),
    ({"headers": {"a": "€"}}, "characters outside latin-1"),
    ({"auth": ("a:b", "c")}, "auth: invalid user: it has a colon"),
    ({"json": 1, "data": {}}, "json and data exclude each other"),
    ({"json": float("inf")}, "json: Out of range float values"),
    ({"timeout": 0}, "timeout: invalid time 0"),
    ({"deadline": -1}, "deadline: invalid time -1"),
    ({"hedge": weir.Hedge(after="soon")}, "write e.g. 300ms"),
    ({"hedge": weir.Hedge(after="p100")}, "hedge: after: invalid percentile 'p100'"),
    ({"hedge": weir.Hedge(attempts=0)}, "hedge: attempts: 0 is out of range; give 1 to 16"),
    (
        {"hedge": weir.Hedge(after=None, on_failure=False)},
        "hedge: after: a stage with None starts after a failure only",
    ),
    ({"hedge": [weir.Hedge()] * 17}, "hedge, retries: 17 stages"),
    ({"retries": -1}, "retries: times: -1 is out of range"),
    ({"retries": weir.Retry(on=["slow"])}, "retries: on: unknown failure 'slow'"),
    ({"retries": weir.Retry(on=[99])}, "retries: on: unknown failure 99"),
    ({"retries": weir.Retry(backoff=(2, 1))}, "retries: backoff: the minimum, 2s, is above the maximum"),
    ({"budget": weir.Budget(fraction=-1)}, "budget: fraction: -1 is out of range"),
    ({"budget": weir.Budget(window=0)}, "budget: window: invalid time 0"),
    ({"budget": weir.Budget(min_per_s=0.03)}, "budget: min_per_s: 0.03 x window (10s) is not whole"),
    ({"budget": weir.Budget(min_per_s=-1)}, "budget: min_per_s: -1 is out of range"),
    ({"success": weir.Success(status=[])}, "success: status: empty; give statuses"),
    ({"success": weir.Success(schema={"type": "whatever"})}, "success: schema: "),
    ({"retry_methods": "every"}, "retry_methods: unknown class of methods 'every'; choose safe, idempotent or all"),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[words for _, words in USAGE])
def test_an_invalid_value_is_a_usage_error(service: Service, arguments: dict[str, Any], words: str) -> None:
    with weir.Client() as client, pytest.raises(weir.UsageError) as caught:
        client.request(**{"method": "GET", "url": service.url, **arguments})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert service.seen == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_concurrency": 0}, "max_concurrency: 0 is out of range; give 1 or more, or None"),
        ({"follow_redirects": True}, "redirects are not followed"),
        ({"verify": Path("/nowhere.pem")}, "verify /nowhere.pem"),
        ({"cert": "/nowhere.pem"}, "cert"),
        ({"deadline": 0}, "deadline: invalid time 0"),
    ],
)
def test_invalid_options_of_a_client_are_usage_errors(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(weir.UsageError, match=words):
        weir.Client(**arguments)


@pytest.mark.parametrize("client", [weir.Client, weir.AsyncClient])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limits": 3}, "unknown argument 'limits'; max_concurrency=N"),
        ({"proxy": "http://p"}, "unknown argument 'proxy'; there are no proxies"),
        ({"proxies": {}}, "unknown argument 'proxies'; there are no proxies"),
        ({"transport": object()}, "unknown argument 'transport'; there are no transports"),
        ({"event_hooks": {}}, "unknown argument 'event_hooks'; there are no hooks"),
        ({"cookies": {"a": "b"}}, "unknown argument 'cookies'; cookies are not kept"),
        ({"trust_env": False}, "unknown argument 'trust_env'; variables of the environment"),
        ({"http1": True}, "unknown argument 'http1'; HTTP/1.1 is always on"),
        ({"max_redirects": 3}, "unknown argument 'max_redirects'; redirects are not followed"),
        ({"nosuch": 1}, r"unknown argument 'nosuch'; see help\(weir.(Async)?Client\)"),
        ({"base_url": Path("/a")}, "base_url: text, not PosixPath; write str"),
        ({"auth": object()}, "auth: a pair of user and password, not object; give headers="),
        ({"verify": object()}, "verify: True, False or a PEM file of CA certificates, not object"),
        ({"cert": ("a", "b", "c")}, "keys with a password are not supported"),
        ({"timeout": (1, 2)}, "timeout: seconds for an attempt with its whole response, not tuple"),
    ],
)
def test_an_argument_of_httpx_that_a_client_has_not_names_what_it_has(
    client: Any, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(TypeError, match=words) as caught:
        client(**arguments)
    assert "BaseClient" not in str(caught.value)
    if words.startswith("unknown"):
        assert str(caught.value).startswith(f"weir.{client.__name__}: ")


@pytest.mark.parametrize("client", [weir.Client, weir.AsyncClient])
@pytest.mark.parametrize("name", ["timeout", "send", "stream", "handle_request"])
def test_an_sdk_that_gets_a_client_of_weir_as_one_of_httpx_is_told_of_the_transport(client: Any, name: str) -> None:
    transport = client.__name__.replace("Client", "Transport")
    with pytest.raises(
        AttributeError, match=rf"use httpx2\.{client.__name__}\(transport=weir\.httpx2\.{transport}\("
    ) as caught:
        getattr(client(), name)
    assert str(caught.value).startswith(f"weir.{client.__name__} has no attribute '{name}'")
    assert not hasattr(client(), name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nosuch'$"):
        _ = client().nosuch


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"follow_redirects": True}, "unknown option 'follow_redirects' of a call; redirects are not followed"),
        ({"files": {}}, "unknown option 'files' of a call; a multipart body is content="),
        ({"stream": True}, "unknown option 'stream' of a call; responses are read whole"),
        ({"nosuch": 1}, "unknown option 'nosuch' of a call"),
        ({"hedge": 3}, "hedge: expected a weir.Hedge or several"),
        ({"retries": "often"}, "retries: expected a number or a weir.Retry"),
        ({"budget": 1}, "budget: expected a weir.Budget"),
        ({"success": 200}, "success: expected a weir.Success"),
        ({"content": 1}, "content: text or bytes, not int"),
        ({"params": "a=b"}, "params: a mapping or pairs, not str"),
        ({"url": b"http://x"}, "url: text, not bytes"),
    ],
)
def test_a_wrong_type_is_a_type_error(service: Service, arguments: dict[str, Any], words: str) -> None:
    with weir.Client() as client, pytest.raises(TypeError, match=words):
        client.request(**{"method": "GET", "url": service.url, **arguments})


def test_a_refused_connection_is_connect_failed() -> None:
    with weir.Client() as client, pytest.raises(weir.ConnectFailed, match="connection refused") as caught:
        client.get("http://127.0.0.1:1/")
    assert [attempt.outcome for attempt in caught.value.attempts] == ["connect"]
    assert caught.value.response is None
    assert isinstance(caught.value, ConnectionError)


def test_a_call_without_a_response_has_the_kind_of_its_failure(service: Service) -> None:
    with weir.Client(base_url=service.url) as client:
        for path, kind in [("/close", "closed"), ("/garbage", "protocol")]:
            with pytest.raises(weir.AllAttemptsFailed) as caught:
                client.post(path)
            assert [attempt.outcome for attempt in caught.value.attempts] == [kind]
        with pytest.raises(weir.TimedOut) as timed_out:
            client.get("/slow?ms=2000", timeout=0.05)
        assert isinstance(timed_out.value, TimeoutError)


def test_the_exceptions_have_the_documented_bases() -> None:
    assert weir.ClientError.__mro__[1] is weir.WeirError
    assert issubclass(weir.DeadlineExceeded, TimeoutError)
    assert weir.ConnectFailed.__mro__[1:4] == (weir.AllAttemptsFailed, weir.ClientError, weir.WeirError)
    assert issubclass(weir.TimedOut, weir.AllAttemptsFailed)
    assert repr(weir.TimedOut) == "<class 'weir.TimedOut'>"


def test_an_error_pickles_with_its_attempts(service: Service) -> None:
    with weir.Client() as client, pytest.raises(weir.HTTPStatusError) as caught:
        client.get(service.url + "/status?code=404").raise_for_status()
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.attempts) == (str(caught.value), caught.value.attempts)
    assert again.attempts[0].status == 404


def test_a_closed_client_rejects_calls(service: Service) -> None:
    client = weir.Client()
    client.get(service.url)
    client.close()
    client.close()
    assert client.is_closed
    with pytest.raises(weir.UsageError, match="the client is closed"):
        client.get(service.url)


def test_headers_are_a_mapping_of_any_case() -> None:
    headers = weir.Headers([("A", "1"), ("b", "2"), ("a", "3")])
    assert (headers["a"], headers.get("B"), headers.get("c"), len(headers)) == ("1, 3", "2", None, 2)
    assert headers.multi_items() == [("a", "1"), ("b", "2"), ("a", "3")]
    assert headers.get_list("A") == ["1", "3"]
    assert weir.Headers({"X": "y"}) == {"x": "y"}
    assert "X" in weir.Headers({"x": "y"})


@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_a_coding_that_is_not_decoded_has_no_text(bodies: str, coding: str) -> None:
    with weir.Client() as client:
        response = client.get(bodies + coding)
    assert response.content[0] in {0x8B, 0x28}
    with pytest.raises(weir.DecodingError, match=f"the body is {coding}"):
        _ = response.text
    with pytest.raises(weir.DecodingError, match=f"the body is {coding}"):
        response.json()
