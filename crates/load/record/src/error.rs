//! Reasons why a recording cannot start.

use std::fmt;
use std::io;
use std::path::PathBuf;

use weir_net::tls::TlsError;

/// Reason why a recording cannot start.
#[derive(Debug)]
pub enum RecordError {
    /// The address is not available.
    Listen(String, io::Error),
    /// The address is open to other machines without the option that permits it.
    Remote(String),
    /// The journal is there from an earlier recording.
    JournalExists(PathBuf),
    /// The journal cannot be written.
    Journal(PathBuf, io::Error),
    /// The certificate authority cannot be read or made: its file and the reason.
    Authority(PathBuf, String),
    /// Certificates for services cannot be read.
    Tls(TlsError),
    /// The upstream is the recorder itself.
    OwnUpstream(String),
    /// The system has no event loop or timer left.
    System(io::Error),
}

impl std::error::Error for RecordError {}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen(address, error) => {
                write!(f, "cannot listen on {address}: {error}; choose another --listen, or port 0 for a free one")
            }
            Self::Remote(address) => write!(
                f,
                "--listen {address} lets other machines use this proxy, and read what is recorded; listen on 127.0.0.1, \
                 or add --allow-remote"
            ),
            Self::JournalExists(path) => write!(
                f,
                "{0} is there from a recording that did not end; make a scenario of it with weir import {0} -o FILE.hurl, \
                 or add --force to write over it",
                path.display()
            ),
            Self::Journal(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Authority(path, why) => write!(f, "certificate authority {}: {why}", path.display()),
            Self::Tls(error) => write!(f, "{error}"),
            Self::OwnUpstream(url) => {
                write!(f, "--upstream {url} is the address of the recorder; give that of the service")
            }
            Self::System(error) => write!(f, "the system has no event loop left: {error}"),
        }
    }
}

impl From<io::Error> for RecordError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
