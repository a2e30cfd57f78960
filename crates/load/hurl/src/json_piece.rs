//! Pieces of JSON with expressions.

use crate::expression::Expression;

/// Piece of a JSON value with expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonPiece {
    /// Text that is sent as it is.
    Verbatim(String),
    /// Expression that is a whole value: a number, a boolean or null.
    Value(Expression),
    /// Expression within a string or key, whose value is escaped as JSON strings are.
    InString(Expression),
}
