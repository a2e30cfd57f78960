"""Credentials of a client: where they go, and what shows them."""

import asyncio
import contextlib
import copy
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conftest import Service, running_service
from raw_service import raw_service, response

import weir

SECRET_HEADERS = {
    "Authorization": "Bearer S3CRET",
    "Cookie": "sid=S3CRET",
    "Proxy-Authorization": "Basic S3CRET",
    "X-Api-Key": "S3CRET",
    "X-Auth-Token": "S3CRET",
}


@pytest.fixture
def other() -> Iterator[Service]:
    with running_service() as service:
        yield service


def sent(service: Service) -> str:
    return "\n".join(f"{seen.path}\n{seen.headers}" for seen in service.seen)


def test_credentials_go_to_the_origin_of_the_base_url_only(service: Service, other: Service) -> None:
    headers = SECRET_HEADERS | {"X-Team": "blue"}
    params = {"api_key": "S3CRET", "page": 1}
    with weir.Client(base_url=service.url + "/v1", headers=headers, params=params) as client:
        client.get("/own")
        client.get(service.url + "/absolute")
        assert [seen.headers["x-api-key"] for seen in service.seen] == ["S3CRET"] * 2
        assert all("api_key=S3CRET" in seen.path for seen in service.seen)
        client.get(other.url + "/elsewhere")
        # Another name of the same host is another origin.
        client.get(f"http://localhost:{service.port}/named")
    assert "S3CRET" not in sent(other)
    assert (other.seen[0].path, other.seen[0].headers["x-team"]) == ("/elsewhere?page=1", "blue")
    assert "S3CRET" not in f"{service.seen[2].path} {service.seen[2].headers}"


@pytest.mark.parametrize("kind", ["auth", "userinfo"])
def test_passwords_go_to_the_origin_of_the_base_url_only(service: Service, other: Service, kind: str) -> None:
    base = service.url if kind == "auth" else service.url.replace("//", "//user:S3CRET@")
    auth = ("user", "S3CRET") if kind == "auth" else None

    async def main() -> None:
        async with weir.AsyncClient(base_url=base, auth=auth) as client:
            await client.get("/own")
            await client.get(other.url)
            await client.get(other.url, auth=("me", "mine"))
            await client.get(other.url.replace("//", "//me:mine@"))

    asyncio.run(main())
    assert service.seen[0].headers["authorization"] == "Basic dXNlcjpTM0NSRVQ="
    assert [seen.headers["authorization"] for seen in other.seen] == [None, "Basic bWU6bWluZQ==", "Basic bWU6bWluZQ=="]


def test_what_a_call_is_given_goes_where_the_call_goes(service: Service, other: Service) -> None:
    with weir.Client(base_url=service.url, headers={"X-Api-Key": "S3CRET"}) as client:
        client.get(other.url, headers={"Authorization": "Bearer mine"}, params={"token": "own"})
    assert other.seen[0].headers["authorization"] == "Bearer mine"
    assert other.seen[0].path == "/?token=own"
    # As in httpx: without a base URL the defaults are for all hosts.
    with weir.Client(headers={"X-Api-Key": "all"}) as client:
        client.get(other.url)
    assert other.seen[1].headers["x-api-key"] == "all"


@pytest.mark.parametrize(
    "url",
    [
        "//evil.invalid/x",
        "/redirect/http://evil.invalid/x",
        "?next=http://evil.invalid/",
        "@evil.invalid/x",
        "http:/evil.invalid",
        "\\\\evil.invalid",
        ":80@evil.invalid/",
        " http://evil.invalid",
        ".evil.invalid",
    ],
)
def test_a_url_without_a_scheme_stays_at_the_host_of_the_base_url(service: Service, url: str) -> None:
    with weir.Client(base_url=service.url, headers=SECRET_HEADERS) as client:
        client.get(url)
    assert len(service.seen) == 1


