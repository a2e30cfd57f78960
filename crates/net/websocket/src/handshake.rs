//! Key and accept value, request and response of the upgrade (RFC 6455, 4).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::deflate::DeflateAgreement;

/// Version of the protocol in `Sec-WebSocket-Version`.
pub const WEBSOCKET_VERSION: &str = "13";

/// Length of a key in `Sec-WebSocket-Key`, in bytes.
pub const KEY_TEXT_BYTES: usize = 24;

/// Appended to a key before it is hashed.
const ACCEPT_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Key of a request: 16 random bytes in Base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeKey([u8; KEY_TEXT_BYTES]);

impl HandshakeKey {
    /// Key of these random bytes.
    pub fn of(random: [u8; 16]) -> Self {
        let mut text = [0; KEY_TEXT_BYTES];
        // 16 bytes are 24 characters.
        let _ = STANDARD.encode_slice(random, &mut text);
        Self(text)
    }

    /// Text of the key.
    pub fn text(&self) -> &[u8; KEY_TEXT_BYTES] {
        &self.0
    }

    /// Value of `Sec-WebSocket-Accept` that the response to it has.
    pub fn accept(&self) -> String {
        accept_value(&self.0)
    }
}

/// Value of `Sec-WebSocket-Accept` for the value of a `Sec-WebSocket-Key`.
pub fn accept_value(key: &[u8]) -> String {
    STANDARD.encode(Sha1::new().chain_update(key).chain_update(ACCEPT_GUID).finalize())
}

/// Whether the value of a `Sec-WebSocket-Key` is 16 bytes in Base64.
pub fn is_valid_key(key: &[u8]) -> bool {
    STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

/// What a client asks for in the request of its upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeOffer {
    /// Subprotocols, the preferred one first.
    pub subprotocols: Vec<String>,
    /// Compression; none without.
    pub deflate: Option<DeflateAgreement>,
}

/// What both sides have agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeAgreement {
    /// Subprotocol.
    pub subprotocol: Option<String>,
    /// Compression.
    pub deflate: Option<DeflateAgreement>,
}

/// Reason why a response does not open the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// A status other than 101.
    Status(u16),
    /// A 101 without `Upgrade: websocket` and `Connection: Upgrade`.
    NotUpgraded,
    /// A wrong or missing `Sec-WebSocket-Accept`.
    Accept,
    /// No subprotocol, though some were offered.
    NoSubprotocol(Vec<String>),
    /// A subprotocol that was not offered.
    Subprotocol(String),
    /// An extension that was not offered, or parameters that do not answer to the offer.
    Extension(String),
}

impl std::error::Error for HandshakeError {}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status} in place of 101 to the WebSocket upgrade"),
            Self::NotUpgraded => f.write_str("a 101 without 'Upgrade: websocket' and 'Connection: Upgrade'"),
            Self::Accept => f.write_str("a wrong Sec-WebSocket-Accept: the response is not to this request"),
            Self::NoSubprotocol(offered) => {
                write!(f, "no subprotocol selected of those offered ({})", offered.join(", "))
            }
            Self::Subprotocol(selected) => {
                write!(f, "subprotocol '{}' selected, which was not offered", selected.escape_debug())
            }
            Self::Extension(text) => write!(f, "extension '{}', which was not offered", text.escape_debug()),
        }
    }
}

impl HandshakeOffer {
    /// Header lines of the request for this key, without those that all requests have. The key is the value of the
    /// first one.
    pub fn header_lines(&self, key: &HandshakeKey) -> Vec<(&'static str, String)> {
        let mut lines = vec![
            ("Sec-WebSocket-Key", String::from_utf8_lossy(key.text()).into_owned()),
            ("Sec-WebSocket-Version", WEBSOCKET_VERSION.to_owned()),
            ("Upgrade", "websocket".to_owned()),
            ("Connection", "Upgrade".to_owned()),
        ];
        if !self.subprotocols.is_empty() {
            lines.push(("Sec-WebSocket-Protocol", self.subprotocols.join(", ")));
        }
        lines.extend(self.deflate.map(|deflate| ("Sec-WebSocket-Extensions", deflate.offer())));
        lines
    }

