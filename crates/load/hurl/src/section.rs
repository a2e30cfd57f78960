//! Sections of requests and responses.

use crate::error::Parsed;
use crate::reader::Reader;

crate::words::words! {
    /// Section of a request or response.
    pub(crate) enum SectionName {
        /// Predicates on a response.
        Asserts = "Asserts",
        /// User and password.
        BasicAuth = "BasicAuth",
        /// Variables from a response.
        Captures = "Captures",
        /// Cookies that are sent.
        Cookies = "Cookies",
        /// Form in the body.
        Form = "Form",
        /// Parts of a multipart body.
        Multipart = "Multipart",
        /// Options of a request.
        Options = "Options",
        /// Parameters of the query string.
        Query = "Query",
    }
}

/// Long spellings, which are accepted but not written.
const LONG_NAMES: [(&str, SectionName); 3] = [
    ("FormParams", SectionName::Form),
    ("MultipartFormData", SectionName::Multipart),
    ("QueryStringParams", SectionName::Query),
];

impl SectionName {
    pub(crate) fn is_of_response(self) -> bool {
        matches!(self, Self::Asserts | Self::Captures)
    }

    fn from_title(title: &str) -> Option<Self> {
        let long = || LONG_NAMES.iter().find(|(name, _)| *name == title).map(|(_, section)| *section);
        Self::from_word(title).or_else(long)
    }

    /// Whether a line is the title of a section: `[Query]`, or another word alone. `[1]` and `[true]` are JSON.
    pub(crate) fn is_title(line: &str) -> bool {
        let Some((title, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) else { return false };
        let rest = rest.trim_start_matches([' ', '\t']);
        let is_alone = rest.is_empty() || rest.starts_with('#');
        let is_word = title.starts_with(|c: char| c.is_alphabetic()) && title.chars().all(char::is_alphanumeric);
        let is_json = matches!(title, "true" | "false" | "null");
        Self::from_title(title).is_some() || (is_word && is_alone && !is_json)
    }

    /// Whether a line is the title of a section with a known name.
    pub(crate) fn is_known_title(line: &str) -> bool {
        let title = line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(title, _)| title);
        title.is_some_and(|title| Self::from_title(title).is_some())
    }

    /// Reads the title of a section. An unknown one is an error after its line, since its lines belong to it.
    pub(crate) fn read(reader: &mut Reader<'_>, is_response: bool) -> Parsed<Self> {
        reader.need("[")?;
        let start = reader.cursor();
        let title = reader.take_word();
        let Some(section) = Self::from_title(title) else {
            let owner = if is_response { "response" } else { "request" };
            let known = Self::ALL.iter().filter(|section| section.is_of_response() == is_response);
            let names: Vec<String> = known.map(|section| format!("[{section}]")).collect();
            let error = reader.expected_at(start, format!("a section of a {owner}: {}", names.join(", ")));
            return Err(error.with_nearest(title, Self::spellings()));
        };
        reader.need("]")?;
        reader.end_of_line()?;
        Ok(section)
    }
}
