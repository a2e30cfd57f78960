"""Tools of tests that mock a library mock its calls through weir's transports, too."""

import asyncio

import pytest

for package in ("respx", "responses"):
    pytest.importorskip(package, reason=f"no {package}; scripts/setup.sh test-all installs it")

import httpx  # noqa: E402
import requests  # noqa: E402
import responses  # noqa: E402
import respx  # noqa: E402

import weir.httpx  # noqa: E402
import weir.requests  # noqa: E402

pytestmark = pytest.mark.wide

URL = "https://name.invalid/users"


@pytest.mark.parametrize("using", ["httpcore", "httpx"])
def test_respx(using: str) -> None:
    async def awaited() -> str:
        async with httpx.AsyncClient(transport=weir.httpx.AsyncTransport(retries=2)) as client:
            return (await client.get(URL)).text

    with respx.mock(using=using) as mocked:
        mocked.get(URL).respond(200, text="mocked")
        with httpx.Client(transport=weir.httpx.Transport(deadline=5)) as client:
            assert client.get(URL).text == "mocked"
        assert asyncio.run(awaited()) == "mocked"
        assert mocked.calls.call_count == 2
    with httpx.Client(transport=weir.httpx.Transport(deadline=5)) as client, pytest.raises(httpx.ConnectError):
        client.get(URL)


def test_pytest_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    # As its fixture does.
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda _, __: httpx.Response(200, text="mocked"))
    with httpx.Client(transport=weir.httpx.Transport(deadline=5)) as client:
        assert client.get(URL).text == "mocked"


@responses.activate
def test_responses() -> None:
    responses.add(responses.GET, URL, body="mocked")
    session = requests.Session()
    session.mount("https://", weir.requests.Adapter(deadline=5))
    assert session.get(URL).text == "mocked"
