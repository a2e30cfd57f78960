//! `$'...'` of bash.

use super::marks::{push_byte, push_char};

/// Adds the text between the quotes to a word; returns the bytes up to and with the closing quote.
pub(super) fn push(text: &str, word: &mut String) -> usize {
    let mut rest = text;
    let mut is_ended = false;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' => break,
            '\\' => {
                let mut made = String::new();
                rest = escape(rest, &mut made, &mut is_ended);
                if !is_ended {
                    word.push_str(&made);
                }
            }
            c if !is_ended => push_char(word, c),
            _ => {}
        }
    }
    text.len() - rest.len()
}

/// Adds what an escape stands for; returns the text after it. A NUL ends the string.
fn escape<'a>(text: &'a str, word: &mut String, is_ended: &mut bool) -> &'a str {
    let Some(c) = text.chars().next() else { return text };
    let rest = &text[c.len_utf8()..];
    let digits = |text: &str, radix: u32, most: usize| {
        let count = text.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        (count, u32::from_str_radix(&text[..count], radix).unwrap_or(0))
    };
    let simple = match c {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '?' => c,
        'c' => {
            let Some(control) = rest.chars().next() else { return rest };
            push_byte(word, u8::try_from(control.to_ascii_uppercase()).unwrap_or(0) & 0x1f);
            return &rest[control.len_utf8()..];
        }
        '0'..='7' => {
            let (count, value) = digits(text, 8, 3);
            *is_ended |= value & 0xff == 0;
            push_byte(word, u8::try_from(value & 0xff).unwrap_or(0));
            return &text[count..];
        }
        'x' | 'u' | 'U' => {
            let most = if c == 'x' { 2 } else { if c == 'u' { 4 } else { 8 } };
            let (count, value) = digits(rest, 16, most);
            *is_ended |= count > 0 && value == 0;
            match (count, c) {
                (0, _) => word.extend(['\\', c]),
                (_, 'x') => push_byte(word, u8::try_from(value).unwrap_or(0)),
                _ => push_code_point(word, value),
            }
            return &rest[count..];
        }
        other => {
            word.push('\\');
            push_char(word, other);
            return rest;
        }
    };
    word.push(simple);
    rest
}

/// Adds a code point as bash encodes it: also half of a pair, which is not text.
fn push_code_point(word: &mut String, value: u32) {
    match char::from_u32(value) {
        Some(c) => push_char(word, c),
        None if value < 0x1_0000 => {
            let low = |shift: u32| u8::try_from((value >> shift) & 0x3f).unwrap_or(0) | 0x80;
            [0xe0 | u8::try_from(value >> 12).unwrap_or(0), low(6), low(0)]
                .into_iter()
                .for_each(|b| push_byte(word, b));
        }
        None => push_char(word, char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::super::marks::{MarkTable, MarkedContent};
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let mut word = String::new();
        push(text, &mut word);
        match MarkTable::default().content(&word) {
            MarkedContent::Bytes(bytes) => bytes,
            MarkedContent::Text { text, .. } => crate::text::source(&text).into_bytes(),
        }
    }

    #[test]
    fn escapes_are_those_of_bash() {
        assert_eq!(bytes("caf\\xc3\\xa9\\303\\251\\u00e9'"), "caféé\u{e9}".as_bytes());
        assert_eq!(bytes("\\a\\e\\v\\cA\\q\\x'"), b"\x07\x1b\x0b\x01\\q\\x");
        assert_eq!(bytes("\\ud83d\\ude00"), [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]);
        assert_eq!(bytes("it\\'s\\0lost\\n' not"), b"it's");
        assert_eq!((bytes("\\xff'"), bytes("\\1411'")), (vec![0xff], b"a1".to_vec()));
    }
}
