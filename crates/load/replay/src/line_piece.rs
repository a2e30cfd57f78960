//! Pieces of patterns, and mistakes in patterns.

use std::fmt;

use super::line_field::LineField;

/// Piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinePiece {
    Literal(String),
    Field(LineField),
}

/// Mistake in a pattern, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub(crate) String);

impl std::error::Error for PatternError {}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
