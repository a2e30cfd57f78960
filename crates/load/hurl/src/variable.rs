//! Variables that an option sets.

use std::fmt;

use crate::error::Parsed;
use crate::expression;
use crate::number::NumberLiteral;
use crate::reader::Reader;
use crate::template::Template;

/// `name=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableDefinition {
    /// Name: letters, digits, `-` and `_`.
    pub name: String,
    /// Value.
    pub value: VariableValue,
}

/// Value of a variable, typed as in the `variable` option.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number.
    Number(NumberLiteral),
    /// Text, in double quotes if it could be taken for another type.
    Text(Template),
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
        Ok(Self { name: name.to_owned(), value: VariableValue::read(reader)? })
    }
}

impl VariableValue {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        if reader.starts_with("\"") {
            return Ok(Self::Text(Template::read_quoted(reader)?));
        }
        let start = reader.cursor();
        if let Some(value) = Self::read_typed(reader) {
            return Ok(value);
        }
        reader.seek(start);
        Ok(Self::Text(Template::read_value(reader)?))
    }

    /// Reads a value that is not text, if its word ends with it: `12x` is text.
    fn read_typed(reader: &mut Reader<'_>) -> Option<Self> {
        let value = match reader.peek()? {
            c if NumberLiteral::is_start(c) => Self::Number(NumberLiteral::read(reader).ok()?),
            _ => match reader.take_word() {
                "null" => Self::Null,
                "true" => Self::Bool(true),
                "false" => Self::Bool(false),
                _ => return None,
            },
        };
        reader.is_word_end().then_some(value)
    }
}

impl fmt::Display for VariableDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl fmt::Display for VariableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(template) => template.quoted().fmt(f),
        }
    }
}
