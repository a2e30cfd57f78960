//! Errors of a store: one line each, with what to do.

use std::fmt;
use std::path::PathBuf;

/// Reason why a store cannot be opened, read or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The file does not exist and was not to be created.
    NoStore(PathBuf),
    /// The file cannot be opened or created.
    Open(PathBuf, String),
    /// The file is not a database, or another program's.
    NotAStore(PathBuf),
    /// The store has another version than this weir reads.
    Version(PathBuf, String, String),
    /// Another process sends from this store; with its process ID, if known.
    AnotherSender(PathBuf, Option<u32>),
    /// A claim or record without `start_sending`.
    NotSending,
    /// The file is locked by another program.
    Locked(PathBuf),
    /// The disk is full, by its size, a quota or a file-size limit; with the number of jobs of the batch that are
    /// accepted.
    NoSpace(PathBuf, usize),
    /// One job is larger than the bound of the queue.
    TooLarge {
        /// Index in the batch, from 0; the jobs before it are accepted.
        index: usize,
        /// Size of the job, in bytes.
        bytes: u64,
        /// Bound of the queue, in bytes.
        max_bytes: u64,
    },
    /// The file cannot be read or written.
    ReadWriteFailed(PathBuf, String),
    /// The address is invalid, or the server rejects it.
    Address(PathBuf, String),
    /// The server is unreachable, maybe for a while.
    Unreachable(PathBuf, String),
    /// The server may lose accepted jobs.
    NotDurable(PathBuf, String),
    /// The store was closed before it replied.
    Closed,
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore(path) => write!(f, "no job store '{}'; check the name", path.display()),
            Self::Open(path, why) => {
                write!(
                    f,
                    "cannot open the store '{}': {why}; name a file in a folder that can be written",
                    path.display()
                )
            }
            Self::NotAStore(path) => {
                write!(f, "'{}' is not a job store; name another file, this one is unchanged", path.display())
            }
            Self::Version(path, found, known) => write!(
                f,
                "the store '{}' has version {found}; this weir reads version {known}: use the weir that created it, or another store",
                path.display()
            ),
            Self::AnotherSender(path, pid) => {
                write!(f, "another process")?;
                if let Some(pid) = pid {
                    write!(f, " ({pid})")?;
                }
                write!(f, " sends from the store '{}'; submit to it, or end that process", path.display())
            }
            Self::NotSending => f.write_str("only the sender of a store may claim and record jobs"),
            Self::Locked(path) => write!(
                f,
                "another program has locked the store '{}'; end its transaction and run this again",
                path.display()
            ),
            Self::NoSpace(path, accepted) => write!(
                f,
                "no space left for the store '{}'; {accepted} jobs of this batch are accepted, submit the others when there is space",
                path.display()
            ),
            Self::TooLarge { index, bytes, max_bytes: most_bytes } => write!(
                f,
                "job {index} of the batch has {bytes} bytes, and the queue holds {most_bytes}; raise the queue's bound"
            ),
            Self::ReadWriteFailed(path, why) => {
                write!(f, "the store '{}' failed: {why}; check the disk", path.display())
            }
            Self::Address(path, why) => write!(f, "the store '{}' cannot be used: {why}", path.display()),
            Self::Unreachable(path, why) => write!(
                f,
                "the store '{}' is unreachable: {why}; start the server, or check the address",
                path.display()
            ),
            Self::NotDurable(path, why) => write!(f, "the store '{}' may lose jobs: {why}", path.display()),
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}
