//! Files that only their owner reads: stores, saved runs, records of requests.
//!
//! Files created here have mode 0600 whatever the umask: with a umask of 022 a file in a shared folder would otherwise
//! be readable by all users of the machine. A file that is there keeps its mode, since its owner may have chosen it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Mode of files that only their owner reads and writes.
pub const PRIVATE_MODE: u32 = 0o600;

/// Options that create a file with [`PRIVATE_MODE`]; the caller says how it is opened.
pub fn private_options() -> OpenOptions {
    let mut options = File::options();
    options.mode(PRIVATE_MODE);
    options
}

/// Creates an empty private file if there is none, so that a library that opens the path later finds its mode. SQLite
/// gives its journal, log and shared memory the mode of the database.
///
/// # Errors
/// The file cannot be created. An existing one, of any kind, is not an error.
pub fn create_private(path: &Path) -> io::Result<()> {
    match private_options().write(true).create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_its_owners_and_a_present_one_keeps_mode_and_content() {
        let folder = tempfile::tempdir().unwrap();
        let (new, old) = (folder.path().join("new"), folder.path().join("old"));
        create_private(&new).unwrap();
        assert_eq!((mode(&new), fs::read(&new).unwrap().len()), (0o600, 0));
        fs::write(&old, "content").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o640)).unwrap();
        create_private(&old).unwrap();
        assert_eq!((mode(&old), fs::read_to_string(&old).unwrap().as_str()), (0o640, "content"));
        let appended = folder.path().join("appended");
        drop(private_options().append(true).create(true).open(&appended).unwrap());
        assert_eq!(mode(&appended), 0o600);
        assert!(create_private(&folder.path().join("no/folder")).is_err());
    }
}
