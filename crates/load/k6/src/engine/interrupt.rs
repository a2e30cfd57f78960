//! Interruption of a script that does not return by itself: other users have their turns, and the end is kept.

use std::cell::Cell;

use weir_base::Nanos;
use weir_machine::clock;

/// Longest time that a script computes before other users have their turn.
const TURN: Nanos = Nanos(10_000_000);

/// What becomes of a script that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// It goes on.
    None,
    /// Others have their turn before it goes on.
    Turn,
    /// It ends.
    End,
}

/// Time that a script may compute.
#[derive(Debug)]
pub(crate) struct ComputeTime {
    /// Beginning of the present turn, on the monotonic clock.
    since: Cell<Nanos>,
    /// Time from which on it ends.
    until: Cell<Nanos>,
    is_ending: Cell<bool>,
}

impl Default for ComputeTime {
    fn default() -> Self {
        Self { since: Cell::new(clock::monotonic()), until: Cell::new(Nanos::NEVER), is_ending: Cell::new(false) }
    }
}

impl ComputeTime {
    /// Begins a turn.
    pub(crate) fn begin_turn(&self) {
        self.since.set(clock::monotonic());
    }

    /// Time of the present turn so far.
    pub(crate) fn turn(&self) -> Nanos {
        clock::monotonic() - self.since.get()
    }

    /// Sets the time from which on the script ends, on the monotonic clock.
    pub(crate) fn set_until(&self, until: Nanos) {
        self.until.set(until);
    }

    /// Lets the script end at its next instruction.
    pub(crate) fn end(&self) {
        self.is_ending.set(true);
    }

    /// Whether the script is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.get()
    }

    /// What becomes of the script now.
    pub(crate) fn look(&self) -> Interruption {
        let now = clock::monotonic();
        if self.is_ending.get() || now >= self.until.get() {
            return Interruption::End;
        }
        if now - self.since.get() >= TURN { Interruption::Turn } else { Interruption::None }
    }
}
