//! End of a response.

/// End of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlayEnd {
    Complete,
    Cut,
    Half,
    /// The client left before.
    ClientClosed,
}

impl PlayEnd {
    /// Name in records.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::Half => "half",
            Self::ClientClosed => "client_closed",
        }
    }
}
