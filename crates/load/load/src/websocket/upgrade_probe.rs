//! Check before the start whether a service speaks WebSocket.

use std::io::{self, IoSlice};

use super::message_plan::MessagePlan;
use super::upgrade_response::UpgradeResponse;
use weir_base::Nanos;
use weir_net::stream::Stream;
use weir_websocket::close_code::CloseCode;
use weir_websocket::frame::Endpoint;
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::handshake::{HandshakeAgreement, HandshakeError};

/// Error of an upgrade that no load would change, in one line.
#[derive(Debug)]
pub(crate) struct UpgradeRejection(String);

impl UpgradeRejection {
    /// Rejection by a response that does not open the connection, with what to do about it.
    pub(super) fn of_handshake(error: &HandshakeError) -> Self {
        Self(format!("{error}; {}", remedy(error)))
    }
}

impl std::error::Error for UpgradeRejection {}

impl std::fmt::Display for UpgradeRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Result of an upgrade: what was agreed on, and the bytes behind the response; or why the connection is not open.
pub(super) type Upgraded = Result<(HandshakeAgreement, Vec<u8>), HandshakeError>;

/// Upgrades a connection that has just been made, and closes it; `wait` waits for the next event. A service that is
/// overloaded rejects upgrades as well (429, 5xx): that is a result, as in the load.
///
/// # Errors
/// The connection's; an [`UpgradeRejection`] if the service does not speak WebSocket there.
pub(crate) fn upgrade_once(
    stream: &mut Stream,
    plan: &MessagePlan,
    seed: u64,
    wait: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match upgrade(stream, plan, (seed, u64::MAX), wait)? {
        Ok(_) => {
            let mut close = Vec::new();
            FrameWriter::new(Endpoint::Client, seed).write_close(Some(CloseCode::NORMAL), "", &mut close);
            // Without room for it the connection ends without it.
            let _ = stream.write(&[IoSlice::new(&close)]).and_then(|_| stream.flush());
            Ok(())
        }
        Err(HandshakeError::Status(429 | 500..)) => Ok(()),
        Err(error) => Err(io::Error::other(UpgradeRejection::of_handshake(&error))),
    }
}

/// Upgrades a connection that has just been made, with the key of a seed and a number.
///
/// # Errors
/// The connection's; an [`UpgradeRejection`] if the response is not one of HTTP.
pub(super) fn upgrade(
    stream: &mut Stream,
    plan: &MessagePlan,
    (seed, number): (u64, u64),
    wait: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<Upgraded> {
    let rejected = |why: String| io::Error::other(UpgradeRejection(why));
    let (request, key) = plan.upgrade_request(seed, number);
    let (mut response, mut left) = (UpgradeResponse::default(), request.as_slice());
    // A record of TLS has up to 16 KiB.
    let mut buffer = vec![0; 64 * 1024];
    while !left.is_empty() {
        match stream.write(&[IoSlice::new(left)]) {
            Ok(bytes) => left = &left[bytes..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait()?,
            Err(error) => return Err(error),
        }
    }
    stream.flush()?;
    loop {
        let read = match stream.read(&mut buffer) {
            Ok(read) => read.bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait()?;
                continue;
            }
            Err(error) => return Err(error),
        };
        if read == 0 {
            return Err(rejected("the connection was closed before a response to the upgrade".to_owned()));
        }
        let mut rest = &buffer[..read];
        match response.take(&mut rest, &plan.offer, &key) {
            Ok(None) => {}
            Ok(Some(result)) => return Ok(result.agreement.map(|agreement| (agreement, rest.to_vec()))),
            Err(why) => return Err(rejected(format!("{why}; is it an HTTP service?"))),
        }
    }
}

/// Error of an upgrade without a response within the timeout.
pub(crate) fn unanswered(timeout: Nanos) -> io::Error {
    let why =
        format!("no response to the upgrade within {timeout}; the connection was accepted, is it an HTTP service?");
    io::Error::other(UpgradeRejection(why))
}

/// What to do about an upgrade that failed.
fn remedy(error: &HandshakeError) -> &'static str {
    match error {
        HandshakeError::Status(200..=299) => "it responds as HTTP; is there a WebSocket at this path?",
        HandshakeError::Status(300..=399) => "it redirects; write the URL where the WebSocket is",
        HandshakeError::Status(401 | 403) => "give credentials with -a or -H, or the Origin that it expects with -H",
        HandshakeError::Status(404) => "is there a WebSocket at this path?",
        HandshakeError::Status(_) => "what does it expect? Give headers with -H, subprotocols with --subprotocol",
        HandshakeError::NotUpgraded | HandshakeError::Accept => "is a proxy between that does not pass upgrades?",
        HandshakeError::NoSubprotocol(_) => "offer one that it supports with --subprotocol, or leave it out",
        HandshakeError::Subprotocol(_) => "offer it with --subprotocol",
        HandshakeError::Extension(_) => "a service may only use what is offered",
    }
}
