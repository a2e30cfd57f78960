//! One request to a collector, and the meaning of its response.

use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;

use weir_decide::Nanos;
use weir_decide::delivery::limit_headers::retry_after;
use weir_http::client::{Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol};
use weir_http::target::Target;
use weir_http::tls::TlsError;
use weir_machine::clock;
use weir_machine::timer::Timer;

/// Timeout of a request: the default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Longest honoured Retry-After.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(300);
/// Longest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Address of a collector.
#[derive(Debug)]
pub(super) struct CollectorAddress {
    pub(super) url: String,
    origin: Arc<Origin>,
    path: String,
    headers: HeaderMap,
}

/// A collector, from one event loop.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) address: CollectorAddress,
    pub(super) client: Client,
    pub(super) timer: Timer,
}

/// Accepted spans.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExportSuccess {
    /// Number of spans that the collector rejected.
    pub(super) rejected_spans: u64,
    /// Message of the collector.
    pub(super) message: String,
}

/// Failed export.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportFailure {
    pub(super) reason: String,
    /// Whether the batch may be sent again.
    pub(super) is_retryable: bool,
    /// Retry-After of the response, or zero.
    pub(super) retry_after: Nanos,
}

impl CollectorAddress {
    /// The address of a URL, whose default path is `/v1/traces`.
    pub(super) fn new(target: &Target) -> Result<Self, TlsError> {
        // All collectors support HTTP/1.1, which is enough for one request at a time.
        let reach = ConnectOptions { protocol: Protocol::Http1, max_connections: Some(1), ..ConnectOptions::default() };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION"))));
        if let Some(userinfo) = &target.userinfo {
            let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(userinfo));
            // Base64 is a valid header value.
            if let Ok(mut value) = HeaderValue::try_from(text) {
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
        }
        let path = if target.path == "/" { "/v1/traces" } else { &target.path };
        let url = target.url.strip_suffix(&target.path).unwrap_or(&target.url);
        Ok(Self {
            url: format!("{url}{path}"),
            origin: Arc::new(Origin::new(target, &reach)?),
            path: path.to_owned(),
            headers,
        })
    }
}

impl Collector {
    /// Sends one request, with a timeout.
    pub(super) async fn post(&self, body: Bytes) -> Result<ExportSuccess, ExportFailure> {
        tokio::select! {
            done = self.exchange(body) => done,
            () = self.timer.sleep(REQUEST_TIMEOUT) => {
                Err(ExportFailure { reason: format!("no response within {REQUEST_TIMEOUT}"), is_retryable: true, retry_after: Nanos::ZERO })
            }
        }
    }

    async fn exchange(&self, body: Bytes) -> Result<ExportSuccess, ExportFailure> {
        let request = OutgoingRequest {
            method: &Method::POST,
            target: &self.address.path,
            headers: &self.address.headers,
            extra_headers: &[],
            body: OutgoingBody::Bytes(body),
            upgrade: false,
        };
        match self.client.send(&self.address.origin, request).await {
            Ok(response) if response.status().is_success() => Ok(read_success(response).await),
            Ok(response) => Err(export_failure(response.status().as_u16(), response.headers())),
            Err(error) => {
                Err(ExportFailure { reason: error.text.into_owned(), is_retryable: true, retry_after: Nanos::ZERO })
            }
        }
    }
}

/// The failure of a status. By the protocol exactly 429, 502, 503 and 504 are retryable.
fn export_failure(status: u16, headers: &HeaderMap) -> ExportFailure {
    let wait = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, clock::wall()));
    let is_retryable = matches!(status, 429 | 502..=504);
    ExportFailure {
        reason: format!("status {status}"),
        is_retryable,
        retry_after: wait.unwrap_or_default().min(MAX_RETRY_AFTER),
    }
}

/// Reads the response of a success. An unreadable body is ignored, since the status means that the spans were accepted.
async fn read_success(response: Response<IncomingBody>) -> ExportSuccess {
    let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES).collect().await;
    body.map_or_else(|_| ExportSuccess::default(), |body| parse_response(&body.to_bytes()))
}

/// `ExportTraceServiceResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExportResponse {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    rejected_spans: ProtoNumber,
    error_message: String,
}

/// A 64-bit number: a string, as in protobuf's JSON, or a plain number, as some collectors write it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ProtoNumber {
    Text(String),
    Plain(u64),
}

impl Default for ProtoNumber {
    fn default() -> Self {
        Self::Plain(0)
    }
}

fn parse_response(body: &[u8]) -> ExportSuccess {
    let response: ExportResponse = serde_json::from_slice(body).unwrap_or_default();
    let Some(partial) = response.partial_success else { return ExportSuccess::default() };
    let rejected = match partial.rejected_spans {
        ProtoNumber::Text(text) => text.parse().unwrap_or(0),
        ProtoNumber::Plain(number) => number,
    };
    // Without control characters, since it is printed on a terminal.
    let message = partial.error_message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    ExportSuccess { rejected_spans: rejected, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> CollectorAddress {
        CollectorAddress::new(&Target::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn a_path_that_is_given_is_kept() {
        let at = |url| (address(url).path, address(url).url);
        let own = |path: &str, url: &str| (path.to_owned(), url.to_owned());
        assert_eq!(at("http://h:4318"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h:4318/"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h/otlp/v1/traces"), own("/otlp/v1/traces", "http://h/otlp/v1/traces"));
        assert_eq!(at("h?key=1"), own("/?key=1", "http://h/?key=1"));
    }

    #[test]
    fn a_password_goes_into_a_header_and_not_into_a_message() {
        let address = address("http://me:secret@h:4318");
        assert_eq!(address.headers[AUTHORIZATION], "Basic bWU6c2VjcmV0");
        assert!(!format!("{address:?}").contains("secret") && !format!("{address:?}").contains("bWU6"));
        assert_eq!(address.url, "http://h:4318/v1/traces");
    }

    #[test]
    fn only_the_statuses_of_the_protocol_are_retryable() {
        let again = |status| export_failure(status, &HeaderMap::new()).is_retryable;
        let named: Vec<u16> = (100..600).filter(|status| again(*status)).collect();
        assert_eq!(named, [429, 502, 503, 504]);
    }

    #[test]
    fn retry_after_is_read_and_bounded() {
        let wait = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            export_failure(503, &headers).retry_after
        };
        assert_eq!(wait("7"), Nanos::from_secs(7));
        assert_eq!(wait("4000000000"), MAX_RETRY_AFTER);
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), MAX_RETRY_AFTER);
        assert_eq!(wait("Thu, 01 Jan 1970 00:00:00 GMT"), Nanos::ZERO);
        assert_eq!(wait("soon"), Nanos::ZERO);
    }

    #[test]
    fn responses_are_read_as_collectors_write_them() {
        let success = |rejected, message: &str| ExportSuccess { rejected_spans: rejected, message: message.to_owned() };
        for nothing in ["", "{}", r#"{"partialSuccess":null}"#, r#"{"partialSuccess":{}}"#, "[1]", "ok"] {
            assert_eq!(parse_response(nothing.as_bytes()), ExportSuccess::default(), "{nothing}");
        }
        let some = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\u001b[2Jold"}}"#;
        assert_eq!(parse_response(some.as_bytes()), success(3, "too [2Jold"));
        assert_eq!(parse_response(br#"{"partialSuccess":{"rejectedSpans":4}}"#), success(4, ""));
    }
}
