//! Reads jobs, line by line, into the store; what is no job goes to a file of rejects.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::StoreHandle;
use super::tally::lock;
use crate::send::store::{Receipt, StoreError};
use crate::send::{ApiKey, Job, JobDefaults, wall_ms};

/// Lines of jobs, and where the others go.
pub(super) struct JobInput {
    lines: BufReader<Box<dyn Read + Send>>,
    rejects: Option<PathBuf>,
}

/// What has been read so far.
#[derive(Clone, Debug, Default)]
pub(super) struct InputCounts {
    /// Jobs that are new.
    pub(super) accepted: u64,
    /// Jobs that the store had already.
    pub(super) duplicates: u64,
    /// Lines that are no jobs.
    pub(super) rejected: u64,
    /// Where these are, in words.
    pub(super) rejects_location: String,
    /// No more will come.
    pub(super) is_complete: bool,
}

/// So many jobs, or bytes of lines, are submitted together.
const MAX_BATCH_JOBS: usize = 2000;
const MAX_BATCH_BYTES: usize = 4 << 20;
/// A longer line is no job: memory stays bounded.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// A message names so many keys.
const MAX_LISTED_KEYS: usize = 8;

impl JobInput {
    /// Opens the file of jobs.
    pub(super) fn open(jobs: &Path, out: Option<&Path>) -> Result<Self, String> {
        let from: Box<dyn Read + Send> = if jobs == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(jobs).map_err(|error| format!("cannot read {}: {error}", jobs.display()))?)
        };
        let rejects = out.map(|out| {
            let mut name = out.as_os_str().to_owned();
            name.push(".rejects");
            PathBuf::from(name)
        });
        // Those of an earlier run would be taken for this one's.
        if let Some(path) = &rejects
            && path.exists()
        {
            std::fs::remove_file(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        Ok(Self { lines: BufReader::with_capacity(256 * 1024, from), rejects })
    }
}

/// What reads.
pub(super) struct JobReader {
    pub(super) input: JobInput,
    pub(super) job_defaults: JobDefaults,
    pub(super) keys: Vec<ApiKey>,
    pub(super) store: StoreHandle,
    pub(super) counts: Arc<Mutex<InputCounts>>,
}

impl JobReader {
    /// Reads to the end.
    ///
    /// # Errors
    /// In one line, what keeps it from going on; what was submitted is safe.
    pub(super) fn run(mut self) -> Result<(), String> {
        let (mut batch, mut bytes, mut number) = (Vec::new(), 0, 0_u64);
        let mut rejects = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.input.lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let read = read.map_err(|error| format!("cannot read the jobs after line {number}: {error}"))?;
            if read == 0 {
                break;
            }
            number += 1;
            let text = std::str::from_utf8(&line).map_err(|_| "it is not UTF-8".to_owned());
            let job = text
                .and_then(|text| self.job_defaults.parse_line(number, text.trim_start_matches('\u{feff}'), wall_ms()));
            match job.and_then(|job| self.with_key(job)) {
                Ok(Some(job)) => {
                    bytes += line.len();
                    batch.push(job);
                }
                Ok(None) => {}
                Err(why) => self.reject(&mut rejects, number, &why, &line)?,
            }
            // Who writes slowly is not kept waiting for more.
            let is_last = !self.input.lines.buffer().contains(&b'\n');
            if batch.len() >= MAX_BATCH_JOBS || bytes >= MAX_BATCH_BYTES || is_last && !batch.is_empty() {
                self.submit(std::mem::take(&mut batch), number)?;
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            self.submit(batch, number)?;
        }
        lock(&self.counts).is_complete = true;
        Ok(())
    }

    /// A job whose key is there, if it names one.
    fn with_key(&self, mut job: Option<Job>) -> Result<Option<Job>, String> {
        let Some(hint) = job.as_mut().and_then(|job| job.key_hint.as_mut()) else { return Ok(job) };
        // The name is not repeated: it may be a secret that somebody has put into the wrong place.
        let Some(key) = self.keys.iter().find(|key| key.matches(hint)) else {
            let names: Vec<&str> = self.keys.iter().map(ApiKey::name).take(MAX_LISTED_KEYS).collect();
            let more = if self.keys.len() > MAX_LISTED_KEYS { ", ..." } else { "" };
            return Err(format!("it asks for a key that is not given; there are {}{more}", names.join(", ")));
        };
        key.name().clone_into(hint);
        Ok(job)
    }

    fn submit(&self, batch: Vec<Job>, number: u64) -> Result<(), String> {
        match self.store.submit(batch).wait() {
            Ok(receipts) => {
                let new = receipts.iter().filter(|receipt| matches!(receipt, Receipt::Accepted(_))).count() as u64;
                let mut taken = lock(&self.counts);
                taken.accepted += new;
                taken.duplicates += receipts.len() as u64 - new;
                Ok(())
            }
            Err(StoreError::NoSpace(_, accepted)) => {
                lock(&self.counts).accepted += accepted as u64;
                Err(format!(
                    "no space is left for the store; the jobs up to line {number} are not all in: run this again when there is room"
                ))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn reject(&self, file: &mut Option<File>, number: u64, why: &str, line: &[u8]) -> Result<(), String> {
        let mut taken = lock(&self.counts);
        taken.rejected += 1;
        let Some(path) = &self.input.rejects else {
            // The first says it; with a file they would all be there.
            if taken.rejected == 1 {
                taken.rejects_location = format!("line {number}: {why} (with --out all of them are in a file)");
            }
            return Ok(());
        };
        let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
        if file.is_none() {
            *file = Some(File::create(path).map_err(cannot)?);
            taken.rejects_location = path.display().to_string();
        }
        let text = String::from_utf8_lossy(line);
        let told = serde_json::json!({ "line": number, "reason": why, "text": text.trim_end_matches(['\n', '\r']) });
        file.as_mut().map_or(Ok(()), |file| writeln!(file, "{told}").map_err(cannot))
    }
}
