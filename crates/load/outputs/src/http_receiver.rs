//! A receiver that is reached by HTTP: one request, and the meaning of its response.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, Collected, Limited};

use super::delivery_failure::DeliveryFailure;
use super::http_output::{HttpFormat, HttpOutput};
use super::otlp_metrics::rejection;
use super::remote_write::compressed;
use weir_base::Nanos;
use weir_base::terminal_text::is_steering;
use weir_machine::timer::Timer;
use weir_net::client::{Client, IncomingBody, PostTarget, wait_of};
use weir_net::target::Target;

/// Timeout of a request.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Longest honoured Retry-After.
const MAX_RETRY_AFTER: Nanos = Nanos::from_secs(30);
/// Longest response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Longest part of a response that is printed, in characters.
const MAX_REASON_CHARS: usize = 160;

/// Target, headers and format of requests to a receiver, without an event loop.
#[derive(Debug)]
pub(crate) struct HttpAddress {
    post: PostTarget,
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
        let (content_type, more): (_, &[(&str, &str)]) = match output.format {
            HttpFormat::RemoteWrite => (
                "application/x-protobuf",
                &[("content-encoding", "snappy"), ("x-prometheus-remote-write-version", "0.1.0")],
            ),
            HttpFormat::Otlp => ("application/x-protobuf", &[]),
            HttpFormat::Influx => ("text/plain; charset=utf-8", &[]),
        };
        let post = PostTarget::new(&target, output.path(&target), content_type);
        let mut post = post.map_err(|error| error.to_string())?;
        let is_fixed =
            |name: &str| [CONTENT_ENCODING, CONTENT_TYPE].iter().any(|own| name.eq_ignore_ascii_case(own.as_str()));
        let own = output.headers.iter().filter(|(name, _)| !is_fixed(name));
        let pairs = own.map(|(name, value)| (name.as_str(), value.as_str())).chain(more.iter().copied());
        for (name, value) in pairs {
            post.insert(name, value)?;
        }
        Ok(Self { post, format: output.format })
    }
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
        let HttpAddress { post, format } = &self.address;
        let response = post.post(&self.client, body).await;
        let response = response.map_err(|error| DeliveryFailure::passing(error.text.into_owned()))?;
        let status = response.status().as_u16();
        let retry_after = wait_of(response.headers(), MAX_RETRY_AFTER);
        let body = read(response.into_body()).await;
        if (200..300).contains(&status) {
            return Ok(rejection(&body).filter(|_| *format == HttpFormat::Otlp));
        }
        Err(DeliveryFailure {
            reason: with_message(status, &body),
            is_retryable: format.is_retryable(status),
            retry_after,
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
    let line = text.replace(is_steering, " ");
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
    fn headers_are_checked_and_those_of_the_format_stay() {
        let output = |name: &str, value: &str| HttpOutput {
            url: "http://127.0.0.1:1".to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            format: HttpFormat::RemoteWrite,
        };
        let own = HttpAddress::new(&output("Content-Type", "text/plain")).unwrap();
        assert_eq!(own.post.headers()[CONTENT_TYPE], "application/x-protobuf");
        assert_eq!(own.post.headers()[CONTENT_ENCODING], "snappy");
        assert!(HttpAddress::new(&output("a b", "x")).unwrap_err().contains("invalid header"));
    }
}