def test_a_redirect_is_not_followed_and_the_environment_has_no_proxy(
    other: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, other.url)
    head = response(b"", f"Location: {other.url}", status="302 Found")
    with raw_service(lambda _: [head]) as service, weir.Client(headers=SECRET_HEADERS) as client:
        assert client.get(service.url).status_code == 302
    assert other.seen == []


def shown_by(service: Service) -> Iterator[tuple[str, object]]:
    """Objects with secrets in them."""
    headers = SECRET_HEADERS
    url = service.url.replace("//", "//user:S3CRET@") + "/x?page=1&api_key=S3CRET&access%5Ftoken=S3CRET"
    client = weir.Client(base_url=url.partition("?")[0], headers=headers, auth=("u", "S3CRET"))
    response = client.get(url, headers=headers)
    yield "client", client
    yield "response", response
    yield "request", response.request
    yield "headers", client.headers
    yield "sent headers", response.request.headers
    yield "attempts", response.attempts
    yield "copy", copy.copy(client.headers)
    yield "success", weir.Success(headers=headers)
    yield "options", weir.CallOptions(success=weir.Success(headers=headers))
    yield "job", weir.Job(url, headers=headers, pinned_key="S3CRET", json={"a": [{"password": "S3CRET"}]})
    yield "job's form", weir.Job("/", data=[("client_secret", "S3CRET"), ("n", "1")], content=None)
    yield "job's text", weir.Job("/", content='{"token": "S3CRET"}', headers=list(headers.items()))
    yield "step", weir.Step.post(url, headers=headers, form={"password": "S3CRET"}, auth=("u", "S3CRET"))
    yield "step's cookies", weir.Step.get("/", cookies={"a": "S3CRET"}, query={"api_key": "S3CRET"})
    with weir.Sender(url, headers=headers, keys={"first": "S3CRET"}) as sender:
        ticket = sender.enqueue("/y?token=S3CRET")
        yield "sender", sender
        yield "ticket", ticket
        yield "result", ticket.result()
        yield "stats", sender.stats()
    run = weir.load(url, headers=headers, requests=1, connections=1, auth=("u", "S3CRET"))
    yield "run", run
    yield "command", run.manifest.command


def test_no_representation_shows_a_secret(service: Service) -> None:
    for name, value in shown_by(service):
        for text in (repr(value), "" if isinstance(value, weir.Step | weir.Run) else str(value), "%r" % ([value],)):  # noqa: UP031
            assert "S3CRET" not in text, f"{name}: {text}"


def calls(client: weir.Client, url: str, dead: str) -> Iterator[Callable[[], Any]]:
    query = "?api_key=S3CRET&page=1"
    secret = "http://user:S3CRET@"
    yield lambda: client.get(url + "/status?code=404&token=S3CRET").raise_for_status()
    yield lambda: client.get(url + "/close" + query)
    yield lambda: client.get(dead + query)
    yield lambda: client.get(dead + query, success=weir.Success(headers={"X-Token": "S3CRET"}))
    yield lambda: client.get(url + "/slow?ms=9000&token=S3CRET", deadline=0.05)
    yield lambda: client.get(url + query, max_response=1)
    yield lambda: client.get("user:S3CRET@host/x")
    yield lambda: client.get("host/x" + query)
    yield lambda: client.get(f"{secret}127.0.0.1:99999/x{query}")
    yield lambda: client.get(f"{secret}[::/x{query}")
    yield lambda: client.get(f"ftp://user:S3CRET@h/{query}")
    yield lambda: client.get(f"{secret}exämple..com/{query}")
    yield lambda: client.get(url, headers={"Authorization": "Bearer S3CRET\r\nX: y"})
    yield lambda: client.get(url, headers={"Authorization: Bearer S3CRET": "x"})
    yield lambda: client.get(url, headers={"Authorization Bearer S3CRET": "x"})
    yield lambda: client.get(url, headers={"X-Api-Key": "S3CRET€"})
    yield lambda: client.get(url, headers={"X-Api-Key S3CRET": None})  # type: ignore[arg-type]
    yield lambda: client.get(url, success=weir.Success(headers={"X-Api-Key": "S3CRET\n"}))
    yield lambda: client.get(url, auth=("user:S3CRET", ""))
    yield lambda: weir.Client(base_url=f"{secret}h/{query}").get("/x")
    yield lambda: weir.load(url, headers={"Authorization: Bearer S3CRET": "x"}, requests=1)
    yield lambda: weir.load(url, headers={"X-Api-Key": "S3CRET\r\nX: y"}, requests=1)
    yield lambda: weir.load(url, auth=("user:S3CRET", "x"), requests=1)
    yield lambda: weir.Sender(headers={"X-Api-Key": "S3CRET\n"})
    yield lambda: weir.Sender(headers={"Authorization: S3CRET": "x"})


