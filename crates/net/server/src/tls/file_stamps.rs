//! Changes of the files of TLS.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::ServerTlsOptions;

/// State of all files, through symbolic links: replaced, written or removed files have another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamps(Vec<Option<FileStamp>>);

/// Device, number, size and time of the last change (seconds, nanoseconds).
type FileStamp = (u64, u64, u64, i64, i64);

impl FileStamps {
    /// The state of the files now.
    pub(super) fn of(options: &ServerTlsOptions) -> Self {
        let of_certificates = options
            .certificates
            .iter()
            .flat_map(|files| [Some(&files.cert), Some(&files.key), files.ocsp.as_ref()].into_iter().flatten());
        Self(of_certificates.chain(&options.client_ca).map(|path| stamp(path)).collect())
    }
}

fn stamp(path: &Path) -> Option<FileStamp> {
    let data = fs::metadata(path).ok()?;
    Some((data.dev(), data.ino(), data.size(), data.ctime(), data.ctime_nsec()))
}
