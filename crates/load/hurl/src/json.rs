//! JSON with expressions.

use std::fmt;

use crate::error::{ParseError, Parsed};
use crate::json_piece::JsonPiece;
use crate::json_scanner::JsonScanner;
use crate::position::TextPosition;
use crate::reader::Reader;

/// JSON value with expressions, as pieces in the order in which they are sent. Its syntax has been checked, and spaces
/// and escape sequences are as in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonText {
    /// Texts and expressions in order.
    pub pieces: Vec<JsonPiece>,
    /// Start of the value.
    pub position: TextPosition,
}

impl JsonText {
    /// Parses a JSON value with expressions, up to the end of `text`.
    ///
    /// # Errors
    /// The first syntax error.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        let value = Self::read(&mut reader)?;
        reader.take_while(|c| c.is_ascii_whitespace());
        if reader.is_end() { Ok(value) } else { Err(reader.expected("the end of the JSON value")) }
    }

    /// Whether a JSON value is next, by its first characters.
    pub(crate) fn is_start(text: &str) -> bool {
        let is_literal = ["true", "false", "null"]
            .iter()
            .filter_map(|literal| text.strip_prefix(literal))
            .any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-')));
        is_literal || text.starts_with(|c: char| matches!(c, '{' | '[' | '"' | '-') || c.is_ascii_digit())
    }

    /// Reads a value.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let position = reader.position();
        Ok(Self { pieces: JsonScanner::new(reader, false).scan()?, position })
    }

    /// Reads a value, and drops the spaces in it.
    pub(crate) fn read_compact(reader: &mut Reader<'_>) -> Parsed<Self> {
        let position = reader.position();
        Ok(Self { pieces: JsonScanner::new(reader, true).scan()?, position })
    }
}

impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces.iter().try_for_each(|piece| match piece {
            JsonPiece::Verbatim(text) => f.write_str(text),
            JsonPiece::Value(expression) | JsonPiece::InString(expression) => expression.fmt(f),
        })
    }
}
