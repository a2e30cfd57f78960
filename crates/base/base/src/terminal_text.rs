//! Text of others on a terminal: without characters that steer it, or that show a text in another order than it has.
//!
//! ESC and U+009B begin commands of a terminal. Overrides of the direction let `file\u{202e}gpj.exe` look like a
//! picture, and a failed check like a passed one (Trojan Source, CVE-2021-42574).

use std::borrow::Cow;

/// Whether a character steers a terminal: a control character, C1 included, or one of direction.
pub fn is_steering(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_direction || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text on one line: characters that steer a terminal become spaces.
pub fn single_line(text: &str) -> String {
    text.replace(is_steering, " ")
}

/// The text with its lines and tabs; other characters that steer a terminal become spaces.
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_other = |c: char| is_steering(c) && !matches!(c, '\n' | '\t');
    if !text.contains(is_other) {
        return Cow::Borrowed(text);
    }
    // A carriage return alone would let a line write over itself.
    Cow::Owned(text.replace("\r\n", "\n").replace(is_other, " "))
}

/// Beginning of a text, at most this number of bytes, that ends with a whole character.
pub fn beginning(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// JSON with the characters escaped that steer a terminal and that writers of JSON leave as they are.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_raw = |c: char| is_steering(c) && c >= '\u{7f}';
    if !text.contains(is_raw) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if is_raw(c) => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_and_directions_do_not_reach_the_terminal() {
        assert_eq!(single_line("a\u{1b}[2Jb\u{9b}2Jc\u{202e}d\u{2066}e\r\nf"), "a [2Jb 2Jc d e  f");
        assert_eq!(lines("a\r\n\tb\rc\u{9b}d é 日本 עב"), "a\n\tb c d é 日本 עב");
        assert_eq!((beginning("aé", 2), beginning("aé", 3), beginning("", 9)), ("a", "aé", ""));
        assert_eq!(json("{\"a\":\"\u{9b}\u{202e}é\u{7f}\"}"), "{\"a\":\"\\u009b\\u202eé\\u007f\"}");
    }

    proptest! {
        #[test]
        fn no_steering_character_is_left(text in any::<String>()) {
            prop_assert!(!single_line(&text).contains(is_steering));
            prop_assert!(!lines(&text).contains(|c| is_steering(c) && !matches!(c, '\n' | '\t')));
            prop_assert_eq!(single_line(&text).chars().count(), text.chars().count());
        }
    }
}
