//! Progress of a user's iteration.

/// Progress of a user's iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IterationProgress {
    /// There is none: it has ended, or was cut off.
    #[default]
    None,
    /// It begins when the user is woken.
    Ahead,
    UnderWay,
}

impl IterationProgress {
    /// The user is woken.
    pub(super) fn wake(&mut self) {
        if *self == Self::Ahead {
            *self = Self::UnderWay;
        }
    }

    /// Ends it; whether it was under way.
    pub(super) fn end(&mut self) -> bool {
        std::mem::take(self) == Self::UnderWay
    }
}
