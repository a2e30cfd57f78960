//! Response to an upgrade, read in pieces.

use weir_websocket::handshake::{HandshakeAgreement, HandshakeError, HandshakeKey, HandshakeOffer};

/// Maximum length of a response's head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Maximum number of its header fields.
const MAX_FIELDS: usize = 100;

/// Head of a response to an upgrade, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct UpgradeResponse {
    head: Vec<u8>,
}

/// A whole head.
#[derive(Debug)]
pub(crate) struct UpgradeResult {
    /// What was agreed on, or why the connection is not open.
    pub(crate) agreement: Result<HandshakeAgreement, HandshakeError>,
    /// Length of the head, in bytes.
    pub(crate) head_bytes: usize,
    /// Value of `Server`; empty without one.
    pub(crate) server: String,
}

impl UpgradeResponse {
    /// Head as it came.
    pub(crate) fn head(&self) -> &[u8] {
        let end = memchr::memmem::find(&self.head, b"\r\n\r\n").map_or(self.head.len(), |at| at + 4);
        &self.head[..end]
    }

    /// Takes bytes of the response up to the end of its head; what is behind stays in `rest`. The result once it is
    /// whole.
    ///
    /// # Errors
    /// What came is not a response of HTTP.
    pub(crate) fn take(
        &mut self,
        rest: &mut &[u8],
        offer: &HandshakeOffer,
        key: &HandshakeKey,
    ) -> Result<Option<UpgradeResult>, String> {
        let mut before = self.head.len();
        self.head.extend_from_slice(rest);
        // They may come before any response (RFC 9110, 15.2), and their ends are in these bytes.
        while let Some(length) = interim_bytes(&self.head) {
            self.head.drain(..length);
            *rest = &rest[length - before..];
            before = 0;
        }
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(&self.head) {
            Ok(httparse::Status::Complete(length)) => {
                *rest = &rest[length - before..];
                let status = response.code.unwrap_or_default();
                let fields = || response.headers.iter().map(|field| (field.name, field.value));
                let agreement = offer.check(key, status, fields());
                let server = fields().find(|(name, _)| name.eq_ignore_ascii_case("server"));
                let server = server.map_or_else(String::new, |(_, value)| String::from_utf8_lossy(value).into_owned());
                Ok(Some(UpgradeResult { agreement, head_bytes: length, server }))
            }
            Ok(httparse::Status::Partial) if self.head.len() <= MAX_HEAD_BYTES => {
                *rest = &[];
                Ok(None)
            }
            Ok(httparse::Status::Partial) => Err("a response to the upgrade whose head is too long".to_owned()),
            Err(error) => Err(format!("a response to the upgrade that is not HTTP/1.1: {error}")),
        }
    }
}

/// Length of an interim response at the start of a head, such as 100 and 103; `None` if there is none that is whole.
fn interim_bytes(head: &[u8]) -> Option<usize> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(head) {
        Ok(httparse::Status::Complete(length)) if matches!(response.code, Some(100 | 102..=199)) => Some(length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interim_responses_are_passed_over_in_pieces_of_any_size() {
        let (offer, key) = (HandshakeOffer::default(), HandshakeKey::of([7; 16]));
        let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let upgraded = format!(
            "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            key.accept()
        );
        let all = [interim, &upgraded, "frames"].concat();
        for size in 1..all.len() {
            let mut response = UpgradeResponse::default();
            let mut left = Vec::new();
            let mut found = None;
            for piece in all.as_bytes().chunks(size) {
                let mut rest = piece;
                if found.is_none() {
                    found = response.take(&mut rest, &offer, &key).expect("responses");
                }
                left.extend_from_slice(rest);
            }
            let found = found.expect("whole");
            assert!(found.agreement.is_ok() && found.head_bytes == upgraded.len(), "{size}: {found:?}");
            assert_eq!((left.as_slice(), response.head()), (&b"frames"[..], upgraded.as_bytes()), "{size}");
        }
    }
}
