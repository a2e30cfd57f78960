//! Settings of an import.

/// Choice of steps, and generation of values, for an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSettings {
    /// Tags, folders, names, paths or hosts of the steps that are taken; all without any.
    pub only: Vec<String>,
    /// Whether operations that change data, and static files, are steps and not comments.
    pub all: bool,
    /// Whether values of recorded responses that come again become captures.
    pub correlate: bool,
    /// Seed of made-up values.
    pub seed: u64,
}

impl Default for ImportSettings {
    fn default() -> Self {
        Self { only: Vec::new(), all: false, correlate: true, seed: 0 }
    }
}
