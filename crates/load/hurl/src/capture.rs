//! Captures: variables from a response.

use std::fmt;

use crate::error::Parsed;
use crate::field::{read_name, write_name};
use crate::filter::{self, ValueFilter};
use crate::query::ResponseQuery;
use crate::reader::Reader;
use crate::template::Template;

/// Line of `[Captures]`: a variable and where its value is from.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// Name of the variable.
    pub name: Template,
    /// Value in the response.
    pub query: ResponseQuery,
    /// Filters in order.
    pub filters: Vec<ValueFilter>,
    /// Whether logs hide the value: `redact`.
    pub is_redacted: bool,
}

const REDACT: &str = "redact";

impl Capture {
    /// Reads a line.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let name = read_name(reader)?;
        let query = ResponseQuery::read(reader)?;
        let filters = ValueFilter::read_all(reader)?;
        reader.skip_spaces();
        let start = reader.cursor();
        let word = reader.take_word();
        let is_redacted = word == REDACT;
        if !is_redacted && !word.is_empty() {
            let error = reader.expected_at(start, "a filter, redact or the end of the line");
            return Err(error.with_nearest(word, filter::spellings().chain([REDACT])));
        }
        reader.end_of_line()?;
        Ok(Self { name, query, filters, is_redacted })
    }
}

impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(&self.name, f)?;
        write!(f, " {}", self.query)?;
        self.filters.iter().try_for_each(|filter| write!(f, " {filter}"))?;
        if self.is_redacted { write!(f, " {REDACT}") } else { Ok(()) }
    }
}
