//! Reads jobs line by line into the store; invalid lines go to a file of their own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::StoreHandle;
use super::batch::{BatchLines, ResultsForm};
use super::results::path_beside;
use weir_machine::input_file::{self, FileIdentity};
use weir_machine::lock::lock;
use weir_machine::private_file::private_options;
use weir_send::store::{Receipt, StoreError};
use weir_send::{ApiKey, Job, JobDefaults, wall_ms};

/// Lines of jobs, and the file for invalid ones.
pub(super) struct JobInput {
    lines: BufReader<Box<dyn Read + Send>>,
    /// Name of the file for messages.
    name: String,
    invalid_path: Option<PathBuf>,
}

/// Counts of the lines read so far.
#[derive(Clone, Debug, Default)]
pub struct InputCounts {
    /// New jobs.
    pub accepted: u64,
    /// Jobs that were in the store already.
    pub duplicates: u64,
    /// Lines that are not valid jobs.
    pub invalid: u64,
    /// Path of the file with the invalid lines, or number and error of the first one.
    pub invalid_location: String,
    /// The input has ended.
    pub is_complete: bool,
    /// Notes about jobs that are probably meant otherwise, not reported yet.
    pub(super) notes: Vec<String>,
}

/// Bounds of a batch that is submitted at once, in jobs and bytes of lines.
const MAX_BATCH_JOBS: usize = 2000;
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Longer lines are invalid, which bounds memory.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// API keys named in a message.
const MAX_LISTED_KEYS: usize = 8;

