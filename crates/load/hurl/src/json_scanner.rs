//! Scanner of JSON with expressions: checks the syntax and cuts the text at expressions. It has a stack of its own, so
//! that deep nesting is an error instead of a stack overflow.

use crate::error::Parsed;
use crate::expression::Expression;
use crate::json_piece::JsonPiece;
use crate::reader::Reader;

/// Most arrays and objects around a value, as in hurl.
const MAX_DEPTH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonContainer {
    Array,
    Object,
}

/// Syntax that must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonState {
    Value,
    /// Value or the end of an array, after `[`.
    ValueOrEnd,
    Key,
    /// Key or the end of an object, after `{`.
    KeyOrEnd,
    Colon,
    /// `,` or the end of a container, after a value.
    CommaOrEnd,
    End,
}

#[derive(Debug)]
pub(crate) struct JsonScanner<'r, 'a> {
    reader: &'r mut Reader<'a>,
    is_compact: bool,
    pieces: Vec<JsonPiece>,
    /// Text since the last expression.
    text: String,
    containers: Vec<JsonContainer>,
}

impl<'r, 'a> JsonScanner<'r, 'a> {
    pub(crate) fn new(reader: &'r mut Reader<'a>, is_compact: bool) -> Self {
        Self { reader, is_compact, pieces: Vec::new(), text: String::new(), containers: Vec::new() }
    }

    /// Pieces of a value, up to its end.
    pub(crate) fn scan(mut self) -> Parsed<Vec<JsonPiece>> {
        let mut state = JsonState::Value;
        while state != JsonState::End {
            if !self.containers.is_empty() {
                self.spaces();
            }
            state = match state {
                JsonState::Value => self.value()?,
                JsonState::ValueOrEnd if self.reader.starts_with("]") => self.close(),
                JsonState::ValueOrEnd => self.value()?,
                JsonState::KeyOrEnd if self.reader.starts_with("}") => self.close(),
                JsonState::Key | JsonState::KeyOrEnd => self.key()?,
                JsonState::Colon => {
                    self.reader.need(":")?;
                    self.text.push(':');
                    JsonState::Value
                }
                JsonState::CommaOrEnd => self.comma_or_end()?,
                JsonState::End => JsonState::End,
            };
        }
        self.flush();
        Ok(self.pieces)
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            self.pieces.push(JsonPiece::Verbatim(std::mem::take(&mut self.text)));
        }
    }

    fn spaces(&mut self) {
        let spaces = self.reader.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
        if !self.is_compact {
            self.text.push_str(spaces);
        }
    }

    /// Consumes a character.
    fn push(&mut self) {
        self.text.extend(self.reader.bump());
    }

    fn after_value(&self) -> JsonState {
        if self.containers.is_empty() { JsonState::End } else { JsonState::CommaOrEnd }
    }

    fn value(&mut self) -> Parsed<JsonState> {
        match self.reader.peek() {
            Some('{') if self.reader.starts_with("{{") => {
                self.flush();
                self.pieces.push(JsonPiece::Value(Expression::read(self.reader)?));
            }
            Some('{') => return self.open(JsonContainer::Object),
            Some('[') => return self.open(JsonContainer::Array),
            Some('"') => self.string()?,
            Some(c) if c == '-' || c.is_ascii_digit() => self.number()?,
            _ => self.literal()?,
        }
        Ok(self.after_value())
    }

    fn open(&mut self, container: JsonContainer) -> Parsed<JsonState> {
        if self.containers.len() >= MAX_DEPTH {
            return Err(self.reader.expected(format!("at most {MAX_DEPTH} arrays and objects within one another")));
        }
        self.containers.push(container);
        self.push();
        Ok(match container {
            JsonContainer::Array => JsonState::ValueOrEnd,
            JsonContainer::Object => JsonState::KeyOrEnd,
        })
    }

    /// Consumes the bracket that closes the current container.
    fn close(&mut self) -> JsonState {
        self.push();
        self.containers.pop();
        self.after_value()
    }

    fn comma_or_end(&mut self) -> Parsed<JsonState> {
        let (end, next) = match self.containers.last() {
            Some(JsonContainer::Array) | None => ("]", JsonState::Value),
            Some(JsonContainer::Object) => ("}", JsonState::Key),
        };
        if self.reader.starts_with(end) {
            return Ok(self.close());
        }
        if !self.reader.starts_with(",") {
            return Err(self.reader.expected(format!("',' or '{end}'")));
        }
        let comma = self.reader.cursor();
        self.push();
        self.spaces();
        if self.reader.starts_with(end) {
            return Err(self.reader.expected_at(comma, format!("'{end}'")).with_hint("remove the last comma"));
        }
        Ok(next)
    }

    fn key(&mut self) -> Parsed<JsonState> {
        if !self.reader.starts_with("\"") {
            return Err(self.reader.expected("a key in double quotes"));
        }
        self.string()?;
        Ok(JsonState::Colon)
    }

    fn literal(&mut self) -> Parsed<()> {
        let start = self.reader.cursor();
        let word = self.reader.take_word();
        if !matches!(word, "true" | "false" | "null") {
            return Err(self.reader.expected_at(start, "a JSON value"));
        }
        self.text.push_str(word);
        Ok(())
    }

    fn string(&mut self) -> Parsed<()> {
        self.push();
        loop {
            match self.reader.peek() {
                Some('"') => {
                    self.push();
                    return Ok(());
                }
                Some('{') if self.reader.starts_with("{{") => {
                    self.flush();
                    self.pieces.push(JsonPiece::InString(Expression::read(self.reader)?));
                }
                Some('\\') => self.escape()?,
                Some(c) if !matches!(c, '\0'..='\u{1f}') => self.push(),
                _ => return Err(self.reader.expected("'\"' at the end of the string")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<()> {
        self.push();
        match self.reader.peek() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
                self.push();
                Ok(())
            }
            Some('u') => self.code_point(),
            _ => {
                Err(self.reader.expected("an escape sequence of JSON: \\\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t or \\u"))
            }
        }
    }

    /// Consumes the rest of `\u1234` or of a pair of surrogates.
    fn code_point(&mut self) -> Parsed<()> {
        let start = self.reader.cursor();
        let first = self.code_unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.reader.starts_with("\\u") {
            self.push();
            units.push(self.code_unit()?);
        }
        if char::decode_utf16(units).any(|c| c.is_err()) {
            return Err(self.reader.expected_at(start, "a code point; surrogates are in pairs"));
        }
        Ok(())
    }

    /// Consumes `u1234`.
    fn code_unit(&mut self) -> Parsed<u16> {
        self.push();
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.reader.peek().and_then(|c| c.to_digit(16)).and_then(|digit| u16::try_from(digit).ok());
            unit = unit * 16 + digit.ok_or_else(|| self.reader.expected("4 hexadecimal digits"))?;
            self.push();
        }
        Ok(unit)
    }

    fn number(&mut self) -> Parsed<()> {
        let start = self.reader.cursor();
        self.reader.eat("-");
        if !self.reader.eat("0") {
            self.digits()?;
        }
        if self.reader.eat(".") {
            self.digits()?;
        }
        if self.reader.eat("e") || self.reader.eat("E") {
            let _ = self.reader.eat("+") || self.reader.eat("-");
            self.digits()?;
        }
        self.text.push_str(self.reader.text_since(start));
        Ok(())
    }

    fn digits(&mut self) -> Parsed<()> {
        if self.reader.take_while(|c| c.is_ascii_digit()).is_empty() {
            return Err(self.reader.expected("a digit"));
        }
        Ok(())
    }
}
