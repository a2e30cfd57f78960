//! Query parameters as bytes: `name=value&...`, with %xx and + decoded.

use std::borrow::Cow;

use weir_base::percent::{decoded, form_decoded};

/// Value of the first parameter of that name (case-insensitive); empty for a name without `=`.
pub(super) fn value<'q>(query: &'q str, name: &[u8]) -> Option<Cow<'q, [u8]>> {
    query.split('&').find_map(|pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_it = !pair.is_empty() && form_decoded(found.as_bytes()).eq_ignore_ascii_case(name);
        is_it.then(|| form_decoded(value.as_bytes()))
    })
}

/// Decoded path; a plus is not a space there.
pub(super) fn path(path: &str) -> Cow<'_, [u8]> {
    decoded(path.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_of_a_name_counts_case_insensitively() {
        let found = |query, name: &str| value(query, name.as_bytes()).map(Cow::into_owned);
        assert_eq!(found("a=1&NUM=5&num=6", "num"), Some(b"5".to_vec()));
        assert_eq!(found("num=&num=6", "num"), Some(Vec::new()));
        assert_eq!(found("num&num=6", "num"), Some(Vec::new()));
        assert_eq!(found("xnum=1&numx=2", "num"), None);
        assert_eq!(found("", "num"), None);
        assert_eq!(found("&&", ""), None);
        assert_eq!(found("=1", ""), Some(b"1".to_vec()));
        assert_eq!(found("n%75m=a=b", "num"), Some(b"a=b".to_vec()));
    }

    #[test]
    fn codes_are_decoded_and_other_text_is_kept() {
        for (text, bytes) in [
            ("a+b", &b"a b"[..]),
            ("%41%4a%4A", b"AJJ"),
            ("%00%ff", b"\x00\xff"),
            ("%2B%25", b"+%"),
            ("100%", b"100%"),
            ("%4", b"%4"),
            ("%zz%+1", b"%zz% 1"),
            ("%%41", b"%A"),
        ] {
            assert_eq!(value(&format!("str={text}"), b"str").as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(&*path("/a+b%20c"), b"/a+b c");
    }

    /// Naive model: decodes step by step from the left.
    fn naive(text: &str) -> Vec<u8> {
        let mut text = text.to_owned();
        let mut bytes = Vec::new();
        while !text.is_empty() {
            let code = text.get(..3).and_then(|code| code.strip_prefix('%'));
            let code = code.filter(|code| code.chars().all(|c| c.is_ascii_hexdigit()));
            if let Some(code) = code {
                bytes.push(u8::from_str_radix(code, 16).unwrap());
                text.drain(..3);
            } else {
                let c = text.remove(0);
                bytes.extend(if c == '+' { " ".to_owned() } else { c.to_string() }.as_bytes());
            }
        }
        bytes
    }

    /// Random queries with many codes, separators and names.
    fn queries() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[&=+%]",
            "%[0-9a-fA-F]{2}",
            "[nN][uU][mM]=?",
            Just("n%75m=".to_owned()),
            "[0-9a-f]{0,3}",
            "\\PC{0,2}"
        ];
        proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_value_matches_the_naive_model(query in queries()) {
            let mut naively = None;
            for pair in query.split('&').filter(|pair| !pair.is_empty()) {
                let mut parts = pair.splitn(2, '=');
                let name = naive(parts.next().unwrap());
                if naively.is_none() && name.eq_ignore_ascii_case(b"num") {
                    naively = Some(naive(parts.next().unwrap_or_default()));
                }
            }
            prop_assert_eq!(value(&query, b"num").map(Cow::into_owned), naively);
        }

        #[test]
        fn text_is_decoded_as_in_forms(query in "[a-zA-Z0-9&=+.-]{0,40}") {
            let form = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name.eq_ignore_ascii_case("a"));
            let form = form.map(|(_, value)| value.into_owned().into_bytes());
            prop_assert_eq!(value(&query, b"a").map(Cow::into_owned), form);
        }
    }
}
