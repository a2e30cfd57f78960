//! Text of a file with a position, and its lines: spaces, comments, ends.

use crate::comment::Comment;
use crate::error::{ParseError, Parsed};
use crate::position::TextPosition;

/// Most characters of a word in an error.
const MAX_FOUND_CHARS: usize = 32;

/// Place in the text of a [`Reader`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    offset: usize,
    position: TextPosition,
}

/// Text that is consumed from its start. The position advances with it, since computing it afterwards takes quadratic
/// time for long lines.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    cursor: Cursor,
    /// Comments since [`Self::take_comments`].
    comments: Vec<Comment>,
    /// Number of expressions around the current one.
    pub(crate) nesting: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let cursor = Cursor { offset: 0, position: TextPosition { line: 1, column: 1 } };
        Self { text, cursor, comments: Vec::new(), nesting: 0 }
    }

    pub(crate) fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Returns to a cursor of this reader.
    pub(crate) fn seek(&mut self, cursor: Cursor) {
        self.cursor = cursor;
    }

    pub(crate) fn position(&self) -> TextPosition {
        self.cursor.position
    }

    /// Text after the cursor.
    pub(crate) fn rest(&self) -> &'a str {
        self.text_from(self.cursor)
    }

    fn text_from(&self, cursor: Cursor) -> &'a str {
        self.text.get(cursor.offset..).unwrap_or_default()
    }

    /// Text from `start` to the cursor.
    pub(crate) fn text_since(&self, start: Cursor) -> &'a str {
        self.text.get(start.offset..self.cursor.offset).unwrap_or_default()
    }

    /// Rest of the line, without its end.
    pub(crate) fn line(&self) -> &'a str {
        let line = self.rest().split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    pub(crate) fn is_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Consumes a character.
    pub(crate) fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        let Cursor { offset, position } = &mut self.cursor;
        *offset += c.len_utf8();
        if c == '\n' {
            *position = TextPosition { line: position.line.saturating_add(1), column: 1 };
        } else {
            position.column = position.column.saturating_add(1);
        }
        Some(c)
    }

    /// Consumes whole characters of together `len` bytes.
    fn advance(&mut self, len: usize) {
        let until = self.cursor.offset + len;
        while self.cursor.offset < until && self.bump().is_some() {}
    }

    /// Consumes `text`, if it is next.
    pub(crate) fn eat(&mut self, text: &str) -> bool {
        let is_next = self.starts_with(text);
        if is_next {
            self.advance(text.len());
        }
        is_next
    }

    /// Consumes `text`, or is an error.
    pub(crate) fn need(&mut self, text: &str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(format!("'{text}'"))) }
    }

    pub(crate) fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'a str {
        let start = self.cursor;
        while self.peek().is_some_and(&is_taken) {
            self.bump();
        }
        self.text_since(start)
    }

    /// Letters, digits, `-` and `_`: a keyword or the name of a variable.
    pub(crate) fn take_word(&mut self) -> &'a str {
        self.take_while(is_word)
    }

    /// Consumes text up to and including `end`; without `end` nothing.
    pub(crate) fn skip_past(&mut self, end: &str) -> bool {
        let Some(at) = self.rest().find(end) else { return false };
        self.advance(at + end.len());
        true
    }

    /// Consumes spaces and tabs, and returns whether there were any.
    pub(crate) fn skip_spaces(&mut self) -> bool {
        !self.take_while(is_space).is_empty()
    }

    pub(crate) fn need_spaces(&mut self) -> Parsed<()> {
        if self.skip_spaces() { Ok(()) } else { Err(self.expected("a space")) }
    }

    /// Whether spaces, an end of line or a comment follow: a word that ends here is complete.
    pub(crate) fn is_word_end(&self) -> bool {
        self.peek().is_none_or(|c| is_space(c) || matches!(c, '\n' | '\r' | '#'))
    }

    /// Consumes the line, whatever it holds.
    pub(crate) fn skip_line(&mut self) {
        if !self.skip_past("\n") {
            while self.bump().is_some() {}
        }
    }

    /// Consumes spaces, a comment and the end of the line or file.
    pub(crate) fn end_of_line(&mut self) -> Parsed<()> {
        self.skip_spaces();
        self.comment();
        if self.is_end() || self.eat("\n") || self.eat("\r\n") {
            return Ok(());
        }
        Err(self.expected("the end of the line"))
    }

    fn comment(&mut self) {
        let position = self.position();
        if self.eat("#") {
            let text = self.take_while(|c| c != '\n').trim_end_matches('\r').to_owned();
            self.comments.push(Comment { text, position });
        }
    }

    /// Consumes blank lines, lines with a comment only, and the spaces before other text.
    pub(crate) fn skip_blank_lines(&mut self) {
        loop {
            self.skip_spaces();
            self.comment();
            if !self.eat("\n") && !self.eat("\r\n") {
                return;
            }
        }
    }

    /// Comments since the last call.
    pub(crate) fn take_comments(&mut self) -> Vec<Comment> {
        std::mem::take(&mut self.comments)
    }

    /// Error at the cursor.
    pub(crate) fn expected(&self, expected: impl Into<String>) -> ParseError {
        self.expected_at(self.cursor, expected)
    }

    /// Error at an earlier cursor.
    pub(crate) fn expected_at(&self, cursor: Cursor, expected: impl Into<String>) -> ParseError {
        let found = found(self.text_from(cursor));
        ParseError { position: cursor.position, expected: expected.into(), found, hint: String::new() }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Description of the start of a text: a word, a title of a section, or else a character.
fn found(text: &str) -> String {
    let Some(first) = text.chars().next() else { return "the end of the file".to_owned() };
    match first {
        '\n' => "the end of the line".to_owned(),
        '\r' if text.starts_with("\r\n") => "the end of the line".to_owned(),
        ' ' => "a space".to_owned(),
        '\t' => "a tab".to_owned(),
        c if c.is_control() => format!("the control character U+{:04X}", u32::from(c)),
        c if is_word(c) => {
            let word: String = text.chars().take_while(|c| is_word(*c)).take(MAX_FOUND_CHARS + 1).collect();
            match word.char_indices().nth(MAX_FOUND_CHARS) {
                Some((at, _)) => format!("'{}...'", &word[..at]),
                None => format!("'{word}'"),
            }
        }
        '[' => match text.split_once(']').map(|(title, _)| &title[1..]) {
            Some(title) if title.len() <= MAX_FOUND_CHARS && title.chars().all(is_word) => format!("'[{title}]'"),
            _ => "'['".to_owned(),
        },
        c => format!("'{c}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_lines_and_characters() {
        let mut reader = Reader::new("\u{feff}\u{e4}b\r\nc");
        assert!(reader.eat("\u{e4}b") && reader.position().to_string() == "1:3");
        assert!(reader.end_of_line().is_ok() && reader.position().to_string() == "2:1");
        assert_eq!(reader.expected("x").to_string(), "2:1: expected x, found 'c'");
    }

    #[test]
    fn comments_are_kept_with_their_position() {
        let mut reader = Reader::new("  # one\r\n\n x # two");
        reader.skip_blank_lines();
        assert!(reader.eat("x") && reader.end_of_line().is_ok() && reader.is_end());
        let comments = reader.take_comments();
        let places: Vec<String> = comments.iter().map(|it| format!("{}{}", it.position, it.text)).collect();
        assert_eq!(places, ["1:3 one", "3:4 two"]);
        assert!(reader.take_comments().is_empty());
    }

    #[test]
    fn a_failed_match_consumes_nothing() {
        let mut reader = Reader::new("abc");
        assert!(!reader.eat("abd") && !reader.skip_past("d") && !reader.skip_spaces());
        assert_eq!(reader.rest(), "abc");
    }

    #[test]
    fn found_text_is_described() {
        let cases = [
            ("", "the end of the file"),
            ("\nx", "the end of the line"),
            ("\r\nx", "the end of the line"),
            ("\rx", "the control character U+000D"),
            ("jsonpth \"", "'jsonpth'"),
            ("?? x", "'?'"),
            ("\tx", "a tab"),
            ("[Query]", "'[Query]'"),
            ("[1, 2]", "'['"),
        ];
        for (text, expected) in cases {
            assert_eq!(found(text), expected);
        }
        assert_eq!(found(&"x".repeat(100)), format!("'{}...'", "x".repeat(32)));
    }
}
