//! Asserts: predicates on a response.

use std::fmt;

use crate::error::Parsed;
use crate::filter::ValueFilter;
use crate::predicate::Predicate;
use crate::query::{PlainQuery, QueryKind, ResponseQuery};
use crate::reader::Reader;

/// Line of `[Asserts]`: a predicate on a value of the response.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    /// Value in the response.
    pub query: ResponseQuery,
    /// Filters in order.
    pub filters: Vec<ValueFilter>,
    /// Predicate on the filtered value.
    pub predicate: Predicate,
}

impl Assertion {
    /// Reads a line, or more than one if its value is a block.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let query = ResponseQuery::read(reader)?;
        let filters = ValueFilter::read_all(reader)?;
        let has_spaces = reader.skip_spaces();
        if !has_spaces && !reader.is_word_end() {
            return Err(reader.expected("a space"));
        }
        let predicate = Predicate::read(reader)?;
        reader.end_of_line()?;
        Ok(Self { query, filters, predicate })
    }

    /// Whether the value is the status of the response.
    pub fn is_about_status(&self) -> bool {
        self.filters.is_empty() && matches!(self.query.kind, QueryKind::Plain(PlainQuery::Status))
    }

    /// Parses an assert by itself: `status == 200`.
    ///
    /// # Errors
    /// The first syntax error.
    pub fn parse(text: &str) -> Result<Self, crate::ParseError> {
        let mut reader = Reader::new(text);
        reader.skip_spaces();
        let assertion = Self::read(&mut reader)?;
        reader.skip_blank_lines();
        if reader.is_end() { Ok(assertion) } else { Err(reader.expected("one assert")) }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)?;
        self.filters.iter().try_for_each(|filter| write!(f, " {filter}"))?;
        write!(f, " {}", self.predicate)
    }
}
