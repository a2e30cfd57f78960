//! Encodings of values.

use super::super::encoding::PieceEncoding;
use super::*;

fn encoded(encoding: PieceEncoding, value: &str) -> Result<String, EncodingError> {
    let mut out = format!("before{value}").into_bytes();
    encoding.encode_tail(&mut out, "before".len())?;
    let text = String::from_utf8(out).unwrap();
    Ok(text.strip_prefix("before").unwrap().to_owned())
}

#[test]
fn a_value_is_encoded_for_its_place() {
    let all = "aZ09-._~ \"\\/&=\u{e9}";
    let cases = [
        (PieceEncoding::Verbatim, all.to_owned()),
        (PieceEncoding::Url, all.to_owned()),
        (PieceEncoding::Parameter, "aZ09-._~%20%22%5C%2F%26%3D%C3%A9".to_owned()),
        (PieceEncoding::HeaderValue, all.to_owned()),
        (PieceEncoding::JsonString, all.replace('\\', "\\\\").replace('"', "\\\"")),
        (PieceEncoding::QuotedName, all.replace('"', "%22")),
    ];
    for (encoding, expected) in cases {
        assert_eq!(encoded(encoding, all).as_deref(), Ok(expected.as_str()), "{encoding:?}");
        assert_eq!(encoded(encoding, "").as_deref(), Ok(""), "{encoding:?}");
    }
    for (value, expected) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")] {
        assert_eq!(encoded(PieceEncoding::Base64, value).as_deref(), Ok(expected));
    }
    assert_eq!(
        encoded(PieceEncoding::JsonString, "\n\r\t\u{8}\u{c}\u{1}\u{7f}").unwrap(),
        "\\n\\r\\t\\b\\f\\u0001\u{7f}"
    );
    assert_eq!(encoded(PieceEncoding::QuotedName, "a\r\nb").unwrap(), "a%0D%0Ab");
}

#[test]
fn control_characters_do_not_reach_a_head() {
    for byte in (0..=0x7f_u8).filter(u8::is_ascii_control) {
        let value = format!("a{}b", char::from(byte));
        assert_eq!(encoded(PieceEncoding::Url, &value), Err(EncodingError::ControlInUrl), "{byte}");
        let header = encoded(PieceEncoding::HeaderValue, &value);
        let expected = if byte == b'\t' { Ok(value.clone()) } else { Err(EncodingError::ControlInHeader) };
        assert_eq!(header, expected, "{byte}");
        assert_eq!(encoded(PieceEncoding::HeaderName, &value), Err(EncodingError::HeaderName), "{byte}");
    }
    assert_eq!(encoded(PieceEncoding::HeaderName, "X-A_b1").as_deref(), Ok("X-A_b1"));
    for name in ["", "a b", "a:b", "\u{e9}"] {
        assert_eq!(encoded(PieceEncoding::HeaderName, name), Err(EncodingError::HeaderName), "{name}");
    }
}
