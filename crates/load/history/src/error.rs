//! Errors of a store of runs.

use std::fmt;
use std::path::PathBuf;

/// Error of a store of runs.
#[derive(Debug)]
pub enum HistoryError {
    /// The file cannot be opened, read or written.
    File(PathBuf, String),
    /// There is no such file.
    Missing(PathBuf),
    /// The file is something else than a store of runs.
    Other(PathBuf),
    /// The tables of the file have another version than the one that is read.
    Version(PathBuf, i64, i64),
    /// No run is meant by this reference; with the number of runs in the store.
    NoRun(String, u64),
    /// The run of this number is damaged.
    Damaged(i64, String),
    /// This build has no SQLite.
    Absent,
}

impl std::error::Error for HistoryError {}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Missing(path) => {
                write!(f, "{}: no saved runs; 'weir load --save' saves each run there", path.display())
            }
            Self::Other(path) => write!(f, "{}: not a store of runs; name another file", path.display()),
            Self::Version(path, found, known) => write!(
                f,
                "{}: version {found} of a store of runs; this weir reads version {known}: name another file",
                path.display()
            ),
            Self::NoRun(text, 0) => write!(f, "unknown run '{text}': the store is empty"),
            Self::NoRun(text, count) => write!(f, "unknown run '{text}' among {count}; 'weir history' lists them"),
            Self::Damaged(id, why) => write!(f, "run {id} is damaged: {why}"),
            Self::Absent => f.write_str("this build of weir keeps no runs; build it with the feature sqlite"),
        }
    }
}
