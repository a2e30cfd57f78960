//! Syntax errors.

use std::fmt;

use crate::position::TextPosition;
use weir_base::nearest::nearest;

/// Result of reading a node.
pub(crate) type Parsed<T> = Result<T, ParseError>;

/// Syntax error of a `.hurl` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Place of the unexpected text.
    pub position: TextPosition,
    /// Description of what the format allows there.
    pub expected: String,
    /// Description of the text there.
    pub found: String,
    /// Remedy; may be empty.
    pub hint: String,
}

impl ParseError {
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Adds the known word that is most similar to `given`, if one is similar enough for a typing error.
    pub(crate) fn with_nearest(self, given: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        match nearest(given, known) {
            Some(word) => self.with_hint(format!("did you mean '{word}'?")),
            None => self,
        }
    }
}

/// `12:5: expected a query, found 'jsonpth'; did you mean 'jsonpath'?`.
impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.position, self.expected, self.found)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let error = ParseError {
            position: TextPosition { line: 12, column: 5 },
            expected: "a query".into(),
            found: "'jsonpth'".into(),
            hint: String::new(),
        };
        assert_eq!(error.to_string(), "12:5: expected a query, found 'jsonpth'");
        let error = error.with_nearest("jsonpth", ["jsonpath"]);
        assert_eq!(error.to_string(), "12:5: expected a query, found 'jsonpth'; did you mean 'jsonpath'?");
    }
}
