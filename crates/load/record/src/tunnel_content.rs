//! Protocol in a tunnel, detected from its first bytes. PURE.

/// Protocol in a CONNECT tunnel, which decides whether its requests are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelContent {
    /// TLS: a record with a handshake.
    Tls,
    /// HTTP/1.1 without TLS, as browsers open a WebSocket through a proxy.
    Http,
    /// Another protocol, which passes through unread.
    Other,
}

/// Methods of requests that begin a connection.
const METHODS: [&[u8]; 8] = [b"GET ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"HEAD ", b"OPTIONS ", b"TRACE "];

impl TunnelContent {
    /// Content that begins with these bytes; `None` if more of them are needed.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [] => None,
            // Content type 22 of version 3.x.
            [22, 3, ..] => Some(Self::Tls),
            [22] => None,
            _ if METHODS.iter().any(|method| bytes.starts_with(method)) => Some(Self::Http),
            _ if METHODS.iter().any(|method| method.starts_with(bytes)) => None,
            _ => Some(Self::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_bytes_tell_the_protocol() {
        for (bytes, expected) in [
            (&b""[..], None),
            (&[22], None),
            (&[22, 3, 1, 2, 0], Some(TunnelContent::Tls)),
            (&[22, 9], Some(TunnelContent::Other)),
            (b"GE", None),
            (b"GET /chat HTTP/1.1\r\n", Some(TunnelContent::Http)),
            (b"GETS", Some(TunnelContent::Other)),
            (b"PRI * HTTP/2.0", Some(TunnelContent::Other)),
            (b"SSH-2.0-x", Some(TunnelContent::Other)),
        ] {
            assert_eq!(TunnelContent::of(bytes), expected, "{bytes:?}");
        }
    }

    proptest! {
        /// What is decided stays, however the bytes are cut, and is decided within the longest method.
        #[test]
        fn more_bytes_do_not_change_a_decision(bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..20),
            "(GET|PUT|OPTIONS|POST|PRI)[ A-Z]{0,8}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(|rest| [&[22, 3][..], &rest].concat()),
        ]) {
            let mut decided = None;
            for length in 0..=bytes.len() {
                let now = TunnelContent::of(&bytes[..length]);
                prop_assert!(decided.is_none() || now == decided);
                decided = now;
            }
            prop_assert!(decided.is_some() || bytes.len() < 8);
        }
    }
}
