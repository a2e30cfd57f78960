//! Journal of a recording: a HAR file that is whole after each entry, so that nothing is lost if the process is killed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use weir_machine::private_file::PRIVATE_MODE;

/// Size of the file above which bodies of responses are not kept, in bytes.
const MAX_BYTES_WITH_BODIES: u64 = 32 << 20;

/// Size of the file above which nothing more is recorded, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Pages that are named.
const MAX_PAGES: u32 = 10_000;

/// HAR file that grows.
#[derive(Debug)]
pub(crate) struct HarJournal {
    file: File,
    path: PathBuf,
    /// End of the last entry, over which the next one is written.
    end: u64,
    /// Text written behind the last entry.
    written_tail: String,
    entries: u64,
    /// Titles of the pages, as members of a list.
    pages: String,
    page_count: u32,
}

impl HarJournal {
    /// Creates the file, or empties one that is there.
    ///
    /// # Errors
    /// The file is there and is not to be written over, or cannot be written.
    pub(crate) fn create(path: &Path, overwrites: bool) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).mode(PRIVATE_MODE);
        let file = match overwrites {
            true => options.create(true).truncate(true).open(path)?,
            false => options.create_new(true).open(path)?,
        };
        // The mode of a file that was there before is another one.
        file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
        let head = format!(
            "{{\"log\": {{\"version\": \"1.2\", \"creator\": {{\"name\": \"weir\", \"version\": \"{}\"}}, \"entries\": [\n",
            env!("CARGO_PKG_VERSION")
        );
        let path = path.to_owned();
        let (end, pages, written_tail) = (head.len() as u64, String::new(), String::new());
        let mut journal = Self { file, path, end, written_tail, entries: 0, pages, page_count: 0 };
        journal.written_tail = journal.tail();
        journal.file.write_all_at(format!("{head}{}", journal.written_tail).as_bytes(), 0)?;
        Ok(journal)
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether bodies of responses are still kept.
    pub(crate) fn has_room_for_bodies(&self) -> bool {
        self.end < MAX_BYTES_WITH_BODIES
    }

    /// Names a page: its title as JSON and the time of its start.
    pub(crate) fn add_page(&mut self, number: u32, title_json: &str, started: &str) {
        if self.page_count < MAX_PAGES {
            let separator = if self.page_count == 0 { "\n" } else { ",\n" };
            self.pages.push_str(&format!(
                "{separator}{{\"id\": \"page_{number}\", \"title\": {title_json}, \"startedDateTime\": \"{started}\", \"pageTimings\": {{}}}}"
            ));
            self.page_count += 1;
        }
    }

    /// Appends an entry, a line; false if the file has no room for it.
    ///
    /// # Errors
    /// An error of the system, such as a full disk; the file has the entries before.
    pub(crate) fn append(&mut self, entry: &str) -> io::Result<bool> {
        let separator = if self.entries == 0 { "" } else { ",\n" };
        let length = (separator.len() + entry.len()) as u64;
        if self.end + length > MAX_BYTES {
            return Ok(false);
        }
        // One write for the entry and the end of the file: a process that is killed leaves the one or the other whole.
        let tail = self.tail();
        if let Err(error) = self.file.write_all_at(format!("{separator}{entry}{tail}").as_bytes(), self.end) {
            // Over the part that has found room: the end of the file had its place there before. If that fails as well,
            // the first error is what is to be said.
            let _ = self.file.write_all_at(self.written_tail.as_bytes(), self.end);
            let _ = self.file.set_len(self.end + self.written_tail.len() as u64);
            return Err(error);
        }
        self.written_tail = tail;
        self.end += length;
        self.entries += 1;
        Ok(true)
    }

    fn tail(&self) -> String {
        format!("\n], \"pages\": [{}]}}}}\n", self.pages)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_file_is_whole_after_each_entry_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.har");
        let mut journal = HarJournal::create(&path, false).unwrap();
        let read = || serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read()["log"]["entries"].as_array().unwrap().len(), 0);
        for number in 1..4_usize {
            if number == 2 {
                journal.add_page(1, "\"a \\\"title\\\"\"", "2026-01-01T00:00:00.000Z");
            }
            assert!(journal.append(&format!("{{\"n\": {number}}}")).unwrap());
            assert_eq!(read()["log"]["entries"].as_array().unwrap().len(), number);
        }
        assert_eq!(read()["log"]["pages"][0]["title"], "a \"title\"");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(HarJournal::create(&path, false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        HarJournal::create(&path, true).unwrap();
        assert_eq!(read()["log"]["entries"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn the_file_has_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = HarJournal::create(&folder.path().join("x.har"), false).unwrap();
        let entry = format!("\"{}\"", "x".repeat(7 << 20));
        let written = (0..15).filter(|_| journal.append(&entry).unwrap()).count();
        assert!(written == 9 && !journal.has_room_for_bodies(), "{written}");
        assert!(journal.append("1").unwrap(), "a shorter one has room");
    }
}