    /// Checks a response: its status and header fields, to the request with this key.
    ///
    /// # Errors
    /// Why it does not open the connection.
    pub fn check<'h>(
        &self,
        key: &HandshakeKey,
        status: u16,
        fields: impl Iterator<Item = (&'h str, &'h [u8])>,
    ) -> Result<HandshakeAgreement, HandshakeError> {
        if status != 101 {
            return Err(HandshakeError::Status(status));
        }
        let (mut is_upgrade, mut is_websocket, mut accept) = (false, false, None);
        let (mut subprotocol, mut extensions) = (None, String::new());
        for (name, value) in fields {
            let text = String::from_utf8_lossy(value);
            let text = text.trim();
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("upgrade") {
                is_websocket |= text.eq_ignore_ascii_case("websocket");
            } else if is("connection") {
                is_upgrade |= text.split(',').any(|token| token.trim().eq_ignore_ascii_case("upgrade"));
            } else if is("sec-websocket-accept") {
                accept = Some(text.to_owned());
            } else if is("sec-websocket-protocol") {
                subprotocol = Some(text.to_owned());
            } else if is("sec-websocket-extensions") {
                if !extensions.is_empty() {
                    extensions.push(',');
                }
                extensions.push_str(text);
            }
        }
        if !is_upgrade || !is_websocket {
            return Err(HandshakeError::NotUpgraded);
        }
        if accept != Some(key.accept()) {
            return Err(HandshakeError::Accept);
        }
        match &subprotocol {
            Some(selected) if !self.subprotocols.contains(selected) => {
                return Err(HandshakeError::Subprotocol(selected.clone()));
            }
            None if !self.subprotocols.is_empty() => {
                return Err(HandshakeError::NoSubprotocol(self.subprotocols.clone()));
            }
            _ => {}
        }
        let deflate = DeflateAgreement::of_response(&extensions, self.deflate);
        let deflate = deflate.map_err(|_| HandshakeError::Extension(extensions))?;
        Ok(HandshakeAgreement { subprotocol, deflate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_value_is_that_of_the_rfc() {
        assert_eq!(accept_value(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(HandshakeKey::of(*b"the sample nonce").text(), b"dGhlIHNhbXBsZSBub25jZQ==");
        assert!(is_valid_key(b"dGhlIHNhbXBsZSBub25jZQ==") && !is_valid_key(b"dGhl") && !is_valid_key(b"?"));
    }

    #[test]
    fn a_response_opens_the_connection_only_if_it_answers_to_the_request() {
        let key = HandshakeKey::of([7; 16]);
        let plain = HandshakeOffer::default();
        let chats = HandshakeOffer { subprotocols: vec!["chat".into(), "log".into()], deflate: None };
        let deflate = HandshakeOffer { subprotocols: Vec::new(), deflate: Some(DeflateAgreement::default()) };
        let accept = key.accept();
        let good = [("upgrade", "WebSocket"), ("Connection", "keep-alive, Upgrade"), ("Sec-WebSocket-Accept", &accept)];
        let check = |offer: &HandshakeOffer, status, more: &[(&str, &str)], skipped: &str| {
            let fields = good.iter().chain(more).filter(|(name, _)| *name != skipped);
            let fields: Vec<(&str, &[u8])> = fields.map(|(name, value)| (*name, value.as_bytes())).collect();
            offer.check(&key, status, fields.into_iter())
        };
        assert_eq!(check(&plain, 101, &[], ""), Ok(HandshakeAgreement::default()));
        assert_eq!(check(&plain, 404, &[], ""), Err(HandshakeError::Status(404)));
        assert_eq!(check(&plain, 101, &[], "upgrade"), Err(HandshakeError::NotUpgraded));
        assert_eq!(check(&plain, 101, &[], "Connection"), Err(HandshakeError::NotUpgraded));
        assert_eq!(check(&plain, 101, &[], "Sec-WebSocket-Accept"), Err(HandshakeError::Accept));
        assert_eq!(check(&plain, 101, &[("Sec-WebSocket-Accept", "x")], ""), Err(HandshakeError::Accept));
        let chosen = |name: &'static str| [("sec-websocket-protocol", name)];
        assert_eq!(check(&chats, 101, &chosen("log"), "").unwrap().subprotocol.as_deref(), Some("log"));
        assert!(matches!(check(&chats, 101, &chosen("x"), ""), Err(HandshakeError::Subprotocol(_))));
        assert!(matches!(check(&plain, 101, &chosen("chat"), ""), Err(HandshakeError::Subprotocol(_))));
        assert!(matches!(check(&chats, 101, &[], ""), Err(HandshakeError::NoSubprotocol(_))));
        let extended = |text: &'static str| [("Sec-WebSocket-Extensions", text)];
        let agreed = check(&deflate, 101, &extended("permessage-deflate; server_no_context_takeover"), "").unwrap();
        assert!(agreed.deflate.unwrap().server_no_context);
        assert_eq!(check(&deflate, 101, &[], "").unwrap().deflate, None);
        for wrong in ["x-other", "permessage-deflate; client_max_window_bits=9", "permessage-deflate; a=b"] {
            assert!(matches!(check(&deflate, 101, &extended(wrong), ""), Err(HandshakeError::Extension(_))), "{wrong}");
        }
        let unasked = check(&plain, 101, &extended("permessage-deflate"), "");
        assert!(matches!(unasked, Err(HandshakeError::Extension(_))));
    }
}
