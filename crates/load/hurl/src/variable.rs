//! Variables that an option sets.

use std::fmt;

use crate::error::Parsed;
use crate::expression;
use crate::number::NumberLiteral;
use crate::reader::Reader;
use crate::scalar::ScalarValue;
use crate::template::Template;

/// `name=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableDefinition {
    /// Name: letters, digits, `-` and `_`.
    pub name: String,
    /// Value, with its type. Text is in double quotes if it could be taken for another type.
    pub value: ScalarValue,
}

impl VariableDefinition {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let name = reader.take_word();
        if name.is_empty() {
            return Err(reader.expected_at(start, "a variable"));
        }
        if expression::is_reserved(name) {
            let error = reader.expected_at(start, "a variable");
            return Err(error.with_hint(format!("choose another name, since {name} is a function")));
        }
        reader.skip_spaces();
        reader.need("=")?;
        reader.skip_spaces();
        Ok(Self { name: name.to_owned(), value: read_value(reader)? })
    }
}

/// Reads a value; it is text, without quotes or with them, unless its word is of another type.
fn read_value(reader: &mut Reader<'_>) -> Parsed<ScalarValue> {
    if reader.starts_with("\"") {
        return Ok(ScalarValue::Text(Template::read_quoted(reader)?));
    }
    let start = reader.cursor();
    if let Some(value) = read_typed(reader) {
        return Ok(value);
    }
    reader.seek(start);
    Ok(ScalarValue::Text(Template::read_value(reader)?))
}

/// Reads a value that is not text, if its word ends with it: `12x` is text.
fn read_typed(reader: &mut Reader<'_>) -> Option<ScalarValue> {
    let value = match reader.peek()? {
        c if NumberLiteral::is_start(c) => ScalarValue::Number(NumberLiteral::read(reader).ok()?),
        _ => ScalarValue::of_word(reader.take_word())?,
    };
    reader.is_word_end().then_some(value)
}

impl fmt::Display for VariableDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}
