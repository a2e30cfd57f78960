//! Values of the types that predicates and variables share.

use std::fmt;

use crate::number::NumberLiteral;
use crate::template::Template;

/// Value of a simple type: a predicate compares with it, and a variable has it.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Number.
    Number(NumberLiteral),
    /// Text.
    Text(Template),
}

impl ScalarValue {
    /// Value of a word that has one: `null`, `true` or `false`.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        match word {
            "null" => Some(Self::Null),
            "true" => Some(Self::Bool(true)),
            "false" => Some(Self::Bool(false)),
            _ => None,
        }
    }
}

impl fmt::Display for ScalarValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(template) => template.quoted().fmt(f),
        }
    }
}
