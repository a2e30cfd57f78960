//! Who takes the spans: one request, and what its answer means.

use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;

use crate::decide::Nanos;
use crate::decide::feedback::retry_after;
use crate::http::client::{Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol};
use crate::http::target::Target;
use crate::http::tls::TlsError;
use crate::machine::clock;
use crate::machine::timer::Timer;

/// OpenTelemetry's own default for a request (`OTEL_EXPORTER_OTLP_TIMEOUT`).
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// A collector that asks for a longer wait than this is asked again all the same.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(300);
/// Longer answers are not looked at.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Where a collector is.
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

/// Spans were taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExportSuccess {
    /// All but so many.
    pub(super) rejected_spans: u64,
    /// What the collector says to it.
    pub(super) message: String,
}

/// Spans were not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExportFailure {
    pub(super) reason: String,
    /// Whether they may be sent once more.
    pub(super) is_retryable: bool,
    /// Not before so long, if the collector has said so.
    pub(super) retry_after: Nanos,
}

impl CollectorAddress {
    /// From a URL; without a path it is `/v1/traces`.
    pub(super) fn new(target: &Target) -> Result<Self, TlsError> {
        // HTTP/1.1 is what all of them speak, and one request at a time needs no more.
        let reach = ConnectOptions { protocol: Protocol::Http1, max_connections: Some(1), ..ConnectOptions::default() };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION"))));
        if let Some(userinfo) = &target.userinfo {
            let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(userinfo));
            // Base64 is a header's value.
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
    /// One request.
    pub(super) async fn post(&self, body: Bytes) -> Result<ExportSuccess, ExportFailure> {
        tokio::select! {
            done = self.exchange(body) => done,
            () = self.timer.sleep(REQUEST_TIMEOUT) => {
                Err(ExportFailure { reason: format!("no answer within {REQUEST_TIMEOUT}"), is_retryable: true, retry_after: Nanos::ZERO })
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
            Ok(answer) if answer.status().is_success() => Ok(read_success(answer).await),
            Ok(answer) => Err(export_failure(answer.status().as_u16(), answer.headers())),
            Err(error) => {
                Err(ExportFailure { reason: error.text.into_owned(), is_retryable: true, retry_after: Nanos::ZERO })
            }
        }
    }
}

/// The protocol has it that these four, and no others, may be asked once more.
fn export_failure(status: u16, headers: &HeaderMap) -> ExportFailure {
    let wait = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, clock::wall()));
    let again = matches!(status, 429 | 502..=504);
    ExportFailure {
        reason: format!("status {status}"),
        is_retryable: again,
        retry_after: wait.unwrap_or_default().min(MAX_RETRY_AFTER),
    }
}

/// What cannot be read of an answer is of no account: the status says that the spans were taken.
async fn read_success(answer: Response<IncomingBody>) -> ExportSuccess {
    let body = Limited::new(answer.into_body(), MAX_RESPONSE_BYTES).collect().await;
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

/// A 64-bit number: as a string, as protobuf's JSON has it, or plain, as some write it.
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
    let answer: ExportResponse = serde_json::from_slice(body).unwrap_or_default();
    let Some(partial) = answer.partial_success else { return ExportSuccess::default() };
    let rejected = match partial.rejected_spans {
        ProtoNumber::Text(text) => text.parse().unwrap_or(0),
        ProtoNumber::Plain(number) => number,
    };
    // It goes to a terminal, which it must not steer.
    let message = partial.error_message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    ExportSuccess { rejected_spans: rejected, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> CollectorAddress {
        CollectorAddress::new(&Target::parse(url).unwrap()).unwrap()
    }

    #[test]
    fn a_path_that_is_given_is_kept() {
        let at = |url| (place(url).path, place(url).url);
        let own = |path: &str, url: &str| (path.to_owned(), url.to_owned());
        assert_eq!(at("http://h:4318"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h:4318/"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h/otlp/v1/traces"), own("/otlp/v1/traces", "http://h/otlp/v1/traces"));
        assert_eq!(at("h?key=1"), own("/?key=1", "http://h/?key=1"));
    }

    #[test]
    fn a_password_goes_into_a_header_and_not_into_a_message() {
        let place = place("http://me:secret@h:4318");
        assert_eq!(place.headers[AUTHORIZATION], "Basic bWU6c2VjcmV0");
        assert!(!format!("{place:?}").contains("secret") && !format!("{place:?}").contains("bWU6"));
        assert_eq!(place.url, "http://h:4318/v1/traces");
    }

    #[test]
    fn only_the_statuses_that_the_protocol_names_are_asked_again() {
        let again = |status| export_failure(status, &HeaderMap::new()).is_retryable;
        let named: Vec<u16> = (100..600).filter(|status| again(*status)).collect();
        assert_eq!(named, [429, 502, 503, 504]);
    }

    #[test]
    fn a_wait_is_read_and_has_a_bound() {
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
    fn answers_are_read_as_collectors_write_them() {
        let taken = |rejected, message: &str| ExportSuccess { rejected_spans: rejected, message: message.to_owned() };
        for nothing in ["", "{}", r#"{"partialSuccess":null}"#, r#"{"partialSuccess":{}}"#, "[1]", "ok"] {
            assert_eq!(parse_response(nothing.as_bytes()), ExportSuccess::default(), "{nothing}");
        }
        let some = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\u001b[2Jold"}}"#;
        assert_eq!(parse_response(some.as_bytes()), taken(3, "too [2Jold"));
        assert_eq!(parse_response(br#"{"partialSuccess":{"rejectedSpans":4}}"#), taken(4, ""));
    }
}
