//! Filter of listed runs.

/// Filter of listed runs; empty texts match all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Part of the plan, such as a path.
    pub plan: String,
    /// Label.
    pub label: String,
    /// Beginning of the commit.
    pub commit: String,
    /// Maximum number; the last ones by their start.
    pub limit: Option<u64>,
}
