//! Ends of streamed responses on purpose: after a number of events, or at one that has a text.

use weir_hurl::{HurlEntry, ParseError, TextPosition};

use super::problem;

/// When the response to a step, a stream of events, is ended on purpose; never without either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEndRule {
    /// Number of events: a comment `# @max-events 5`.
    pub max_events: Option<u64>,
    /// Text that the data of the last event contains: a comment `# @until-event [DONE]`.
    pub text: Option<String>,
}

impl StreamEndRule {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Rule of the comments above a step.
    pub(super) fn of(entry: &HurlEntry, errors: &mut Vec<ParseError>) -> Self {
        let annotation = |key: &str| entry.comments.iter().find_map(|it| Some((it, it.annotation(key)?)));
        let mut max_events = None;
        if let Some((comment, text)) = annotation("max-events") {
            max_events = text.parse().ok().filter(|events| *events > 0);
            if max_events.is_none() {
                let before = comment.text.find(text).map_or(0, |at| comment.text[..at].chars().count());
                let column = comment.position.column + u32::try_from(before).unwrap_or(0) + 1;
                let position = TextPosition { column, ..comment.position };
                errors.push(problem(position, "a number of events from 1", format!("'{text}'"), ""));
            }
        }
        Self { max_events, text: annotation("until-event").map(|(_, text)| text.to_owned()) }
    }
}
