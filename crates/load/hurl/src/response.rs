//! Expected response of an entry, and its captures.

use std::fmt;

use crate::assertion::Assertion;
use crate::body::HurlBody;
use crate::capture::Capture;
use crate::error::{ParseError, Parsed};
use crate::field::FieldTemplate;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::request::write_section;
use crate::section::SectionName;

/// Requirements on the response to a request, and captures from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExpectedResponse {
    /// Version of HTTP.
    pub version: ExpectedVersion,
    /// Status code.
    pub status: ExpectedStatus,
    /// Headers that the response must have.
    pub headers: Vec<FieldTemplate>,
    /// `[Captures]` in order.
    pub captures: Vec<Capture>,
    /// `[Asserts]` in order.
    pub asserts: Vec<Assertion>,
    /// Body that the response must have.
    pub body: Option<HurlBody>,
    /// Place of the version.
    pub position: TextPosition,
}

/// Status code of an [`ExpectedResponse`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedStatus {
    /// Any status: `*`.
    #[default]
    Any,
    /// This status.
    Code(u16),
}

crate::words::words! {
    /// Version of HTTP that a response must have.
    #[derive(Default)]
    pub enum ExpectedVersion {
        /// Any version.
        #[default]
        Any = "HTTP",
        /// HTTP/1.0.
        Http10 = "HTTP/1.0",
        /// HTTP/1.1.
        Http11 = "HTTP/1.1",
        /// HTTP/2.
        Http2 = "HTTP/2",
        /// HTTP/3.
        Http3 = "HTTP/3",
    }
}

impl ExpectedResponse {
    /// Reads the first line.
    pub(crate) fn read_line(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let position = reader.position();
        let word = reader.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.'));
        let Some(version) = ExpectedVersion::from_word(word) else {
            let error = reader.expected_at(start, "HTTP, HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3");
            return Err(ParseError { found: format!("'{word}'"), ..error });
        };
        reader.need_spaces()?;
        let status = ExpectedStatus::read(reader)?;
        reader.end_of_line()?;
        Ok(Self { version, status, position, ..Self::default() })
    }
}

impl ExpectedStatus {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        if reader.eat("*") {
            return Ok(Self::Any);
        }
        let code = reader.take_while(|c| c.is_ascii_digit()).parse();
        code.map(Self::Code).map_err(|_| reader.expected_at(start, "a status code or *"))
    }
}

impl fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Code(code) => code.fmt(f),
        }
    }
}

/// Lines of the response with their ends.
impl fmt::Display for ExpectedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", self.version, self.status)?;
        self.headers.iter().try_for_each(|header| writeln!(f, "{header}"))?;
        write_section(SectionName::Captures, &self.captures, f)?;
        write_section(SectionName::Asserts, &self.asserts, f)?;
        self.body.as_ref().map_or(Ok(()), |body| writeln!(f, "{body}"))
    }
}
