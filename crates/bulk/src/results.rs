//! Results file: a JSON line for each job at its end.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::StoreHandle;
use super::counters::SendStats;
use weir_machine::lock::lock;
use weir_send::api_key::fingerprint;
use weir_send::state::State;
use weir_send::{FinishedJob, JobEntry, Listener, SenderEvent};

/// Results file and counters of a run.
pub(super) struct ResultsFile {
    file: Option<File>,
    /// Length of the complete lines in the file, in bytes.
    length: u64,
    tally: Arc<Mutex<SendStats>>,
    buffer: Vec<u8>,
    /// Final states in the file of jobs that may have been sent before a crash, by fingerprint of their IDs.
    ended_before_crash: HashMap<u64, State>,
    /// Dropped with the listener, which shows that the sender has ended.
    _alive: Sender<()>,
}

/// Result line of one job; times in milliseconds since 1970 (docs/send.schema.json).
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

#[derive(Debug, Deserialize)]
struct ParsedResult<'a> {
    #[serde(borrow)]
    id: Option<std::borrow::Cow<'a, str>>,
    state: &'a str,
}

impl ResultsFile {
    /// Opens the file to append to it. A last line without an end is cut off: the store has not recorded the end of its
    /// job.
    pub(super) fn open(
        path: Option<&Path>,
        tally: Arc<Mutex<SendStats>>,
        store: &StoreHandle,
        alive: Sender<()>,
    ) -> Result<Self, String> {
        let mut results = Self {
            file: None,
            length: 0,
            tally,
            buffer: Vec::new(),
            ended_before_crash: HashMap::new(),
            _alive: alive,
        };
        let Some(path) = path else { return Ok(results) };
        let cannot = |error: io::Error| format!("cannot write {}: {error}", path.display());
        let file = File::options().read(true).append(true).create(true).open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_file() {
            let leased = store.counts().map_err(|error| error.to_string())?.jobs_in(State::Leased);
            results.length = results.read(&file, leased > 0).map_err(cannot)?;
        }
        results.file = Some(file);
        Ok(results)
    }

    /// Cuts an incomplete last line off; after a crash, loads the final states in the file.
    fn read(&mut self, file: &File, after_crash: bool) -> io::Result<u64> {
        let length = file.metadata()?.len();
        let mut complete = 0;
        if after_crash {
            let mut lines = BufReader::new(file);
            lines.seek(SeekFrom::Start(0))?;
            let mut line = Vec::new();
            while lines.read_until(b'\n', &mut line)? > 0 {
                if line.ends_with(b"\n") {
                    complete += line.len() as u64;
                    self.load_line(&line);
                }
                line.clear();
            }
        } else {
            complete = last_line_end(file, length)?;
        }
        if complete < length {
            file.set_len(complete)?;
        }
        Ok(complete)
    }

    fn load_line(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Ok(ParsedResult { id: Some(id), state }) = serde_json::from_str(text) else { return };
        if let Ok(state) = state.parse() {
            self.ended_before_crash.insert(fingerprint(id.as_bytes()), state);
        }
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

/// End of the last complete line, as offset in bytes.
fn last_line_end(mut file: &File, length: u64) -> io::Result<u64> {
    use io::Read;
    let mut end = length;
    let mut buffer = vec![0; 64 * 1024];
    while end > 0 {
        let begin = end.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..(end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

impl Listener for ResultsFile {
    fn on_events(&mut self, events: &[SenderEvent]) -> io::Result<()> {
        let tally = Arc::clone(&self.tally);
        let mut tally = lock(&tally);
        self.buffer.clear();
        for event in events {
            if let (SenderEvent::JobEnded(ended), true) = (event, self.file.is_some()) {
                self.write(ended, tally.keys());
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
        events.iter().for_each(|event| tally.record(event));
        Ok(())
    }

    fn reported_state(&mut self, entry: &JobEntry) -> Option<State> {
        self.ended_before_crash.get(&fingerprint(entry.job.id.as_ref()?.as_bytes())).copied()
    }
}
