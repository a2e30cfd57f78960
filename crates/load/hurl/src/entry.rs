//! Files and their entries.

use std::fmt;

use crate::comment::Comment;
use crate::request::HurlRequest;
use crate::response::ExpectedResponse;

/// Content of a `.hurl` file. Its display is a file that is parsed to the same content, except for positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HurlFile {
    /// Entries in order.
    pub entries: Vec<HurlEntry>,
    /// Comments after the last entry.
    pub comments: Vec<Comment>,
}

/// Request, and what its response must be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HurlEntry {
    /// Comments before and in the entry.
    pub comments: Vec<Comment>,
    /// Request.
    pub request: HurlRequest,
    /// Expected response; None accepts any.
    pub response: Option<ExpectedResponse>,
}

impl HurlEntry {
    /// Name in a comment `# @name login`.
    pub fn name(&self) -> Option<&str> {
        self.comments.iter().find_map(|comment| comment.annotation("name"))
    }
}

impl fmt::Display for HurlFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            let blank_line = if index == 0 { "" } else { "\n" };
            write!(f, "{blank_line}{entry}")?;
        }
        if !self.entries.is_empty() && !self.comments.is_empty() {
            writeln!(f)?;
        }
        self.comments.iter().try_for_each(|comment| comment.fmt(f))
    }
}

/// Lines of the entry with their ends; all comments are before the request.
impl fmt::Display for HurlEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments.iter().try_for_each(|comment| comment.fmt(f))?;
        self.request.fmt(f)?;
        self.response.as_ref().map_or(Ok(()), |response| response.fmt(f))
    }
}
