//! Heads of responses whose readers have no use for most of the fields.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::error::SendError;
use super::framing_headers::FramingHeaders;
use crate::wire::{PassedFields, is_line, tokens};
use weir_retry::grpc::is_grpc;

/// Fields of a response, without those of its framing and its connection.
#[derive(Debug)]
pub(super) struct SplitFields {
    /// Fields that nothing reads.
    pub(super) passed: PassedFields,
    /// Fields that decide about a call, and those of the names that are kept.
    pub(super) kept: HeaderMap,
    pub(super) framing: FramingHeaders,
}

impl SplitFields {
    /// Splits the fields of a response, which are parts of its head; None if there is one that only a map of all of them does justice to.
    ///
    /// # Errors
    /// If its framing is invalid or ambiguous.
    pub(super) fn of(
        head: &[u8],
        fields: &[httparse::Header<'_>],
        kept_names: &[HeaderName],
        framing: FramingHeaders,
        memory: PassedFields,
    ) -> Result<Option<Self>, SendError> {
        let mut split = Self { passed: memory, kept: HeaderMap::new(), framing };
        for field in fields {
            if !split.add(head, field.name, field.value, kept_names)? {
                return Ok(None);
            }
        }
        Ok(Some(split))
    }

    /// Adds a field; returns false if it cannot be.
    fn add(&mut self, head: &[u8], name: &str, value: &[u8], kept_names: &[HeaderName]) -> Result<bool, SendError> {
        // A folded value becomes one line in a map.
        if !is_line(value) {
            return Ok(false);
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            10 if is("connection") => {
                self.framing.add_connection(value);
                // It may name other fields.
                return Ok(tokens(value).all(is_ordinary_option));
            }
            10 if is("keep-alive") => return Ok(true),
            12 if is("content-type") && is_grpc(value) => return Ok(false),
            14 if is("content-length") => return self.framing.add_length(value).map(|()| true),
            17 if is("transfer-encoding") => return self.framing.add_codings(value).map(|()| true),
            7 if is("trailer") || is("upgrade") => {}
            2 if is("te") => {}
            11 if is("retry-after") => {}
            14 if is("http2-settings") => {}
            16 if is("proxy-connection") => {}
            18 if is("proxy-authenticate") => {}
            _ if kept_names.iter().any(|kept| is(kept.as_str())) => {}
            _ => {
                self.passed.add(head, name, value);
                return Ok(true);
            }
        }
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) else {
            return Ok(false);
        };
        self.kept.append(name, value);
        Ok(true)
    }
}

