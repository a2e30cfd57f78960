//! Upgrades of a connection to another protocol (RFC 9110, 7.8). What goes through a connection afterwards is not looked
//! at, so a proxy passes on only what it was configured to.

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue};

use crate::lookup::has_field;
use crate::wire::has_token;

/// The protocol that `Upgrade` names in one line with one name, if `Connection` asks for it as well. A list of protocols
/// is none: two readers may choose another one of it.
pub fn requested_protocol(headers: &HeaderMap) -> Option<&HeaderValue> {
    let protocol = only_protocol(headers)?;
    let is_asked = headers.get_all(CONNECTION).iter().any(|value| has_token(value.as_bytes(), b"upgrade"));
    is_asked.then_some(protocol)
}

/// Whether a response's `Upgrade` names this protocol and no other.
pub fn switches_to(headers: &HeaderMap, protocol: &HeaderValue) -> bool {
    only_protocol(headers).is_some_and(|named| is_same_protocol(named, protocol))
}

/// Whether two names are of the same protocol, in any case.
pub fn is_same_protocol(one: &HeaderValue, other: &HeaderValue) -> bool {
    one.as_bytes().trim_ascii().eq_ignore_ascii_case(other.as_bytes().trim_ascii())
}

/// Whether a protocol carries further HTTP requests, which pass all rules for requests: HTTP/2 and HTTP/3 in all
/// spellings, other versions of HTTP, and TLS.
pub fn carries_requests(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let (protocol, _) = name.split_once('/').unwrap_or((&name, ""));
    matches!(protocol, "h2c" | "h2" | "h3" | "http" | "https" | "tls" | "ssl") || protocol.starts_with("h3-")
}

/// The one name in the one line of `Upgrade`.
fn only_protocol(headers: &HeaderMap) -> Option<&HeaderValue> {
    if !has_field(headers, &UPGRADE) {
        return None;
    }
    let mut lines = headers.get_all(UPGRADE).iter();
    let protocol = lines.next().filter(|_| lines.next().is_none())?;
    let name = protocol.as_bytes().trim_ascii();
    let is_name = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b';' | b'"' | b'(' | b')');
    (!name.is_empty() && name.iter().all(is_name)).then_some(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (http::HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn an_upgrade_is_one_name_that_connection_asks_for() {
        for (lines, expected) in [
            (&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")][..], true),
            (&[("connection", "upgrade"), ("upgrade", " WebSocket ")], true),
            (&[("connection", "close"), ("connection", "UPGRADE"), ("upgrade", "a/1.0")], true),
            (&[("connection", "keep-alive"), ("upgrade", "websocket")], false),
            (&[("upgrade", "websocket")], false),
            (&[("connection", "upgrade")], false),
            (&[("connection", "upgrade"), ("upgrade", "")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket, h2c")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket,")], false),
            (&[("connection", "upgrade"), ("upgrade", "web socket")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket;x")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "h2c")], false),
            (&[("connection", "upgrade"), ("upgrade", "websocket"), ("upgrade", "websocket")], false),
        ] {
            assert_eq!(requested_protocol(&headers(lines)).is_some(), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_switch_is_to_the_protocol_that_was_asked_for() {
        let asked = HeaderValue::from_static("websocket");
        for (line, expected) in
            [("websocket", true), ("WebSocket", true), ("h2c", false), ("websocket, h2c", false), ("", false)]
        {
            assert_eq!(switches_to(&headers(&[("upgrade", line)]), &asked), expected, "{line}");
        }
        assert!(!switches_to(&headers(&[]), &asked));
        assert!(!switches_to(&headers(&[("upgrade", "websocket"), ("upgrade", "h2c")]), &asked));
    }

    #[test]
    fn protocols_that_carry_requests_are_found_in_all_spellings() {
        for name in ["h2c", "H2C", " h2c ", "h2", "h3", "h3-29", "HTTP/2.0", "http/1.1", "TLS/1.0", "tls"] {
            assert!(carries_requests(name), "{name}");
        }
        for name in ["websocket", "spdy/3.1", "tcp", "irc/6.9", "h2x"] {
            assert!(!carries_requests(name), "{name}");
        }
    }
}
