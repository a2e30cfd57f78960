//! One request to a collector, and the meaning of its response.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;

use weir_base::Nanos;
use weir_base::terminal_text::is_steering;
use weir_machine::timer::Timer;
use weir_net::client::{Client, IncomingBody, PostTarget, wait_of};
use weir_net::target::Target;
use weir_net::tls::TlsError;

/// Timeout of a request: the default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Longest honoured Retry-After.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(300);
/// Longest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// URL of a collector, and its connection options.
#[derive(Debug)]
pub(crate) struct CollectorAddress {
    pub(crate) url: String,
    post: PostTarget,
}

/// A collector, from one event loop.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) address: CollectorAddress,
    pub(crate) client: Client,
    pub(crate) timer: Timer,
}

/// Accepted spans.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ExportSuccess {
    /// Number of spans that the collector rejected.
    pub(crate) rejected_spans: u64,
    /// Message of the collector.
    pub(crate) message: String,
}

/// Failed export.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExportFailure {
    pub(crate) reason: String,
    /// Whether the batch may be sent again.
    pub(crate) is_retryable: bool,
    /// Retry-After of the response, or zero.
    pub(crate) retry_after: Nanos,
}

impl CollectorAddress {
    /// The address of a URL, whose default path is `/v1/traces`.
    pub(crate) fn new(target: &Target) -> Result<Self, TlsError> {
        let path = if target.path == "/" { "/v1/traces" } else { &target.path };
        let url = target.url.strip_suffix(&target.path).unwrap_or(&target.url);
        let mut post = PostTarget::new(target, path.to_owned(), "application/json")?;
        // Both are valid in a header.
        let _ = post.insert(ACCEPT.as_str(), "application/json");
        Ok(Self { url: format!("{url}{path}"), post })
    }

    /// Sets a header of the user's.
    pub(crate) fn insert(&mut self, name: &str, value: &str) -> Result<(), String> {
        match [ACCEPT, CONTENT_TYPE].iter().any(|own| name.eq_ignore_ascii_case(own.as_str())) {
            true => Ok(()),
            false => self.post.insert(name, value),
        }
    }
}

impl Collector {
    /// Sends one request, with a timeout.
    pub(crate) async fn post(&self, body: Bytes) -> Result<ExportSuccess, ExportFailure> {
        tokio::select! {
            done = self.exchange(body) => done,
            () = self.timer.sleep(REQUEST_TIMEOUT) => {
                Err(ExportFailure { reason: format!("no response within {REQUEST_TIMEOUT}"), is_retryable: true, retry_after: Nanos::ZERO })
            }
        }
    }

    async fn exchange(&self, body: Bytes) -> Result<ExportSuccess, ExportFailure> {
        match self.address.post.post(&self.client, body).await {
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
    let is_retryable = matches!(status, 429 | 502..=504);
    ExportFailure { reason: format!("status {status}"), is_retryable, retry_after: wait_of(headers, MAX_RETRY_AFTER) }
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
    let message = partial.error_message.chars().map(|c| if is_steering(c) { ' ' } else { c }).take(200).collect();
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
        let at = |url| (address(url).post.path().to_owned(), address(url).url);
        let own = |path: &str, url: &str| (path.to_owned(), url.to_owned());
        assert_eq!(at("http://h:4318"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h:4318/"), own("/v1/traces", "http://h:4318/v1/traces"));
        assert_eq!(at("http://h/otlp/v1/traces"), own("/otlp/v1/traces", "http://h/otlp/v1/traces"));
        assert_eq!(at("h?key=1"), own("/?key=1", "http://h/?key=1"));
    }

    #[test]
    fn a_password_goes_into_a_header_and_not_into_a_message() {
        let address = address("http://me:secret@h:4318");
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