def test_no_exception_shows_a_secret(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    dead = "http://127.0.0.1:1/"
    with weir.Client() as client, caplog.at_level(logging.DEBUG):
        for number in range(len(list(calls(client, service.url, dead)))):
            call = list(calls(client, service.url, dead))[number]
            with pytest.raises((weir.WeirError, TypeError)) as caught:
                call()
            error: BaseException = caught.value
            texts = [str(error), repr(error), *traceback.format_exception_only(error)]
            with contextlib.suppress(TypeError):
                texts.append(str(pickle.loads(pickle.dumps(error))))
            while error.__context__ is not None:
                error = error.__context__
                texts.append(repr(error))
            for text in texts:
                assert "S3CRET" not in text.upper(), f"{number}: {text}"
    assert "S3CRET" not in caplog.text.upper()


@pytest.mark.parametrize(
    "value", [None, True, ["a"], {"a": 1}, object()], ids=["None", "True", "list", "dict", "object"]
)
def test_a_header_that_is_no_text_is_a_type_error_with_its_name(service: Service, value: Any) -> None:
    headers = {"X-Name": value}
    kind = "None" if value is None else f"of type {type(value).__name__}"
    words = f"headers: the value of 'X-Name' is {kind}"
    with pytest.raises(TypeError, match=words):
        weir.Client(headers=headers)
    with weir.Client() as client:
        with pytest.raises(TypeError, match=words):
            client.get(service.url, headers=headers)
        with pytest.raises(TypeError, match=words):
            client.get(service.url, headers=list(headers.items()))
    for load in (weir.load, weir.start_load):
        with pytest.raises(TypeError, match=words):
            load(service.url, headers=headers, requests=1)
    with pytest.raises(TypeError, match=words):
        weir.llm(service.url, model="m", headers=headers, num_prompts=1)
    with pytest.raises(TypeError, match=words):
        weir.Step.get("/", headers=headers)
    with pytest.raises(TypeError):
        weir.Sender(service.url, headers=headers)
    assert service.seen == []
    assert {"a": "b"} != weir.Headers({"a": "c"}) != headers


def test_bytes_and_numbers_are_values_of_headers(service: Service) -> None:
    headers: Any = {"X-Bytes": b"b\xe4", b"X-Name": "n", "X-Number": 5}
    with weir.Client(headers=headers) as client:
        client.get(service.url)
    weir.load(service.url, headers={"X-Bytes": b"b", "X-Number": 5}, requests=1)  # type: ignore[arg-type]
    found = [(seen.headers["x-bytes"], seen.headers["x-number"]) for seen in service.seen]
    assert found == [("b\xe4", "5"), ("b", "5")]
    assert service.seen[0].headers["x-name"] == "n"


def test_arguments_of_a_load_that_have_no_effect_are_errors(service: Service) -> None:
    scenario = weir.Scenario([weir.Step.get("/")])
    for given in ({"variables": {"x": 1}}, {"data": [{"x": 1}]}):
        with pytest.raises(weir.UsageError, match="is for single requests; give it to the scenario"):
            weir.load(service.url, scenario=scenario, requests=1, **given)
    with pytest.raises(TypeError, match="url: text, or classes of users, not bytes"):
        weir.load(service.url.encode(), requests=1)  # type: ignore[arg-type]
    assert service.seen == []