/// Whether an option of `Connection` is about the connection alone.
fn is_ordinary_option(option: &[u8]) -> bool {
    option.is_empty() || option.eq_ignore_ascii_case(b"close") || option.eq_ignore_ascii_case(b"keep-alive")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::client::response::{HeadParser, ResponseContext, ResponseHead};
    use crate::wire::MAX_HEADERS;

    const KEPT: [&str; 2] = ["x-kept", "etag"];

    fn parse(head: &[u8], context: ResponseContext, passes: bool) -> Result<Option<(ResponseHead, usize)>, SendError> {
        let kept: Arc<[HeaderName]> = KEPT.map(HeaderName::from_static).into();
        let parser = HeadParser::new(context);
        let mut parser = if passes { parser.passing_all_but(kept, PassedFields::default()) } else { parser };
        parser.push(head)
    }

    fn split(fields: &str) -> ResponseHead {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        parse(text.as_bytes(), ResponseContext::default(), true).unwrap().unwrap().0
    }

    #[test]
    fn fields_that_decide_are_headers_and_others_are_lines() {
        let head =
            split("Server: x\r\nDate: now\r\nContent-Length: 3\r\nConnection: keep-alive\r\nETag: 1\r\nX-Kept: 2\r\n");
        assert_eq!(head.passed.lines(), b"server: x\r\ndate: now\r\n");
        assert!(head.passed.has_date() && head.keep_alive);
        assert_eq!((head.headers.len(), head.body.remaining()), (2, Some(3)));
        let head =
            split("Retry-After: 1\r\nTrailer: x\r\nUpgrade: h2c\r\nKeep-Alive: timeout=5\r\nVary: a\r\nVary: b\r\n");
        assert_eq!(head.passed.lines(), b"vary: a\r\nvary: b\r\n");
        assert_eq!(head.headers.len(), 3);
    }

    #[test]
    fn some_fields_make_all_of_them_headers() {
        for fields in ["Content-Type: application/grpc+proto", "Connection: x-other, close", "X-Folded: a\r\n b"] {
            let head = split(&format!("Server: x\r\n{fields}\r\n"));
            assert!(head.passed.is_empty(), "{fields}");
            assert_eq!(head.headers.len(), 2, "{fields}");
        }
        let text = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 3\r\n\r\n";
        let context = ResponseContext { is_head: true, ..ResponseContext::default() };
        let (head, _) = parse(text, context, true).unwrap().unwrap();
        assert!(head.passed.is_empty() && head.headers.contains_key("content-length"));
        let context = ResponseContext { keeps_head: true, ..ResponseContext::default() };
        assert!(parse(text, context, true).unwrap().unwrap().0.received.is_some());
    }

    /// Names and values that matter, and others.
    fn field() -> impl Strategy<Value = (String, String)> {
        let name = prop_oneof![
            proptest::sample::select(vec![
                "Server",
                "date",
                "Content-Length",
                "content-length",
                "Connection",
                "Keep-Alive",
                "Transfer-Encoding",
                "Trailer",
                "TE",
                "Upgrade",
                "HTTP2-Settings",
                "Retry-After",
                "Content-Type",
                "Set-Cookie",
                "X-Kept",
                "ETag",
                "Proxy-Connection",
                "Proxy-Authenticate",
                "x_y",
            ])
            .prop_map(str::to_owned),
            "[A-Za-z!#$%&'*+.^_`|~0-9-]{1,12}",
        ];
        let value = prop_oneof![
            proptest::sample::select(vec![
                "5",
                "5, 5",
                "6",
                "close",
                "keep-alive",
                "Keep-Alive, x-kept",
                "chunked",
                "gzip",
                "application/grpc",
                "",
                "a\r\n b",
                "chunked\r\n , chunked",
                "\u{e9}",
                "a\tb",
            ])
            .prop_map(str::to_owned),
            "[ -~]{0,20}",
        ];
        (name, value)
    }

    proptest! {
        #[test]
        fn a_head_is_the_same_whether_its_fields_are_read_or_passed_on(
            fields in proptest::collection::vec(field(), 0..12), status in 199_u16..600, is_head: bool,
        ) {
            let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let text = format!("HTTP/1.1 {status} OK\r\n{lines}\r\n");
            let context = ResponseContext { is_head, ..ResponseContext::default() };
            let (whole, split) = (parse(text.as_bytes(), context, false), parse(text.as_bytes(), context, true));
            prop_assert_eq!(whole.is_ok(), split.is_ok(), "{}", text);
            let (Ok(Some((whole, length))), Ok(Some((split, split_length)))) = (whole, split) else { return Ok(()) };
            prop_assert_eq!(length, split_length);
            prop_assert_eq!((whole.status, whole.version, whole.keep_alive), (split.status, split.version, split.keep_alive));
            prop_assert_eq!(whole.body.remaining(), split.body.remaining());
            prop_assert_eq!(whole.body.is_until_close(), split.body.is_until_close());
            let (mut expected, mut found) = (whole.headers, split.headers);
            let is_split = !split.passed.is_empty();
            split.passed.append_to(&mut found);
            if is_split || found.len() != expected.len() {
                // What is of the connection and its framing.
                for name in ["connection", "keep-alive", "content-length"] {
                    prop_assert!(!found.contains_key(name) || !is_split, "{}", text);
                    expected.remove(name);
                    found.remove(name);
                }
            }
            prop_assert_eq!(found, expected, "{}", text);
        }

        #[test]
        fn any_bytes_are_a_head_either_way_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let text = [b"HTTP/1.1 200 OK\r\n".as_slice(), &bytes, b"\r\n\r\n"].concat();
            let context = ResponseContext::default();
            let whole = parse(&text, context, false);
            let split = parse(&text, context, true);
            prop_assert_eq!(whole.is_ok(), split.is_ok());
            let count = |head: Option<(ResponseHead, usize)>| head.map(|(head, length)| (length, head.keep_alive));
            prop_assert_eq!(whole.ok().map(count), split.ok().map(count));
        }
    }

    #[test]
    fn a_name_is_a_name_either_way() {
        for byte in 0..=u8::MAX {
            let text = [b"HTTP/1.1 200 OK\r\nX".as_slice(), &[byte], b"y: 1\r\n\r\n"].concat();
            let [whole, split] = [false, true].map(|passes| parse(&text, ResponseContext::default(), passes).is_ok());
            assert_eq!(whole, split, "{byte}");
        }
    }

    #[test]
    fn a_head_has_so_many_fields_either_way() {
        for (count, is_valid) in [(MAX_HEADERS, true), (MAX_HEADERS + 1, false)] {
            let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
            assert_eq!(parse(text.as_bytes(), ResponseContext::default(), true).is_ok(), is_valid, "{count}");
        }
    }
}
