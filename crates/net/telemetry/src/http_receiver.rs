//! A receiver that is reached by HTTP: one request, and the meaning of its response.

use bytes::Bytes;
use http_body_util::{BodyExt, Collected, Limited};

use super::delivery_failure::DeliveryFailure;
use super::http_address::HttpAddress;
use weir_base::Nanos;
use weir_base::terminal_text::is_steering;
use weir_machine::timer::Timer;
use weir_net::client::{Client, IncomingBody, Options, wait_of};

/// Timeout of a request: the default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Nanos = Nanos::from_secs(10);
/// Longest response that is read, in bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
/// Longest part of a response that is printed, in characters.
const MAX_REASON_CHARS: usize = 160;

/// A receiver, from one event loop.
#[derive(Debug)]
pub struct HttpReceiver {
    address: HttpAddress,
    client: Client,
    timer: Timer,
}

impl HttpReceiver {
    /// The receiver at an address, which need not be reachable yet.
    pub fn new(address: HttpAddress, timer: Timer) -> Self {
        Self { address, client: Client::new(timer.clone(), Options::default()), timer }
    }

    /// Its address.
    pub fn address(&self) -> &HttpAddress {
        &self.address
    }

    /// Sends a message, with a timeout; returns the body of the response that accepts it. An unreadable one is empty,
    /// since the status means that the message was accepted.
    ///
    /// # Errors
    /// There is no response, or it rejects the message.
    pub async fn post(&self, message: Bytes) -> Result<Bytes, DeliveryFailure> {
        tokio::select! {
            done = self.exchange(message) => done,
            () = self.timer.sleep(REQUEST_TIMEOUT) => {
                Err(DeliveryFailure::passing(format!("no response within {REQUEST_TIMEOUT}")))
            }
        }
    }

    async fn exchange(&self, message: Bytes) -> Result<Bytes, DeliveryFailure> {
        let HttpAddress { post, rules, .. } = &self.address;
        let response = post.post(&self.client, message).await;
        let response = response.map_err(|error| DeliveryFailure::passing(error.text.into_owned()))?;
        let status = response.status().as_u16();
        let retry_after = wait_of(response.headers(), rules.max_retry_after);
        let body = read(response.into_body()).await;
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let is_retryable = (rules.is_retryable)(status);
        Err(DeliveryFailure { reason: with_message(status, &body), is_retryable, retry_after })
    }

    /// Closes connections that are idle.
    pub fn sweep(&self) {
        self.client.sweep(self.timer.now());
    }
}

/// Body of a response; of one that cannot be read, nothing.
async fn read(body: IncomingBody) -> Bytes {
    Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map(Collected::to_bytes).unwrap_or_default()
}

/// A status with the start of the response's text, which says what the receiver has against the message.
fn with_message(status: u16, body: &[u8]) -> String {
    let line = std::str::from_utf8(body).map(one_line).unwrap_or_default();
    if line.is_empty() { format!("status {status}") } else { format!("status {status}, {line}") }
}

/// Start of a receiver's text, on one line without control characters, since it is printed on a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.replace(is_steering, " ");
    line.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_REASON_CHARS).collect()
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
}
