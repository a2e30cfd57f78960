"""`weir.Client`: the surface that people know from httpx, against real services."""

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


def test_a_get_has_what_a_response_has(service: Service) -> None:
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
    assert (attempt.number, attempt.why, attempt.outcome, attempt.status) == (1, "first", "won", 200)
    assert attempt.upstream == f"127.0.0.1:{service.port}"
    assert attempt.started_ms <= attempt.took_ms
    assert response.won == attempt
    assert (response.request.method, response.request.url) == ("GET", response.url)


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
def test_methods_have_their_names(service: Service, method: str) -> None:
    with weir.Client(base_url=service.url) as client:
        assert getattr(client, method)("/x").text == "hello"
        assert client.request(method, "/x").text == "hello"
    assert [seen.method for seen in service.seen] == [method.upper()] * 2


def test_a_request_goes_out_as_httpx_would_write_it(service: Service) -> None:
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


def test_an_error_status_is_a_response_until_it_is_asked_to_raise(service: Service) -> None:
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
def test_a_body_that_cannot_be_decoded_says_so(bodies: str, coding: str) -> None:
    with weir.Client() as client:
        response = client.get(bodies + coding)
        with pytest.raises(weir.DecodingError, match="not gzip"):
            _ = response.content


def test_json_and_large_bodies() -> None:
    with weir.serve("body") as service, weir.Client(base_url=service.url) as client:
        assert len(client.get("/static?bytes=5000000").content) == 5_000_000
        with pytest.raises(json.JSONDecodeError):
            client.get("/static?bytes=10").json()
        assert client.head("/static?bytes=10").content == b""


USAGE: list[tuple[dict[str, Any], str]] = [
    ({"url": "nowhere"}, "url: 'nowhere' has no scheme"),
    ({"url": "ftp://x/"}, "scheme 'ftp' is not known"),
    ({"url": "http://"}, "is not a URL"),
    ({"method": "GET /"}, 'method: "GET /" is not an HTTP method'),
    ({"headers": {"a b": "c"}}, "is not a header's name"),
    ({"headers": {"a": "b\r\nc: d"}}, "holds a control character"),
    ({"headers": {"a": "€"}}, "characters that no header can"),
    ({"auth": ("a:b", "c")}, "auth: a user's name cannot hold a colon"),
    ({"json": 1, "data": {}}, "json and data do not go together"),
    ({"json": float("inf")}, "json: Out of range float values"),
    ({"timeout": 0}, "timeout: 0 is no time"),
    ({"deadline": -1}, "deadline: -1 is not a time"),
    ({"hedge": weir.Hedge(after="soon")}, "hedge: after: 'soon' is not a time"),
    ({"hedge": weir.Hedge(after="p100")}, "hedge: after: 'p100' is no percentile"),
    ({"hedge": weir.Hedge(copies=0)}, "hedge: copies: 0 is out of range; give 1 to 16"),
    ({"hedge": weir.Hedge(after=None, on_failure=False)}, "hedge: after: None waits for a failure"),
    ({"hedge": [weir.Hedge()] * 17}, "hedge: 17 stages are too many"),
    ({"retry": -1}, "retry: times: -1 is out of range"),
    ({"retry": weir.Retry(on=["slow"])}, "retry: on: 'slow' is neither a status"),
    ({"retry": weir.Retry(on=[99])}, "retry: on: 99 is neither a status"),
    ({"retry": weir.Retry(backoff=(2, 1))}, "retry: backoff: the first wait"),
    ({"budget": weir.Budget(share=-1)}, "budget: share: -1 is out of range"),
    ({"budget": weir.Budget(window=0)}, "budget: window: 0 is no time"),
    ({"success": weir.Success(status=[])}, "success: status: no status at all"),
    ({"success": weir.Success(schema={"type": "whatever"})}, "success: schema: not a JSON Schema"),
    ({"repeat": "all"}, "repeat: 'all' is no guard; choose safe, idempotent or every"),
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[words for _, words in USAGE])
def test_a_value_that_makes_no_sense_is_a_usage_error(service: Service, arguments: dict[str, Any], words: str) -> None:
    with weir.Client() as client, pytest.raises(weir.UsageError) as caught:
        client.request(**{"method": "GET", "url": service.url, **arguments})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert service.seen == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"limit": 0}, "limit: there has to be room"),
        ({"follow_redirects": True}, "redirects are not followed"),
        ({"verify": Path("/nowhere.pem")}, "verify /nowhere.pem"),
        ({"cert": "/nowhere.pem"}, "cert"),
        ({"deadline": 0}, "deadline: 0 is no time"),
    ],
)
def test_a_client_that_makes_no_sense_is_not_made(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(weir.UsageError, match=words):
        weir.Client(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nosuch": 1}, "'nosuch' is no option of a call"),
        ({"hedge": 3}, "hedge: a hedge is a weir.Hedge"),
        ({"retry": "often"}, "retry: a retry is a number or a weir.Retry"),
        ({"budget": 1}, "budget: a budget is a weir.Budget"),
        ({"success": 200}, "success: a success is a weir.Success"),
        ({"content": 1}, "content: text or bytes, not int"),
        ({"params": "a=b"}, "params: a mapping or pairs, not str"),
        ({"url": b"http://x"}, "url: text, not bytes"),
    ],
)
def test_a_wrong_type_is_a_type_error(service: Service, arguments: dict[str, Any], words: str) -> None:
    with weir.Client() as client, pytest.raises(TypeError, match=words):
        client.request(**{"method": "GET", "url": service.url, **arguments})


def test_nobody_there_is_connect_failed() -> None:
    with weir.Client() as client, pytest.raises(weir.ConnectFailed, match="connection refused") as caught:
        client.get("http://127.0.0.1:1/")
    assert [attempt.outcome for attempt in caught.value.attempts] == ["connect"]
    assert caught.value.response is None
    assert isinstance(caught.value, ConnectionError)


def test_no_answer_has_its_kind(service: Service) -> None:
    with weir.Client(base_url=service.url) as client:
        for path, kind in [("/close", "closed"), ("/garbage", "protocol")]:
            with pytest.raises(weir.AllAttemptsFailed) as caught:
                client.post(path)
            assert [attempt.outcome for attempt in caught.value.attempts] == [kind]
        with pytest.raises(weir.TimedOut) as late:
            client.get("/slow?ms=2000", timeout=0.05)
        assert isinstance(late.value, TimeoutError)


def test_the_tree_is_as_drawn() -> None:
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


def test_a_closed_client_says_so(service: Service) -> None:
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
def test_a_coding_that_is_not_asked_for_is_no_text(bodies: str, coding: str) -> None:
    with weir.Client() as client:
        response = client.get(bodies + coding)
    assert response.content[0] in {0x8B, 0x28}
    with pytest.raises(weir.DecodingError, match=f"the body is {coding}"):
        _ = response.text
    with pytest.raises(weir.DecodingError, match=f"the body is {coding}"):
        response.json()
