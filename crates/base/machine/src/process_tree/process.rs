//! Process of a tree.

use std::collections::BTreeMap;
use std::fs::{self, File};

use super::super::processes::{ProcessStat, open};

/// Process, with open files in /proc.
#[derive(Debug)]
pub(super) struct Process {
    stat: ProcessStat,
    stat_file: File,
    /// File opened on first use; None within if it is not readable.
    rollup_file: Option<Option<File>>,
    /// Voluntary and involuntary switches by thread; those of ended threads as of the last sample.
    switches: BTreeMap<u32, (u64, u64)>,
}

/// Buffer size, above the length of the file.
const ROLLUP_BUFFER_BYTES: usize = 4096;

impl Process {
    /// Opens a process; None if it has ended.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let stat_file = open(pid, "stat").ok()?;
        let stat = ProcessStat::read(pid, &stat_file)?;
        Some(Self { stat, stat_file, rollup_file: None, switches: BTreeMap::new() })
    }

    /// Reads the process again; false if it has ended. The open file refers to this process even if its ID is reused.
    pub(super) fn refresh(&mut self) -> bool {
        let stat = ProcessStat::read(self.stat.pid, &self.stat_file);
        self.stat = stat.unwrap_or(self.stat);
        stat.is_some()
    }

    pub(super) fn stat(&self) -> ProcessStat {
        self.stat
    }

    pub(super) fn pss_bytes(&mut self) -> Option<u64> {
        let pid = self.stat.pid;
        let file = self.rollup_file.get_or_insert_with(|| open(pid, "smaps_rollup").ok()).as_ref()?;
        let mut text = [0; ROLLUP_BUFFER_BYTES];
        let length = rustix::io::pread(file, &mut text[..], 0).ok()?;
        let text = String::from_utf8_lossy(text.get(..length)?);
        let kib = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB"))?;
        Some(kib.trim().parse::<u64>().ok()? * 1024)
    }

    pub(super) fn open_files(&self) -> Option<u64> {
        let folder = format!("/proc/{}/fd", self.stat.pid);
        // Since Linux 6.2 the size of the folder is the number of files.
        match fs::metadata(&folder).ok()?.len() {
            0 => Some(fs::read_dir(&folder).ok()?.count() as u64),
            count => Some(count),
        }
    }

    /// Voluntary and involuntary switches of all threads.
    pub(super) fn switches(&mut self) -> (u64, u64) {
        let folder = format!("/proc/{}/task", self.stat.pid);
        let threads = fs::read_dir(&folder).into_iter().flatten().flatten();
        for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let status = fs::read_to_string(format!("{folder}/{thread}/status")).unwrap_or_default();
            let count = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
            if let (Some(voluntary), Some(not)) =
                (count("voluntary_ctxt_switches:"), count("nonvoluntary_ctxt_switches:"))
            {
                self.switches.insert(thread, (voluntary, not));
            }
        }
        self.switches.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
