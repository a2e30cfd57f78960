//! Values of a type, or an expression that is evaluated to one.

use std::fmt;

use crate::error::Parsed;
use crate::expression::Expression;
use crate::reader::Reader;

/// Value, or expression in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Templated<T> {
    /// Value in the file.
    Literal(T),
    /// Expression whose result is converted to the type.
    Expression(Expression),
}

impl<T> Templated<T> {
    /// Reads an expression, or else a literal by `read`.
    pub(crate) fn read(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Parsed<T>) -> Parsed<Self> {
        if reader.starts_with("{{") {
            return Ok(Self::Expression(Expression::read(reader)?));
        }
        Ok(Self::Literal(read(reader)?))
    }
}

impl<T: fmt::Display> fmt::Display for Templated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(value) => value.fmt(f),
            Self::Expression(expression) => expression.fmt(f),
        }
    }
}
