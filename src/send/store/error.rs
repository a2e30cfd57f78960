//! Why a store cannot do what it was asked: one line each, with what to do.

use std::fmt;
use std::path::PathBuf;

/// Why a store cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// There is no such file, and none was to be made.
    NoStore(PathBuf),
    /// The file cannot be opened or made.
    Open(PathBuf, String),
    /// The file is no database, or another program's.
    NotAStore(PathBuf),
    /// The store is of another version, which it names.
    Version(PathBuf, String),
    /// Another process sends from this store; its number, if it said so.
    AnotherSender(PathBuf, Option<u32>),
    /// A claim or a record of one who has not called `start_sending`.
    NotSending,
    /// Another program holds the file's lock.
    Locked(PathBuf),
    /// No room on the disk, by its size, a quota or a bound on the size of files. So many jobs of the batch are accepted and safe.
    NoSpace(PathBuf, usize),
    /// The job with this number alone is larger than the queue may get, in bytes.
    TooLarge {
        /// Its place in the batch, from 0. Those before it are accepted.
        index: usize,
        /// Its size.
        bytes: u64,
        /// The queue's bound.
        max_bytes: u64,
    },
    /// The file cannot be read or written.
    ReadWriteFailed(PathBuf, String),
    /// The address of the server is none, or the server does not take it.
    Address(PathBuf, String),
    /// The server does not answer; it may do so later.
    Unreachable(PathBuf, String),
    /// The server may lose what it has accepted.
    NotDurable(PathBuf, String),
    /// The store was closed before it could answer.
    Closed,
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore(path) => write!(f, "there is no store '{}'; check the name", path.display()),
            Self::Open(path, why) => {
                write!(
                    f,
                    "cannot open the store '{}': {why}; name a file in a folder that can be written",
                    path.display()
                )
            }
            Self::NotAStore(path) => {
                write!(f, "'{}' is no store of weir's; name another file, it was left as it is", path.display())
            }
            Self::Version(path, found) => write!(
                f,
                "the store '{}' is of version {found}, and this weir knows version {}; use the weir that made it, or another file",
                path.display(),
                super::sqlite::SCHEMA_VERSION
            ),
            Self::AnotherSender(path, pid) => {
                write!(f, "another process")?;
                if let Some(pid) = pid {
                    write!(f, " ({pid})")?;
                }
                write!(f, " sends from the store '{}'; submit to it, or end that process", path.display())
            }
            Self::NotSending => f.write_str("only the sender of a store may claim jobs and record what came of them"),
            Self::Locked(path) => write!(
                f,
                "another program has locked the store '{}'; end its transaction and try again",
                path.display()
            ),
            Self::NoSpace(path, accepted) => write!(
                f,
                "no space is left for the store '{}'; {accepted} jobs of this batch are accepted, submit the others when there is room",
                path.display()
            ),
            Self::TooLarge { index, bytes, max_bytes: most_bytes } => write!(
                f,
                "job {index} of the batch has {bytes} bytes, and the queue holds {most_bytes}; raise the queue's bound"
            ),
            Self::ReadWriteFailed(path, why) => {
                write!(f, "the store '{}' fails: {why}; see to the disk", path.display())
            }
            Self::Address(path, why) => write!(f, "the store '{}' cannot be used: {why}", path.display()),
            Self::Unreachable(path, why) => write!(
                f,
                "the store '{}' does not answer: {why}; start the server, or check the address",
                path.display()
            ),
            Self::NotDurable(path, why) => write!(f, "the store '{}' may lose jobs: {why}", path.display()),
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}
