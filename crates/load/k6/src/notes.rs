//! What a script has done that no request shows: exceptions, and iterations that were cut off.

use serde::{Deserialize, Serialize};

/// Most different exceptions that are kept.
const MAX_MESSAGES: usize = 20;

/// Exceptions and iterations that were cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScriptNotes {
    /// Exceptions as one line each, with their numbers, in the order of the first ones.
    pub(crate) exceptions: Vec<(String, u64)>,
    /// Number of all exceptions.
    pub(crate) exception_count: u64,
    /// Number of iterations that were cut off.
    pub(crate) cuts: u64,
    /// Places where iterations computed when they were cut off.
    pub(crate) cut_places: Vec<String>,
}

impl ScriptNotes {
    /// Adds an exception; whether it is the first of its kind.
    pub(crate) fn add_exception(&mut self, line: &str) -> bool {
        self.add_exceptions(line, 1)
    }

    fn add_exceptions(&mut self, line: &str, more: u64) -> bool {
        self.exception_count += more;
        if let Some((_, count)) = self.exceptions.iter_mut().find(|(known, _)| known == line) {
            *count += more;
            return false;
        }
        let is_kept = self.exceptions.len() < MAX_MESSAGES;
        if is_kept {
            self.exceptions.push((line.to_owned(), more));
        }
        is_kept
    }

    /// Number of exceptions that are not among those that are kept.
    pub(crate) fn other_exceptions(&self) -> u64 {
        let kept: u64 = self.exceptions.iter().map(|(_, count)| count).sum();
        self.exception_count.saturating_sub(kept)
    }

    /// Adds the notes of another process.
    pub(crate) fn merge(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.exception_count += other.other_exceptions();
        for (line, count) in other.exceptions {
            self.add_exceptions(&line, count);
        }
        for place in other.cut_places {
            self.add_place(place);
        }
    }

    /// Adds an iteration that was cut off, at a place if it computed.
    pub(crate) fn add_cut(&mut self, place: Option<String>) {
        self.cuts += 1;
        if let Some(place) = place {
            self.add_place(place);
        }
    }

    fn add_place(&mut self, place: String) {
        if self.cut_places.len() < MAX_MESSAGES && !self.cut_places.contains(&place) {
            self.cut_places.push(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_counted_and_the_first_of_each_kind_is_told() {
        let mut notes = ScriptNotes::default();
        assert!(notes.add_exception("a.js:1: x"));
        assert!(!notes.add_exception("a.js:1: x"));
        assert_eq!((notes.exception_count, notes.exceptions.len()), (2, 1));
        for number in 0..100 {
            notes.add_exception(&number.to_string());
        }
        assert_eq!((notes.exceptions.len(), notes.other_exceptions()), (MAX_MESSAGES, 81));
        let mut both = notes.clone();
        both.merge(notes);
        assert_eq!((both.exception_count, both.exceptions.len(), both.other_exceptions()), (204, MAX_MESSAGES, 162));
    }
}
