//! Requests.

use std::fmt;

use crate::body::HurlBody;
use crate::error::Parsed;
use crate::field::{FieldTemplate, MultipartField};
use crate::option::RequestOption;
use crate::position::TextPosition;
use crate::reader::Reader;
use crate::section::SectionName;
use crate::template::Template;

/// Request of an entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HurlRequest {
    /// Method: capital letters.
    pub method: String,
    /// URL; parameters of the query string may follow in `query`.
    pub url: Template,
    /// Headers in order.
    pub headers: Vec<FieldTemplate>,
    /// `[Query]`: parameters of the query string, not yet encoded.
    pub query: Vec<FieldTemplate>,
    /// `[Form]`: fields of the form in the body, not yet encoded.
    pub form: Vec<FieldTemplate>,
    /// `[Multipart]`: parts of the body.
    pub multipart: Vec<MultipartField>,
    /// `[Cookies]`: cookies besides those of the session.
    pub cookies: Vec<FieldTemplate>,
    /// `[BasicAuth]`: user and password.
    pub basic_auth: Option<FieldTemplate>,
    /// `[Options]` in order: a variable is visible to the options after it.
    pub options: Vec<RequestOption>,
    /// Body.
    pub body: Option<HurlBody>,
    /// Place of the method.
    pub position: TextPosition,
}

impl HurlRequest {
    /// Request that was not read from a file.
    pub fn new(method: impl Into<String>, url: Template) -> Self {
        Self { method: method.into(), url, ..Self::default() }
    }

    /// Reads the first line.
    pub(crate) fn read_line(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let position = reader.position();
        let method = reader.take_while(|c| c.is_ascii_alphabetic());
        if method.is_empty() || !method.chars().all(|c| c.is_ascii_uppercase()) {
            return Err(reader.expected_at(start, "a method in capital letters, such as GET"));
        }
        reader.need_spaces()?;
        let url = Template::read_value(reader)?;
        if url.is_empty() {
            return Err(reader.expected("a URL"));
        }
        reader.end_of_line()?;
        Ok(Self { method: method.to_owned(), url, position, ..Self::default() })
    }
}

/// Lines of the request with their ends.
impl fmt::Display for HurlRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.to_string();
        // `GET :` is a header.
        match url.strip_prefix(':') {
            Some(rest) => writeln!(f, "{} \\u{{3a}}{rest}", self.method)?,
            None => writeln!(f, "{} {url}", self.method)?,
        }
        self.headers.iter().try_for_each(|header| writeln!(f, "{header}"))?;
        write_section(SectionName::Query, &self.query, f)?;
        write_section(SectionName::Form, &self.form, f)?;
        write_section(SectionName::Multipart, &self.multipart, f)?;
        write_section(SectionName::Cookies, &self.cookies, f)?;
        write_section(SectionName::BasicAuth, self.basic_auth.as_slice(), f)?;
        write_section(SectionName::Options, &self.options, f)?;
        self.body.as_ref().map_or(Ok(()), |body| writeln!(f, "{body}"))
    }
}

/// Writes a section, if it has lines.
pub(crate) fn write_section<T: fmt::Display>(
    name: SectionName,
    lines: &[T],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if !lines.is_empty() {
        writeln!(f, "[{name}]")?;
    }
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}
