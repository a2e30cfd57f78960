//! Texts in other encodings than UTF-8.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};

/// Text of bytes in an encoding by its name; a byte order mark is part of it.
pub(super) fn decoded(bytes: &[u8], name: &str) -> Result<String, String> {
    let encoding = known(name)?;
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.map(Cow::into_owned).ok_or_else(|| format!("the bytes are not {name}"))
}

/// Bytes of a text in an encoding by its name.
pub(super) fn encoded(text: &str, name: &str) -> Result<Vec<u8>, String> {
    let (bytes, _, has_unknown) = known(name)?.encode(text);
    if has_unknown { Err(format!("the text has characters that {name} has not")) } else { Ok(bytes.into_owned()) }
}

/// Text of a body by the `charset` of its `Content-Type`, or UTF-8 without one.
pub(super) fn body_text<'b>(body: &'b [u8], content_type: Option<&[u8]>) -> Result<Cow<'b, str>, String> {
    let name = content_type.and_then(|value| charset(std::str::from_utf8(value).ok()?));
    let encoding = match name {
        Some(name) => known(name)?,
        None => UTF_8,
    };
    let text = encoding.decode_without_bom_handling_and_without_replacement(body);
    text.ok_or_else(|| format!("the body is not {}", encoding.name()))
}

/// Whether a content type is that of HTML.
pub(super) fn is_html(content_type: Option<&[u8]>) -> bool {
    content_type.is_some_and(|value| value.trim_ascii_start().to_ascii_lowercase().starts_with(b"text/html"))
}

fn known(name: &str) -> Result<&'static Encoding, String> {
    Encoding::for_label(name.trim().as_bytes()).ok_or_else(|| format!("unknown character encoding '{name}'"))
}

/// `utf-8` of `text/html; charset="utf-8"`.
fn charset(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(value.trim().trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_in_the_encoding_of_their_type() {
        let text = |body: &'static [u8], kind: &str| body_text(body, Some(kind.as_bytes())).map(Cow::into_owned);
        assert_eq!(text(b"caf\xe9", "text/plain; charset=ISO-8859-1"), Ok("café".to_owned()));
        assert_eq!(text("é".as_bytes(), "text/plain"), Ok("é".to_owned()));
        assert!(text(b"\xff", "text/plain; charset=\"utf-8\"").is_err());
        assert!(text(b"a", "text/plain; charset=no-such").is_err());
        assert_eq!(body_text(b"a", None), Ok(Cow::Borrowed("a")));
    }

    #[test]
    fn texts_are_encoded_if_they_can_be() {
        assert_eq!(encoded("é", "latin1"), Ok(vec![0xe9]));
        assert!(encoded("€€\u{4e00}", "latin1").is_err() && encoded("a", "nothing").is_err());
        assert_eq!(decoded(&[0xe9], "iso-8859-1"), Ok("é".to_owned()));
        assert!(decoded(&[0xff], "utf-8").is_err());
    }
}
