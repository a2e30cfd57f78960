//! Tests of heads of requests.

use super::*;
use proptest::prelude::*;

const LIMITS: HeadLimits = HeadLimits { bytes: 8192, fields: 100 };

fn parse(text: &str) -> Result<Option<(ParsedHead, usize)>, HeadError> {
    ParsedHead::parse(text.as_bytes(), LIMITS, &mut HeadFields::default())
}

fn head(fields: &str) -> ParsedHead {
    parse(&format!("POST /a?b HTTP/1.1\r\n{fields}\r\n")).unwrap().unwrap().0
}

#[test]
fn a_head_is_method_target_version_and_fields() {
    let text = "\r\nPATCH /a?b=%20 HTTP/1.0\r\nHost: x\r\nEmpty:\r\nMany: 1\r\nmany:  2 \r\n\r\nrest";
    let (head, length) = parse(text).unwrap().unwrap();
    assert_eq!(length, text.len() - 4);
    assert_eq!(head.request.method(), "PATCH");
    assert_eq!(head.request.uri(), "/a?b=%20");
    assert_eq!(head.request.version(), Version::HTTP_10);
    assert_eq!(head.request.headers()["host"], "x");
    assert_eq!(head.request.headers()["empty"], "");
    assert_eq!(head.request.headers().get_all("many").iter().collect::<Vec<_>>(), ["1", "2"]);
    assert!(head.body.is_ended());
    assert!(!head.keep_alive);
}

#[test]
fn lines_end_with_cr_and_lf() {
    for text in [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\n\n",
    ] {
        assert_eq!(parse(text).unwrap_err(), HeadError::Malformed, "{text:?}");
    }
    for text in ["GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: x\r\nA:\r\n\r\n"] {
        assert!(parse(text).unwrap().is_some(), "{text:?}");
    }
}

#[test]
fn a_body_has_a_length_or_chunks() {
    assert_eq!(head("").body.remaining(), Some(0));
    assert_eq!(head("Content-Length: 5\r\n").body.remaining(), Some(5));
    assert_eq!(head("Content-Length: 5\r\nContent-Length: 5\r\n").body.remaining(), Some(5));
    assert_eq!(head("Content-Length: 5\r\nContent-Length: 5\r\n").request.headers().len(), 1);
    let both = head("Content-Length: 5\r\nTransfer-Encoding: Chunked\r\n");
    assert_eq!(both.body.remaining(), None);
    assert!(!both.keep_alive);
    assert!(!both.request.headers().contains_key("content-length"));
    assert!(head("Transfer-Encoding: chunked\r\n").keep_alive);
    for wrong in [
        "Content-Length: 5, 5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 0x5\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: chunked,\r\n",
    ] {
        let text = format!("POST / HTTP/1.1\r\n{wrong}\r\n");
        assert_eq!(parse(&text).unwrap_err(), HeadError::Malformed, "{wrong}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old).unwrap_err(), HeadError::Malformed);
}

#[test]
fn a_connection_goes_on_unless_either_end_closes_it() {
    assert!(head("").keep_alive);
    assert!(!head("Connection: x, Close\r\n").keep_alive);
    assert!(!head("Connection: close\r\nConnection: keep-alive\r\n").keep_alive);
    let old = |fields: &str| parse(&format!("GET / HTTP/1.0\r\n{fields}\r\n")).unwrap().unwrap().0.keep_alive;
    assert!(!old(""));
    assert!(old("Connection: Keep-Alive\r\n"));
    assert!(!old("Connection: keep-alive, close\r\n"));
}

#[test]
fn a_client_that_waits_has_a_body_to_send() {
    assert!(head("Expect: 100-Continue\r\nContent-Length: 1\r\n").expects_continue);
    assert!(!head("Expect: 100-continue\r\n").expects_continue);
    let old = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
    assert!(!parse(old).unwrap().unwrap().0.expects_continue);
    assert!(head("TE: deflate, trailers\r\n").takes_trailers);
}

#[test]
fn a_head_beyond_a_limit_is_an_error() {
    let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(parse(&many(100)).unwrap().unwrap().0.request.headers().len(), 100);
    assert_eq!(parse(&many(101)).unwrap_err(), HeadError::TooLarge);
    let limits = HeadLimits { bytes: 8192, fields: 3 };
    let few = |text: &str| ParsedHead::parse(text.as_bytes(), limits, &mut HeadFields::default());
    assert!(few(&many(3)).is_ok());
    assert_eq!(few(&many(4)).unwrap_err(), HeadError::TooLarge);
    assert_eq!(parse(&"x".repeat(8192)).unwrap_err(), HeadError::TooLarge);
    assert!(parse(&"x".repeat(8191)).unwrap().is_none());
    let wide = HeadLimits { bytes: 1 << 20, fields: 10 };
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(MAX_TARGET_BYTES));
    let parsed = ParsedHead::parse(long.as_bytes(), wide, &mut HeadFields::default());
    assert_eq!(parsed.unwrap_err(), HeadError::TargetTooLong);
}

#[test]
fn a_head_ends_with_an_empty_line() {
    for (text, before, expected) in [
        ("a\r\n\r\n", 0, true),
        ("a\r\n\r\n", 4, true),
        ("a\n\n", 2, true),
        ("a\n\r\n", 3, true),
        ("a\r\n\r\nb", 5, false),
        ("a\r\nb\r\n", 0, false),
        ("\r\r\n", 0, false),
    ] {
        assert_eq!(has_empty_line(text.as_bytes(), before), expected, "{text:?} {before}");
    }
}

proptest! {
    #[test]
    fn a_head_in_pieces_is_incomplete_until_its_last_byte(
        fields in proptest::collection::vec(("[a-zA-Z-]{1,9}x", "[ -~]{0,20}"), 0..80),
    ) {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let text = format!("GET /path HTTP/1.1\r\n{lines}\r\n");
        for cut in 0..text.len() {
            prop_assert!(parse(&text[..cut]).unwrap().is_none());
        }
        let (head, length) = parse(&text).unwrap().unwrap();
        prop_assert_eq!(length, text.len());
        prop_assert_eq!(head.request.headers().len(), fields.len());
        for (name, value) in &fields {
            let values = head.request.headers().get_all(name.as_str());
            prop_assert!(values.iter().any(|had| had.as_bytes() == value.trim_matches([' ', '\t']).as_bytes()));
        }
    }

    #[test]
    fn any_bytes_are_a_head_an_error_or_incomplete(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((_, length))) = ParsedHead::parse(&bytes, LIMITS, &mut HeadFields::default()) {
            prop_assert!(length <= bytes.len());
        }
    }
}
