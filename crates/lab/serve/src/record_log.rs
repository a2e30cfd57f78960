//! Log of a service's own records, one line of JSON for each response.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use weir_machine::line_file::LineFile;
use weir_machine::lock::lock;
use weir_machine::private_file::private_options;

/// Records of the last responses, for `GET /record`, and of all of them in a file.
#[derive(Debug)]
pub(crate) struct RecordLog {
    recent: Mutex<RecentRecords>,
    file: Option<Mutex<LineFile>>,
}

#[derive(Debug, Default)]
struct RecentRecords {
    lines: VecDeque<String>,
    bytes: usize,
}

/// Maximum size of the records in memory: 16 MiB.
const MAX_RECENT_BYTES: usize = 16 << 20;

impl RecordLog {
    /// Log in memory, and in a file that is created anew.
    ///
    /// # Errors
    /// The file cannot be created, in one line.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, String> {
        let create = |path: &Path| {
            let created = private_options().write(true).create(true).truncate(true).open(path);
            created.map_err(|error| format!("cannot write the record {}: {error}", path.display()))
        };
        let file = path.map(create).transpose()?.map(|file| Mutex::new(LineFile::new(file)));
        Ok(Self { recent: Mutex::default(), file })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The file cannot be written; the record is in memory all the same.
    pub(crate) fn add(&self, record: &Value) -> io::Result<()> {
        let line = format!("{record}\n");
        let written =
            self.file.as_ref().map_or(Ok(()), |file| lock(file).write(line.as_bytes()).map_err(|lost| lost.error));
        let mut recent = lock(&self.recent);
        recent.bytes += line.len();
        recent.lines.push_back(line);
        while recent.bytes > MAX_RECENT_BYTES
            && let Some(oldest) = recent.lines.pop_front()
        {
            recent.bytes -= oldest.len();
        }
        written
    }

    /// Lines of the last records, oldest first.
    pub(crate) fn recent(&self) -> String {
        lock(&self.recent).lines.iter().map(String::as_str).collect()
    }
}
