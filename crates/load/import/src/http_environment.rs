//! Environments of JetBrains, as their files have them.

/// Environment of a file.
#[derive(Clone, Debug)]
pub(crate) struct HttpEnvironment {
    /// Name.
    pub(crate) name: String,
    /// Whether its file is the private one, whose values come first.
    pub(crate) is_private: bool,
    /// Line and name of its file.
    pub(crate) line: u32,
    pub(crate) file: String,
    /// Lines, names and values.
    pub(crate) variables: Vec<(u32, String, String)>,
}
