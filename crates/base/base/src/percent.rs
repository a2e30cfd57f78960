//! Percent-encoding: bytes as `%20`. An escape that is none, such as `%+f`, stands for itself.

use std::borrow::Cow;

pub use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode_byte};
use percent_encoding::{percent_decode, percent_encode};

/// What is escaped in a part of a URL: all but letters, digits and `-._~` (RFC 3986, 2.3).
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Text with the bytes of a set, and those that are not ASCII, as escapes.
pub fn encoded(text: &[u8], escaped: &'static AsciiSet) -> String {
    percent_encode(text, escaped).to_string()
}

/// Text of a form, with the bytes of a set, and those that are not ASCII, as escapes, and spaces as `+`.
pub fn form_encoded(text: &[u8], escaped: &'static AsciiSet) -> String {
    text.split(|byte| *byte == b' ').map(|part| encoded(part, escaped)).collect::<Vec<_>>().join("+")
}

/// Bytes that a text with escapes stands for.
pub fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    percent_decode(text).into()
}

/// Bytes that a text of a form stands for: as [`decoded`], and `+` is a space.
pub fn form_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'+') {
        return decoded(text);
    }
    let spaced: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(decoded(&spaced).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrong_escapes_stand_for_themselves() {
        for (text, plain) in [
            ("%41%4a%4A", "AJJ"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%2", "%zz%2"),
            ("%%41+", "%A+"),
            ("%+f%-1% 1", "%+f%-1% 1"),
        ] {
            assert_eq!(&*decoded(text.as_bytes()), plain.as_bytes());
            assert_eq!(form_decoded(text.as_bytes()), decoded(text.replace('+', " ").as_bytes()));
        }
        assert_eq!(&*form_decoded(b"%2B+%2b"), b"+ +");
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_decoded_again(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let (url, form) = (encoded(&bytes, RESERVED), form_encoded(&bytes, RESERVED));
            prop_assert_eq!(&*decoded(url.as_bytes()), &bytes[..]);
            prop_assert_eq!(&*form_decoded(form.as_bytes()), &bytes[..]);
        }
    }
}
