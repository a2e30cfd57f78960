//! Faults in the content of whole responses.

use std::fmt;

/// Fault in the content of a language model's response; events are numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentFault {
    /// An event is not JSON.
    NotJson(u64),
    /// The response is a page.
    Html,
    /// An event reports an error, with this message of the server.
    Error(u64, String),
    /// There is no event.
    Empty,
    /// No event has a token.
    NoToken,
    /// No event says that the response is whole.
    NoEnd,
}

impl ContentFault {
    /// Fault of an event that is not JSON.
    pub(super) fn not_json(event: u64, data: &[u8]) -> Self {
        let start = data.trim_ascii_start();
        let is_page = |tag: &str| start.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag.as_bytes()));
        if ["<!doctype", "<html", "<head", "<body"].into_iter().any(is_page) {
            Self::Html
        } else {
            Self::NotJson(event)
        }
    }
}

impl fmt::Display for ContentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(event) => write!(f, "event {event} is not JSON"),
            Self::Html => f.write_str("the response is an HTML page, not one of the API; check the URL"),
            Self::Error(event, message) => write!(f, "event {event} reports an error: {message}"),
            Self::Empty => f.write_str("the response is empty"),
            Self::NoToken => f.write_str("the response has no token"),
            Self::NoEnd => f.write_str("the stream ended without its last event ([DONE], finish_reason or the like)"),
        }
    }
}
