//! Faults of values that users set.

use std::fmt;

/// What is wrong with a value that a user has set, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The error: a sentence, or a text to follow the value.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl Fault {
    /// An error and its remedy.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

/// `a slack of 0 would take from callers what is theirs; make it 1 at least`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, remedy } = self;
        write!(f, "{what}; {remedy}")
    }
}
