//! Words of a shell as plain text: expressions, and bytes of text that is not ASCII, are single characters.
//!
//! A flag's value is read by curl byte by byte. With one character for each expression it can be split and searched as
//! curl does it, and neither a variable nor its name is ever taken for a part of the syntax.

use weir_hurl::{Template, TemplatePart};

use crate::text;

/// First character that stands for an expression.
const FIRST_EXPRESSION: u32 = 0x0010_0000;

/// Most expressions of a text; further ones are the last one.
const MAX_EXPRESSIONS: u32 = 60_000;

/// First character that stands for a byte.
const FIRST_BYTE: u32 = 0x0010_ff00;

/// Characters for expressions and bytes.
#[derive(Debug, Default)]
pub(super) struct MarkTable {
    expressions: Vec<TemplatePart>,
}

impl MarkTable {
    /// Adds a template to a word.
    pub(super) fn push(&mut self, word: &mut String, template: &Template) {
        for part in &template.parts {
            match part {
                TemplatePart::Text(text) => text.chars().for_each(|c| push_char(word, c)),
                expression @ TemplatePart::Expression(_) => {
                    let count = u32::try_from(self.expressions.len()).unwrap_or(MAX_EXPRESSIONS);
                    if count < MAX_EXPRESSIONS {
                        self.expressions.push(expression.clone());
                    }
                    word.extend(char::from_u32(FIRST_EXPRESSION + count.min(MAX_EXPRESSIONS - 1)));
                }
            }
        }
    }

    /// Text of a word, or its bytes if they are neither UTF-8 nor have an expression.
    pub(super) fn content(&self, word: &str) -> MarkedContent {
        let mut parts = Vec::new();
        let mut bytes = Vec::new();
        let mut is_text = true;
        for c in word.chars() {
            if let Some(byte) = byte_of(c) {
                bytes.push(byte);
            } else if let Some(expression) = self.expression(c) {
                is_text &= end_text(&mut parts, &mut bytes);
                parts.push(expression.clone());
            } else {
                bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        if parts.is_empty() && std::str::from_utf8(&bytes).is_err() {
            return MarkedContent::Bytes(bytes);
        }
        is_text &= end_text(&mut parts, &mut bytes);
        MarkedContent::Text { text: text::from_parts(parts), is_whole: is_text }
    }

    /// Text of a word; bytes that are not UTF-8 are replaced.
    pub(super) fn template(&self, word: &str) -> Template {
        match self.content(word) {
            MarkedContent::Text { text, .. } => text,
            MarkedContent::Bytes(bytes) => Template::text(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Text of a word as it is shown.
    pub(super) fn shown(&self, word: &str) -> String {
        text::source(&self.template(word))
    }

    fn expression(&self, c: char) -> Option<&TemplatePart> {
        let number = u32::from(c).checked_sub(FIRST_EXPRESSION)?;
        self.expressions.get(usize::try_from(number).ok()?)
    }
}

/// Content of a word.
#[derive(Debug)]
pub(super) enum MarkedContent {
    /// Text, and whether no byte of it had to be replaced.
    Text { text: Template, is_whole: bool },
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
}

/// Moves bytes to the parts of a text; `false` if they are not UTF-8.
fn end_text(parts: &mut Vec<TemplatePart>, bytes: &mut Vec<u8>) -> bool {
    let (text, is_text) = match String::from_utf8(std::mem::take(bytes)) {
        Ok(text) => (text, true),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), false),
    };
    parts.push(TemplatePart::Text(text));
    is_text
}

/// Adds a character of a text to a word: as its bytes where it could be taken for a mark.
pub(super) fn push_char(word: &mut String, c: char) {
    if u32::from(c) >= FIRST_EXPRESSION {
        c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_byte(word, byte));
    } else {
        word.push(c);
    }
}

/// Adds a byte to a word.
pub(super) fn push_byte(word: &mut String, byte: u8) {
    if byte.is_ascii() {
        word.push(char::from(byte));
    } else {
        word.extend(char::from_u32(FIRST_BYTE + u32::from(byte)));
    }
}

/// Byte that a character stands for.
pub(super) fn byte_of(c: char) -> Option<u8> {
    u32::from(c).checked_sub(FIRST_BYTE).and_then(|byte| u8::try_from(byte).ok())
}

/// Whether a character stands for an expression.
pub(super) fn is_expression(c: char) -> bool {
    (FIRST_EXPRESSION..FIRST_BYTE).contains(&u32::from(c))
}

/// Text of a word with bytes as a file has them.
pub(super) fn push_bytes(word: &mut String, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().for_each(|c| push_char(word, c)),
        Err(_) => bytes.iter().for_each(|byte| push_byte(word, *byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_expressions_come_back() {
        let mut marks = MarkTable::default();
        let mut word = "caf".to_owned();
        [0xc3, 0xa9].into_iter().for_each(|byte| push_byte(&mut word, byte));
        marks.push(&mut word, &Template::parse("{{x}}!\u{10ff41}").unwrap());
        assert_eq!(marks.shown(&word), "café{{x}}!\u{10ff41}");
        let mut bytes = String::new();
        [0x61, 0xff].into_iter().for_each(|byte| push_byte(&mut bytes, byte));
        assert!(matches!(marks.content(&bytes), MarkedContent::Bytes(bytes) if bytes == [0x61, 0xff]));
    }
}
