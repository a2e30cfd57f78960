//! PURE. JSONPath (RFC 9535) on the bytes of a body, without a tree; and the members and elements of a text of JSON.
//!
//! A node is the text of a value within the body. What a path does not select is skipped: its lists, objects and strings
//! must end, but what is in them is not checked.

mod block_masks;
mod descend;
mod error;
mod evaluate;
mod expression;
mod literal;
mod nested_scan;
mod parse;
mod scan;
mod segment;
mod string_literal;

#[cfg(test)]
mod tests;

pub use self::error::{JsonPathError, JsonTextError};
use self::evaluate::Evaluation;
pub use self::literal::unescaped;
pub use self::scan::{elements, members};
use self::segment::Segment;

/// Query for values of a JSON text.
#[derive(Clone, Debug)]
pub struct JsonPath {
    segments: Vec<Segment>,
}

impl JsonPath {
    /// Parses a path such as `$.items[?@.price < 10].name`.
    ///
    /// # Errors
    /// The first mistake and its place.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        parse::path(text).map(|segments| Self { segments })
    }

    /// Appends the texts of all matching values of `body`, in the order of RFC 9535.
    ///
    /// # Errors
    /// If the body is not JSON, as far as it is read, or is cut off.
    pub fn find<'b>(&self, body: &'b [u8], matches: &mut Vec<&'b [u8]>) -> Result<(), JsonTextError> {
        let (root, end) = scan::value(body, 0)?;
        scan::end_of_text(body, end)?;
        Evaluation { root }.select(&self.segments, root, matches)
    }

    /// Text of the value that a path of names and indices matches, in one pass. None if the path
    /// [is not of one value](Self::is_singular), or nothing matches.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_one<'b>(&self, body: &'b [u8]) -> Result<Option<&'b [u8]>, JsonTextError> {
        descend::find(&self.segments, body)
    }

    /// Whether at most one value can match: all segments are one name or index.
    pub fn is_singular(&self) -> bool {
        segment::are_singular(&self.segments)
    }
}
