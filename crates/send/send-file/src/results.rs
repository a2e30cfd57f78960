//! Results file: a JSON line for each job at its end.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::StoreHandle;
use super::counters::SendStats;
use super::earlier_results::EarlierResults;
use weir_machine::lock::lock;
use weir_machine::private_file::private_options;
use weir_send::state::State;
use weir_send::{FinishedJob, JobEntry, Listener, SenderEvent};

/// Results file and counters of a run.
pub(super) struct ResultsFile {
    file: Option<File>,
    /// Length of the complete lines in the file, in bytes.
    length: u64,
    tally: Arc<Mutex<SendStats>>,
    buffer: Vec<u8>,
    store: StoreHandle,
    earlier: EarlierResults,
    /// Dropped with the listener, which shows that the sender has ended.
    _alive: Sender<()>,
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
    /// Opens the file to append to it. A last line without an end is cut off: the store has not recorded the end of its
    /// job. A new file is private, since responses may have secrets. With `resends`, jobs that were submitted after
    /// their result are sent again.
    pub(super) fn open(
        path: Option<&Path>,
        resends: bool,
        tally: Arc<Mutex<SendStats>>,
        store: &StoreHandle,
        alive: Sender<()>,
    ) -> Result<Self, String> {
        let mut results = Self {
            file: None,
            length: 0,
            tally,
            buffer: Vec::new(),
            store: Arc::clone(store),
            earlier: EarlierResults::default(),
            _alive: alive,
        };
        let Some(path) = path else { return Ok(results) };
        let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let file = private_options().read(true).append(true).create(true).open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_file() {
            (results.earlier, results.length) = EarlierResults::read(&file, resends).map_err(cannot)?;
            if results.length < metadata.len() {
                file.set_len(results.length).map_err(cannot)?;
            }
        }
        results.file = Some(file);
        Ok(results)
    }

    fn write(&mut self, ended: &FinishedJob, keys: &[String]) {
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
        let _ = serde_json::to_writer(&mut self.buffer, &line);
        self.buffer.push(b'\n');
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

impl Listener for ResultsFile {
    fn on_events(&mut self, events: &[SenderEvent]) -> io::Result<()> {
        let counts = Arc::clone(&self.tally);
        let mut counts = lock(&counts);
        self.buffer.clear();
        for event in events {
            if let (SenderEvent::JobEnded(ended), true) = (event, self.file.is_some()) {
                self.write(ended, counts.keys());
            }
        }
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.buffer)
        {
            // The same events come again, so a partial write is cut off; a pipe cannot be cut.
            let _ = file.set_len(self.length);
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
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
