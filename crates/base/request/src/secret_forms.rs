//! Forms in which a secret and its name are sent: percent-encoded, escaped as JSON.

use std::borrow::Cow;

use weir_base::percent;

/// Text as a URL or a form has it, with this form of a space.
pub(super) fn percent_encoded(text: &str, space: &str) -> String {
    percent::form_encoded(text.as_bytes(), percent::RESERVED).replace('+', space)
}

/// Text of a URL or a form as it is meant.
pub(super) fn percent_decoded(text: &str) -> String {
    String::from_utf8_lossy(&percent::form_decoded(text.as_bytes())).into_owned()
}

/// Text within quotes of JSON.
pub(super) fn json_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Name within quotes of JSON as it is meant: `\u0070in` is `pin`.
pub(super) fn json_unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\\u");
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        match code {
            Some(code) => {
                name.push(code);
                name.push_str(&part[4..]);
            }
            None => name.extend(["\\u", part]),
        }
    }
    Cow::Owned(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_their_escapes() {
        assert_eq!(percent_decoded("pass%77ord%zz%%+7"), "password%zz%% 7");
        for (text, expected) in [
            ("pass\\u0077ord", "password"),
            ("\\u00", "\\u00"),
            ("a\\u00é\\ud800", "a\\u00é\\ud800"),
            ("\\u+077", "\\u+077"),
        ] {
            assert_eq!(json_unescaped(text), expected);
        }
    }
}
