//! Results file: a JSON line for each job at its end, in weir's own form or that of a provider.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::StoreHandle;
use super::appended_file::AppendedFile;
use super::batch::{self, ResultsForm};
use super::counters::SendStats;
use super::earlier_results::EarlierResults;
use weir_machine::lock::lock;
use weir_send::state::State;
use weir_send::{FinishedJob, JobEntry, Listener, SenderEvent};

/// Results file and counters of a run.
pub(super) struct ResultsFile {
    form: ResultsForm,
    output: Option<AppendedFile>,
    /// Lines of jobs that were not delivered, in a form that has a file of its own for them.
    errors: Option<AppendedFile>,
    tally: Arc<Mutex<SendStats>>,
    store: StoreHandle,
    earlier: EarlierResults,
    /// Dropped with the listener, which shows that the sender has ended.
    _alive: Sender<()>,
}

/// File beside the results for lines of another kind: `results.jsonl.errors`.
pub(super) fn path_beside(out: &Path, kind: &str) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(kind);
    PathBuf::from(name)
}

/// Result line of one job; times in milliseconds since 1970 (docs/schema/send.schema.json).
#[derive(Debug, Serialize)]
struct ResultLine<'a> {
    id: Option<&'a str>,
    state: &'static str,
    /// Status of the last response; null without one.
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a str>,
    attempts: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    maybe_sent: bool,
    last_key: Option<&'a str>,
    created_ms: i64,
    sent_ms: Option<i64>,
    ended_ms: i64,
    service_ms: Option<f64>,
}

impl ResultsFile {
    /// Opens the files to append to them. With `resends`, jobs that were submitted after their result are sent again.
    pub(super) fn open(
        path: Option<&Path>,
        form: ResultsForm,
        resends: bool,
        tally: Arc<Mutex<SendStats>>,
        store: &StoreHandle,
        alive: Sender<()>,
    ) -> Result<Self, String> {
        let mut earlier = EarlierResults::new(form, resends);
        let mut open = |path: &Path, is_errors: bool| {
            AppendedFile::open(path, !is_errors, |file| {
                earlier.read(file, is_errors).map_err(|why| format!("cannot add to {}: {why}", path.display()))
            })
        };
        let output = path.map(|path| open(path, false)).transpose()?;
        let errors = path.filter(|_| form.has_error_file()).map(|path| open(&path_beside(path, ".errors"), true));
        let errors = errors.transpose()?;
        earlier.finish();
        Ok(Self { form, output, errors, tally, store: Arc::clone(store), earlier, _alive: alive })
    }

    /// Adds the line of a job to its file.
    fn write(&mut self, ended: &FinishedJob, keys: &[String]) {
        let Some(output) = &mut self.output else { return };
        if self.form == ResultsForm::Weir {
            return write_line(ended, keys, &mut output.buffer);
        }
        let Some(errors) = &mut self.errors else {
            batch::write_line(self.form, ended, &mut output.buffer);
            return;
        };
        let mut line = Vec::new();
        let to = if batch::write_line(self.form, ended, &mut line) { errors } else { output };
        to.buffer.append(&mut line);
    }

    fn files(&mut self) -> impl Iterator<Item = &mut AppendedFile> {
        self.output.iter_mut().chain(&mut self.errors)
    }
}

/// Writes a result line of weir's own form.
fn write_line(ended: &FinishedJob, keys: &[String], to: &mut Vec<u8>) {
    let last = ended.last_attempt.as_ref();
    let text = std::str::from_utf8(&ended.body).ok();
    let has_response = ended.status().is_some();
    let line = ResultLine {
        id: ended.entry.job.id.as_deref(),
        state: ended.state.name(),
        status: ended.status(),
        body: text.filter(|_| has_response),
        body_base64: (has_response && text.is_none()).then(|| base64(&ended.body)),
        failure: ended.failure(),
        attempts: ended.attempts,
        maybe_sent: ended.entry.status.maybe_sent,
        last_key: last.and_then(|last| keys.get(last.key)).map(String::as_str),
        created_ms: ended.entry.job.created_at.0,
        sent_ms: last.map(|last| last.sent_at.0),
        ended_ms: ended.ended_at.0,
        service_ms: last.map(|last| (last.service_time.as_millis_f64() * 1e3).round() / 1e3),
    };
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(&mut *to, &line);
    to.push(b'\n');
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

impl Listener for ResultsFile {
    fn on_events(&mut self, events: &[SenderEvent]) -> io::Result<()> {
        let counts = Arc::clone(&self.tally);
        let mut counts = lock(&counts);
        for event in events {
            if let SenderEvent::JobEnded(ended) = event {
                self.write(ended, counts.keys());
            }
        }
        let written = self.files().try_for_each(AppendedFile::write);
        if written.is_err() {
            // The same events come again, so what was written is cut off in both files.
            self.files().for_each(AppendedFile::cut);
            return written;
        }
        self.files().for_each(AppendedFile::keep);
        events.iter().for_each(|event| counts.record(event));
        Ok(())
    }

    fn has_reports(&self) -> bool {
        !self.earlier.is_empty()
    }

    fn reported_state(&mut self, entry: &JobEntry) -> Option<State> {
        let state = self.earlier.state_of(entry, &*self.store)?;
        let mut counts = lock(&self.tally);
        counts.in_results += 1;
        counts.in_results_unmarked += u64::from(!entry.status.maybe_sent);
        Some(state)
    }
}
