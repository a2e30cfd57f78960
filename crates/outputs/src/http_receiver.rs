//! A receiver that is reached by HTTP: one request, and the meaning of its response.

use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::{BodyExt, Collected, Limited};

use super::delivery_failure::DeliveryFailure;
use super::http_output::{HttpFormat, HttpOutput};
use super::otlp_metrics::rejection;
use super::remote_write::compressed;
use weir_decide::Nanos;
use weir_decide::delivery::limit_headers::retry_after;
use weir_http::client::{Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol};
use weir_http::target::Target;
use weir_machine::clock;
use weir_machine::timer::Timer;

/// Timeout of a request.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Longest honoured Retry-After.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(30);
/// Longest response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Longest part of a response that is printed, in characters.
const MAX_REASON_CHARS: usize = 160;

/// What a request needs, apart from an event loop.
#[derive(Debug)]
pub(crate) struct HttpAddress {
    origin: Arc<Origin>,
    path: String,
    headers: HeaderMap,
    format: HttpFormat,
}

/// A receiver, from one event loop.
#[derive(Debug)]
pub(crate) struct HttpReceiver {
    pub(crate) address: HttpAddress,
    pub(crate) client: Client,
    pub(crate) timer: Timer,
}

impl HttpAddress {
    /// Address of an output.
    ///
    /// # Errors
    /// One line: the URL or a header is not valid, or TLS cannot be set up.
    pub(crate) fn new(output: &HttpOutput) -> Result<Self, String> {
        let target = Target::parse(&output.url).map_err(|error| error.to_string())?;
        let reach = ConnectOptions { protocol: Protocol::Http1, max_connections: Some(1), ..ConnectOptions::default() };
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION"))));
        let (content_type, more): (_, &[(&str, &str)]) = match output.format {
            HttpFormat::RemoteWrite => (
                "application/x-protobuf",
                &[("content-encoding", "snappy"), ("x-prometheus-remote-write-version", "0.1.0")],
            ),
            HttpFormat::Otlp => ("application/x-protobuf", &[]),
            HttpFormat::Influx => ("text/plain; charset=utf-8", &[]),
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        for (name, value) in more {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(userinfo) = &target.userinfo {
            let text = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(userinfo));
            insert(&mut headers, AUTHORIZATION.as_str(), &text)?;
        }
        for (name, value) in &output.headers {
            insert(&mut headers, name, value)?;
        }
        let origin = Origin::new(&target, &reach).map_err(|error| error.to_string())?;
        Ok(Self { origin: Arc::new(origin), path: output.path(&target), headers, format: output.format })
    }
}

/// Adds a header of the user, in place of one of the same name.
fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let wrong = || format!("invalid header '{name}'; write 'NAME: VALUE' in ASCII");
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    if parsed != CONTENT_ENCODING && parsed != CONTENT_TYPE {
        headers.insert(parsed, value);
    }
    Ok(())
}

impl HttpReceiver {
    /// Sends messages, with a timeout; returns what was rejected of messages that were accepted.
    pub(crate) async fn deliver(&self, messages: &[u8]) -> Result<Option<String>, DeliveryFailure> {
        let body = match self.address.format {
            HttpFormat::RemoteWrite => compressed(messages),
            HttpFormat::Otlp | HttpFormat::Influx => messages.to_vec(),
        };
        tokio::select! {
            done = self.exchange(body.into()) => done,
            () = self.timer.sleep(REQUEST_TIMEOUT) => {
                Err(DeliveryFailure::passing(format!("no response within {REQUEST_TIMEOUT}")))
            }
        }
    }

    async fn exchange(&self, body: Bytes) -> Result<Option<String>, DeliveryFailure> {
        let HttpAddress { origin, path, headers, format } = &self.address;
        let request = OutgoingRequest {
            method: &Method::POST,
            target: path,
            headers,
            extra_headers: &[],
            body: OutgoingBody::Bytes(body),
            upgrade: false,
        };
        let response = self.client.send(origin, request).await;
        let response = response.map_err(|error| DeliveryFailure::passing(error.text.into_owned()))?;
        let status = response.status().as_u16();
        let wait =
            response.headers().get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, clock::wall()));
        let body = read(response.into_body()).await;
        if (200..300).contains(&status) {
            return Ok(rejection(&body).filter(|_| *format == HttpFormat::Otlp));
        }
        Err(DeliveryFailure {
            reason: with_message(status, &body),
            is_retryable: format.is_retryable(status),
            retry_after: wait.unwrap_or_default().min(MAX_RETRY_AFTER),
        })
    }

    /// Closes connections that are idle.
    pub(crate) fn sweep(&self) {
        self.client.sweep(self.timer.now());
    }
}

/// Body of a response; of one that cannot be read, nothing.
async fn read(body: IncomingBody) -> Bytes {
    Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map(Collected::to_bytes).unwrap_or_default()
}

/// A status with the start of the response's text, which says what the receiver has against the data.
fn with_message(status: u16, body: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(body) else { return format!("status {status}") };
    let line = text.replace(char::is_control, " ");
    let line: String = line.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_REASON_CHARS).collect();
    if line.is_empty() { format!("status {status}") } else { format!("status {status}, {line}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_receiver_is_one_short_line() {
        assert_eq!(with_message(400, b"out of order\n\x1b[2Jsample\n"), "status 400, out of order [2Jsample");
        assert_eq!([with_message(500, b""), with_message(500, b"\xff\x00")], ["status 500", "status 500"]);
        assert!(with_message(400, "é".repeat(5000).as_bytes()).chars().count() < 200);
    }

    #[test]
    fn credentials_are_in_headers_and_in_no_message() {
        let output = |url: &str, headers: &[(&str, &str)]| HttpOutput {
            url: url.to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            format: HttpFormat::Otlp,
        };
        let basic = HttpAddress::new(&output("http://me:secret@127.0.0.1:1", &[])).unwrap();
        assert_eq!(basic.headers[AUTHORIZATION], "Basic bWU6c2VjcmV0");
        let own = HttpAddress::new(&output("http://127.0.0.1:1", &[("authorization", "Bearer t0ken")])).unwrap();
        assert_eq!(own.headers[AUTHORIZATION], "Bearer t0ken");
        assert!(!format!("{basic:?}{own:?}").contains("t0ken") && !format!("{basic:?}").contains("bWU6"));
        for (name, value) in [("a b", "x"), ("a", "x\ny"), ("", "x")] {
            let why = HttpAddress::new(&output("http://127.0.0.1:1", &[(name, value)])).unwrap_err();
            assert!(why.contains("invalid header") && !why.contains("\n"), "{why}");
        }
    }
}
