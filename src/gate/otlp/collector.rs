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
use crate::http::client::{Client, Incoming, Origin, OutBody, Outgoing, Protocol, Reach};
use crate::http::target::Target;
use crate::http::tls::TlsError;
use crate::machine::clock;
use crate::machine::timer::Timer;

/// OpenTelemetry's own default for a request (`OTEL_EXPORTER_OTLP_TIMEOUT`).
const TIMEOUT: Nanos = Nanos::from_secs(10);
/// A collector that asks for a longer wait than this is asked again all the same.
const MOST_WAIT: Nanos = Nanos::from_secs(300);
/// Longer answers are not looked at.
const MOST_ANSWER: usize = 64 * 1024;

/// Where a collector is.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) url: String,
    origin: Arc<Origin>,
    path: String,
    headers: HeaderMap,
}

/// A collector, from one event loop.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) place: Place,
    pub(super) client: Client,
    pub(super) timer: Timer,
}

/// Spans were taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// All but so many.
    pub(super) rejected: u64,
    /// What the collector says to it.
    pub(super) message: String,
}

/// Spans were not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: String,
    /// Whether they may be sent once more.
    pub(super) again: bool,
    /// Not before so long, if the collector has said so.
    pub(super) wait: Nanos,
}

impl Place {
    /// From a URL; without a path it is `/v1/traces`.
    pub(super) fn new(target: &Target) -> Result<Self, TlsError> {
        // HTTP/1.1 is what all of them speak, and one request at a time needs no more.
        let reach = Reach { protocol: Protocol::Http1, most_connections: Some(1), ..Reach::default() };
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
    pub(super) async fn post(&self, body: Bytes) -> Result<Taken, Refused> {
        tokio::select! {
            done = self.exchange(body) => done,
            () = self.timer.sleep(TIMEOUT) => {
                Err(Refused { why: format!("no answer within {TIMEOUT}"), again: true, wait: Nanos::ZERO })
            }
        }
    }

    async fn exchange(&self, body: Bytes) -> Result<Taken, Refused> {
        let request = Outgoing {
            method: &Method::POST,
            target: &self.place.path,
            headers: &self.place.headers,
            more: &[],
            body: OutBody::Bytes(body),
            upgrade: false,
        };
        match self.client.send(&self.place.origin, request).await {
            Ok(answer) if answer.status().is_success() => Ok(taken(answer).await),
            Ok(answer) => Err(refused(answer.status().as_u16(), answer.headers())),
            Err(error) => Err(Refused { why: error.text.into_owned(), again: true, wait: Nanos::ZERO }),
        }
    }
}

/// The protocol has it that these four, and no others, may be asked once more.
fn refused(status: u16, headers: &HeaderMap) -> Refused {
    let wait = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, clock::wall()));
    let again = matches!(status, 429 | 502..=504);
    Refused { why: format!("status {status}"), again, wait: wait.unwrap_or_default().min(MOST_WAIT) }
}

/// What cannot be read of an answer is of no account: the status says that the spans were taken.
async fn taken(answer: Response<Incoming>) -> Taken {
    let body = Limited::new(answer.into_body(), MOST_ANSWER).collect().await;
    body.map_or_else(|_| Taken::default(), |body| read(&body.to_bytes()))
}

/// `ExportTraceServiceResponse`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    partial_success: Option<PartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    rejected_spans: Number,
    error_message: String,
}

/// A 64-bit number: as a string, as protobuf's JSON has it, or plain, as some write it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(u64),
}

impl Default for Number {
    fn default() -> Self {
        Self::Plain(0)
    }
}

fn read(body: &[u8]) -> Taken {
    let answer: Answer = serde_json::from_slice(body).unwrap_or_default();
    let Some(partial) = answer.partial_success else { return Taken::default() };
    let rejected = match partial.rejected_spans {
        Number::Text(text) => text.parse().unwrap_or(0),
        Number::Plain(number) => number,
    };
    // It goes to a terminal, which it must not steer.
    let message = partial.error_message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    Taken { rejected, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Place {
        Place::new(&Target::parse(url).unwrap()).unwrap()
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
        let again = |status| refused(status, &HeaderMap::new()).again;
        let named: Vec<u16> = (100..600).filter(|status| again(*status)).collect();
        assert_eq!(named, [429, 502, 503, 504]);
    }

    #[test]
    fn a_wait_is_read_and_has_a_bound() {
        let wait = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
            refused(503, &headers).wait
        };
        assert_eq!(wait("7"), Nanos::from_secs(7));
        assert_eq!(wait("4000000000"), MOST_WAIT);
        assert_eq!(wait("Fri, 31 Dec 9999 23:59:59 GMT"), MOST_WAIT);
        assert_eq!(wait("Thu, 01 Jan 1970 00:00:00 GMT"), Nanos::ZERO);
        assert_eq!(wait("soon"), Nanos::ZERO);
    }

    #[test]
    fn answers_are_read_as_collectors_write_them() {
        let taken = |rejected, message: &str| Taken { rejected, message: message.to_owned() };
        for nothing in ["", "{}", r#"{"partialSuccess":null}"#, r#"{"partialSuccess":{}}"#, "[1]", "ok"] {
            assert_eq!(read(nothing.as_bytes()), Taken::default(), "{nothing}");
        }
        let some = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\u001b[2Jold"}}"#;
        assert_eq!(read(some.as_bytes()), taken(3, "too [2Jold"));
        assert_eq!(read(br#"{"partialSuccess":{"rejectedSpans":4}}"#), taken(4, ""));
    }
}