impl JobInput {
    /// Opens the file of jobs; removes the invalid lines of an earlier run.
    pub(super) fn open(jobs: &Path, out: Option<&Path>, form: ResultsForm) -> Result<Self, String> {
        let from: Box<dyn Read + Send> = if jobs == Path::new("-") {
            Box::new(io::stdin())
        } else {
            Box::new(input_file::open(jobs).map_err(|error| format!("cannot read {}: {error}", jobs.display()))?)
        };
        let invalid_path = out.map(|out| path_beside(out, ".invalid"));
        let errors_path = out.filter(|_| form.has_error_file()).map(|out| path_beside(out, ".errors"));
        for path in out.into_iter().chain(invalid_path.as_deref()).chain(errors_path.as_deref()) {
            if FileIdentity::of_path(path).is_some_and(FileIdentity::is_input) {
                return Err(format!("--out would write over {}, which is an input; give another file", path.display()));
            }
        }
        if let Some(path) = &invalid_path
            && path.exists()
        {
            std::fs::remove_file(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        let name = if jobs == Path::new("-") { "stdin".to_owned() } else { jobs.display().to_string() };
        Ok(Self { lines: BufReader::with_capacity(256 * 1024, from), name, invalid_path })
    }
}

/// Kinds of jobs that were noted already; each is noted once.
#[derive(Debug, Default)]
struct NotedJobs {
    has_literal_field: bool,
    has_left_out: bool,
}

impl NotedJobs {
    /// Note about a field in a job, which is data.
    fn literal_field(&mut self, number: u64, job: &Job) -> Option<String> {
        let place = if self.has_literal_field { None } else { job.request.literal_field() }?;
        self.has_literal_field = true;
        let remedy = if place == "URL" { "give --url-fields to have it filled in" } else { "give it with --header" };
        Some(format!("line {number}: the {place} has a field in braces, which is sent as it is; {remedy}"))
    }

    /// Note about a credential that the host of a job does not get.
    fn left_out(&mut self, number: u64, job: &Job, defaults: &JobDefaults) -> Option<String> {
        let name = if self.has_left_out { None } else { defaults.credential_left_out(&job.request) }?;
        self.has_left_out = true;
        let host = job.request.host();
        Some(format!("line {number}: {host} does not get --header '{name}', a credential; give --key-host {host}"))
    }
}

/// Reader of the jobs, on a thread of its own.
pub(super) struct JobReader {
    pub(super) input: JobInput,
    pub(super) job_defaults: JobDefaults,
    /// Parser of lines in a provider's form; None for weir's own.
    pub(super) batch: Option<BatchLines>,
    pub(super) keys: Vec<ApiKey>,
    pub(super) store: StoreHandle,
    pub(super) counts: Arc<Mutex<InputCounts>>,
}

impl JobReader {
    /// Reads to the end.
    ///
    /// # Errors
    /// One line of text; jobs submitted before are safe.
    pub(super) fn run(mut self) -> Result<(), String> {
        let (mut batch, mut bytes, mut number) = (Vec::new(), 0, 0_u64);
        let mut noted = NotedJobs::default();
        let mut invalid_file = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.input.lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let read = read.map_err(|error| format!("cannot read the jobs after line {number}: {error}"))?;
            if read == 0 {
                break;
            }
            number += 1;
            let text = std::str::from_utf8(&line).map_err(|_| "invalid UTF-8".to_owned());
            let job = text.and_then(|text| self.parse_line(number, text.trim_start_matches('\u{feff}')));
            match job.and_then(|job| self.with_key(job)) {
                Ok(Some(job)) => {
                    bytes += line.len();
                    let notes = [noted.literal_field(number, &job), noted.left_out(number, &job, &self.job_defaults)];
                    for note in notes.into_iter().flatten() {
                        lock(&self.counts).notes.push(note);
                    }
                    batch.push(job);
                }
                Ok(None) => {}
                Err(reason) => self.add_invalid(&mut invalid_file, number, &reason, &line)?,
            }
            // A slow stream is submitted line by line.
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

    fn parse_line(&mut self, number: u64, text: &str) -> Result<Option<Job>, String> {
        match &mut self.batch {
            Some(batch) => batch.parse(number, text, &self.job_defaults, wall_ms()),
            None => self.job_defaults.parse_line(number, text, wall_ms()),
        }
    }

    /// Job with the name of its pinned key; an error if that key is missing.
    fn with_key(&self, mut job: Option<Job>) -> Result<Option<Job>, String> {
        let Some(hint) = job.as_mut().and_then(|job| job.key_hint.as_mut()) else { return Ok(job) };
        // The value is not printed: it may be a key itself by mistake.
        let Some(key) = self.keys.iter().find(|key| key.matches(hint)) else {
            let names: Vec<&str> = self.keys.iter().map(ApiKey::name).take(MAX_LISTED_KEYS).collect();
            let more = if self.keys.len() > MAX_LISTED_KEYS { ", ..." } else { "" };
            return Err(format!("unknown pinned_key; choose {}{more}", names.join(", ")));
        };
        key.name().clone_into(hint);
        Ok(job)
    }

    fn submit(&self, batch: Vec<Job>, number: u64) -> Result<(), String> {
        match self.store.submit(batch).wait() {
            Ok(receipts) => {
                let new = receipts.iter().filter(|receipt| matches!(receipt, Receipt::Accepted(_))).count() as u64;
                let mut counts = lock(&self.counts);
                counts.accepted += new;
                counts.duplicates += receipts.len() as u64 - new;
                Ok(())
            }
            Err(StoreError::NoSpace(_, accepted)) => {
                lock(&self.counts).accepted += accepted as u64;
                Err(format!(
                    "no space left for the store; not all jobs up to line {number} are accepted: run this again when \
                     there is space"
                ))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn add_invalid(&self, file: &mut Option<File>, number: u64, reason: &str, line: &[u8]) -> Result<(), String> {
        let mut counts = lock(&self.counts);
        counts.invalid += 1;
        // A provider would reject the whole file, so that the first mistake is worth more than a number at the end.
        if self.batch.is_some() && counts.invalid == 1 {
            let note = format!("{}, line {number}: {reason}; this line is not sent", self.input.name);
            counts.notes.push(note);
        }
        let Some(path) = &self.input.invalid_path else {
            // Without a file only the first one is reported.
            if counts.invalid == 1 {
                counts.invalid_location = format!("line {number}: {reason} (with --out all of them are in a file)");
            }
            return Ok(());
        };
        let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
        if file.is_none() {
            // Its lines may have credentials.
            *file = Some(private_options().write(true).create(true).truncate(true).open(path).map_err(cannot)?);
            counts.invalid_location = path.display().to_string();
        }
        let text = String::from_utf8_lossy(line);
        let entry =
            serde_json::json!({ "line": number, "reason": reason, "text": text.trim_end_matches(['\n', '\r']) });
        file.as_mut().map_or(Ok(()), |file| writeln!(file, "{entry}").map_err(cannot))
    }
}
