//! Values in predicates.

use std::fmt;

use crate::block::TextBlock;
use crate::bytes::BytesLiteral;
use crate::error::Parsed;
use crate::expression::Expression;
use crate::number::NumberLiteral;
use crate::pattern::RegexLiteral;
use crate::reader::Reader;
use crate::scalar::ScalarValue;
use crate::template::Template;

/// Value that a predicate compares with.
#[derive(Clone, Debug, PartialEq)]
pub enum PredicateValue {
    /// `null`, `true`, `false`, a number, or a string in double quotes or backticks.
    Scalar(ScalarValue),
    /// Lines between ```` ``` ````.
    Block(TextBlock),
    /// Bytes.
    Bytes(BytesLiteral),
    /// Content of a file.
    File(Template),
    /// Value of an expression, with its type.
    Expression(Expression),
    /// Regular expression.
    Regex(RegexLiteral),
}

impl PredicateValue {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        Ok(match reader.peek() {
            Some('"') => Self::Scalar(ScalarValue::Text(Template::read_quoted(reader)?)),
            Some('`') if TextBlock::is_start(reader) => Self::Block(TextBlock::read(reader)?),
            Some('`') => Self::Scalar(ScalarValue::Text(Template::read_one_line(reader)?)),
            Some('/') => Self::Regex(RegexLiteral::read(reader)?),
            Some('{') if reader.starts_with("{{") => Self::Expression(Expression::read(reader)?),
            Some(c) if NumberLiteral::is_start(c) => Self::Scalar(ScalarValue::Number(NumberLiteral::read(reader)?)),
            _ if BytesLiteral::is_start(reader) => Self::Bytes(BytesLiteral::read(reader)?),
            _ if Template::is_file(reader) => Self::File(Template::read_file(reader)?),
            _ => return Self::read_word(reader),
        })
    }

    fn read_word(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        match ScalarValue::of_word(reader.take_word()) {
            Some(value) => Ok(Self::Scalar(value)),
            None => Err(reader.expected_at(start, "a value, such as \"text\", 12, true, null or {{variable}}")),
        }
    }
}

impl fmt::Display for PredicateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(value) => value.fmt(f),
            Self::Block(block) => block.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::File(name) => name.as_file().fmt(f),
            Self::Expression(expression) => expression.fmt(f),
            Self::Regex(literal) => literal.fmt(f),
        }
    }
}
