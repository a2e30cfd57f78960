//! Request lines of logs: escapes of the log undone, and a target that can be sent.

use std::borrow::Cow;

use weir_base::percent;
use weir_base::percent::AsciiSet;

/// Text without the escapes of nginx (`\x22`) and Apache (`\"`, `\\`, `\n`), as bytes.
pub(crate) fn unescaped(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('\\') {
        return Cow::Borrowed(text.as_bytes());
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (value, length) = match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'x')) => match bytes.get(at + 2..at + 4).and_then(hex) {
                Some(value) => (value, 4),
                None => (b'\\', 1),
            },
            (b'\\', Some(b'n')) => (b'\n', 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(&escaped @ (b'"' | b'\\' | b'\''))) => (escaped, 2),
            _ => (byte, 1),
        };
        plain.push(value);
        at += length;
    }
    Cow::Owned(plain)
}

/// Characters that are escaped in a target: all but visible ASCII.
const INVISIBLE: &AsciiSet = &percent::CONTROLS.add(b' ');

fn hex(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u8::from_str_radix(digits, 16).ok()
}

/// Method, target and host of a request line: `GET /path HTTP/1.1`, or with a whole URL.
pub(crate) fn request_line(line: &[u8]) -> Option<(&str, &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let method = std::str::from_utf8(&line[..space]).ok()?;
    let rest = &line[space + 1..];
    // A target with spaces is not valid, and clients send it all the same.
    let end = memchr::memmem::rfind(rest, b" HTTP/").unwrap_or(rest.len());
    Some((method, &rest[..end]))
}

/// Whether this is a method: a token of capital letters, as all methods are.
pub(crate) fn is_method(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    (1..=32).contains(&text.len()) && text.bytes().all(is_letter) && text.starts_with(|c: char| c.is_ascii_uppercase())
}

/// Path and query that can be sent, and the host of a whole URL; bytes that a request line cannot have are escaped.
pub(crate) fn target(target: &[u8]) -> Option<(String, Option<&str>)> {
    let (host, path) = match target {
        [b'/', ..] => (None, target),
        _ => {
            let rest = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://"))?;
            let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
            let authority = std::str::from_utf8(&rest[..end]).ok()?;
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            (Some(host).filter(|host| !host.is_empty()), &rest[end..])
        }
    };
    let mut text = if path.starts_with(b"/") { String::new() } else { "/".to_owned() };
    text.push_str(&percent::encoded(path, INVISIBLE));
    Some((text, host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_of_both_servers_are_undone() {
        for (text, expected) in [
            (r"GET /a\x22b HTTP/1.1", &b"GET /a\"b HTTP/1.1"[..]),
            (r#"a\"b\\c\n"#, b"a\"b\\c\n"),
            (r"\x16\x03\xff", b"\x16\x03\xff"),
            (r"\x1 \q \", br"\x1 \q \"),
            (r"\x+1", br"\x+1"),
        ] {
            assert_eq!(&*unescaped(text), expected, "{text}");
        }
    }

    #[test]
    fn targets_are_paths_that_can_be_sent() {
        let of = |text: &[u8]| target(text).map(|(path, host)| (path, host.map(str::to_owned)));
        assert_eq!(of(b"/a?b=c"), Some(("/a?b=c".to_owned(), None)));
        assert_eq!(of("/é x".as_bytes()), Some(("/%C3%A9%20x".to_owned(), None)));
        assert_eq!(of(b"http://u@h:80/a"), Some(("/a".to_owned(), Some("h:80".to_owned()))));
        assert_eq!(of(b"https://h?x"), Some(("/?x".to_owned(), Some("h".to_owned()))));
        assert_eq!(of(b"http://h:80"), Some(("/".to_owned(), Some("h:80".to_owned()))));
        for wrong in [&b"*"[..], b"h:443", b"-", b"", b"a/b"] {
            assert_eq!(of(wrong), None);
        }
    }

    #[test]
    fn a_request_line_has_its_method_and_target() {
        assert_eq!(request_line(b"GET /a b HTTP/1.1"), Some(("GET", &b"/a b"[..])));
        assert_eq!(request_line(b"GET /a"), Some(("GET", &b"/a"[..])));
        assert_eq!(request_line(b"-"), None);
        assert!(is_method("M-SEARCH") && !is_method("get") && !is_method("-") && !is_method("") && !is_method("1A"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_target_that_can_be_sent_or_none(bytes: Vec<u8>) {
            if let Some((text, _)) = target(&bytes) {
                prop_assert!(text.starts_with('/') && text.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
            }
        }

        #[test]
        fn any_text_can_be_unescaped(text in "[\\\\xa-f0-9\"é]{0,20}") {
            prop_assert!(unescaped(&text).len() <= text.len());
        }
    }
}
