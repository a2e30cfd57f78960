"""Spans of calls through transports, as OpenTelemetry's SDK gets them."""

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="no opentelemetry-sdk; scripts/setup.sh test-all installs it")

import httpx2
import requests
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from raw_service import raw_service
from transport_calls import failing

import weir.httpx2
import weir.requests

pytestmark = pytest.mark.wide


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What an SDK exports."""
    made = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    # A provider that is set is that of all tests of the process.
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return made


def spans_of(exporter: InMemorySpanExporter) -> list[ReadableSpan]:
    spans = list(exporter.get_finished_spans())
    exporter.clear()
    return spans


def test_a_call_and_its_attempts_are_spans(exporter: InMemorySpanExporter) -> None:
    with raw_service(failing(1)) as service:
        url = service.url + "/orders?token=secret"
        with httpx2.Client(transport=weir.httpx2.Transport(retries=1)) as client:
            client.get(url)
            first, second, call = spans_of(exporter)
            assert (first.parent, second.parent) == (call.get_span_context(), call.get_span_context())
            assert call.attributes is not None
            assert first.attributes is not None
            assert second.attributes is not None
            assert call.attributes["http.response.status_code"] == 200
            assert "secret" not in str(call.attributes["url.full"])
            assert (first.attributes["http.response.status_code"], first.attributes["error.type"]) == (503, "503")
            assert (second.attributes["http.request.resend_count"], second.status.is_ok) == (1, True)
            assert first.end_time is not None
            assert second.start_time is not None
            assert first.end_time <= second.start_time
            header = next(line for line in service.heads[0].split("\r\n") if line.startswith("traceparent"))
            context = call.get_span_context()
            assert context is not None
            assert f"{context.span_id:016x}" in header
        session = requests.Session()
        session.mount("http://", weir.requests.Adapter())
        with pytest.raises(requests.ConnectionError):
            session.get("http://127.0.0.1:1/")
    attempt, call = spans_of(exporter)
    assert attempt.attributes is not None
    assert call.attributes is not None
    assert (attempt.attributes["error.type"], call.attributes["error.type"]) == ("connect", "connect")
    assert not call.status.is_ok
