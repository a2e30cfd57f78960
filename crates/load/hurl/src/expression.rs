//! Expressions: `{{variable}}`, `{{function}}`, with filters.

use std::fmt;

use crate::error::Parsed;
use crate::filter::ValueFilter;
use crate::number;
use crate::position::TextPosition;
use crate::reader::Reader;

/// Most expressions around one: arguments of filters are templates. Bounds the depth of recursion.
const MAX_NESTING: usize = 16;

/// `{{...}}`: a variable or the result of a function, with filters applied to it in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Source of the value.
    pub source: ExpressionSource,
    /// Filters in order.
    pub filters: Vec<ValueFilter>,
    /// Place of the variable or function.
    pub position: TextPosition,
}

/// Source of an expression's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionSource {
    /// Variable of this name.
    Variable(String),
    /// Function, evaluated each time.
    Function(TemplateFunction),
}

/// Function in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFunction {
    /// Function without arguments.
    Plain(PlainFunction),
    /// `randomInt MIN MAX`: an integer in MIN..=MAX.
    RandomInt {
        /// Minimum.
        min: i64,
        /// Maximum, at least the minimum.
        max: i64,
    },
    /// `randomString LENGTH`: letters and digits.
    RandomString {
        /// Number of characters.
        length: u64,
    },
}

crate::words::words! {
    /// Function without arguments.
    pub enum PlainFunction {
        /// Current date and time, UTC, in RFC 3339.
        NewDate = "newDate",
        /// Random UUID, version 4.
        NewUuid = "newUuid",
        /// `true` or `false`.
        RandomBool = "randomBool",
        /// Address at a domain reserved for examples.
        RandomEmail = "randomEmail",
        /// First name.
        RandomFirstName = "randomFirstName",
        /// First and last name.
        RandomFullName = "randomFullName",
        /// Last name.
        RandomLastName = "randomLastName",
        /// Word.
        RandomWord = "randomWord",
    }
}

const RANDOM_INT: &str = "randomInt";
const RANDOM_STRING: &str = "randomString";

/// Whether a variable of this name is not allowed, since a function has it.
pub(crate) fn is_reserved(name: &str) -> bool {
    PlainFunction::from_word(name).is_some() || matches!(name, RANDOM_INT | RANDOM_STRING)
}

impl TemplateFunction {
    /// Names of all functions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PlainFunction::ALL.iter().map(|function| function.as_str()).chain([RANDOM_INT, RANDOM_STRING])
    }
}

impl Expression {
    /// Expression that is a variable.
    pub fn variable(name: impl Into<String>) -> Self {
        let source = ExpressionSource::Variable(name.into());
        Self { source, filters: Vec::new(), position: TextPosition::default() }
    }

    /// Reads `{{...}}`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        if reader.nesting >= MAX_NESTING {
            return Err(reader.expected(format!("at most {MAX_NESTING} expressions within one another")));
        }
        reader.need("{{")?;
        reader.nesting += 1;
        let expression = Self::read_content(reader);
        reader.nesting -= 1;
        expression
    }

    fn read_content(reader: &mut Reader<'_>) -> Parsed<Self> {
        reader.skip_spaces();
        let position = reader.position();
        let source = ExpressionSource::read(reader)?;
        let filters = ValueFilter::read_all(reader)?;
        reader.skip_spaces();
        if reader.eat("}}") {
            return Ok(Self { source, filters, position });
        }
        let start = reader.cursor();
        let error = reader.expected("'}}' or a filter");
        let word = reader.take_word();
        reader.seek(start);
        Err(error.with_nearest(word, crate::filter::spellings()))
    }
}

impl ExpressionSource {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let name = reader.take_word();
        if let Some(function) = PlainFunction::from_word(name) {
            return Ok(Self::Function(TemplateFunction::Plain(function)));
        }
        match name {
            "" => Err(reader.expected_at(start, "a variable or a function")),
            RANDOM_INT => {
                reader.need_spaces()?;
                let min = number::read_integer(reader)?;
                reader.need_spaces()?;
                let start = reader.cursor();
                let max = number::read_integer(reader)?;
                if max < min {
                    return Err(reader.expected_at(start, format!("a maximum of at least {min}")));
                }
                Ok(Self::Function(TemplateFunction::RandomInt { min, max }))
            }
            RANDOM_STRING => {
                reader.need_spaces()?;
                Ok(Self::Function(TemplateFunction::RandomString { length: number::read_natural(reader)? }))
            }
            name => Ok(Self::Variable(name.to_owned())),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{}", self.source)?;
        self.filters.iter().try_for_each(|filter| write!(f, " {filter}"))?;
        f.write_str("}}")
    }
}

impl fmt::Display for ExpressionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::Function(function) => function.fmt(f),
        }
    }
}

impl fmt::Display for TemplateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(function) => function.fmt(f),
            Self::RandomInt { min, max } => write!(f, "{RANDOM_INT} {min} {max}"),
            Self::RandomString { length } => write!(f, "{RANDOM_STRING} {length}"),
        }
    }
}
