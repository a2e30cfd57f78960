//! Results that the file had when it was opened: a job with a result has ended, even if its store has it as queued.
//!
//! The store lags behind the file at a crash, and may lag more with each further one; it may also have been emptied or
//! deleted. So each job that is claimed is looked up, not only those that were leased at the last crash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::Deserialize;

use weir_send::api_key::fingerprint;
use weir_send::state::State;
use weir_send::store::{JobSelector, REQUEUED_BY_HAND, Store};
use weir_send::{JobEntry, JobEvent, MAX_JOB_EVENTS, UnixMs};

/// Ends of jobs by the fingerprint of their IDs. Most are done, and cost two words each.
#[derive(Debug, Default)]
pub(super) struct EarlierResults {
    /// Fingerprints and times of the end of delivered jobs, sorted.
    done: Vec<(u64, UnixMs)>,
    /// Last other end of each job.
    failed: HashMap<u64, (State, UnixMs)>,
    /// Whether jobs that were submitted after their result are sent.
    resends: bool,
}

#[derive(Debug, Deserialize)]
struct ParsedResult<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    state: &'a str,
    #[serde(default)]
    ended_ms: i64,
}

impl EarlierResults {
    /// Reads the complete lines of a file; returns their length in bytes as well.
    pub(super) fn read(file: &File, resends: bool) -> io::Result<(Self, u64)> {
        let mut results = Self { resends, ..Self::default() };
        let (mut complete, mut line) = (0, Vec::new());
        let mut lines = BufReader::with_capacity(256 * 1024, file);
        lines.seek(SeekFrom::Start(0))?;
        while lines.read_until(b'\n', &mut line)? > 0 {
            if line.ends_with(b"\n") {
                complete += line.len() as u64;
                results.add(&line);
            }
            line.clear();
        }
        results.done.sort_unstable();
        Ok((results, complete))
    }

    fn add(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Ok(ParsedResult { id: Some(id), state, ended_ms }) = serde_json::from_str(text) else { return };
        let (id, ended_at) = (fingerprint(id.as_bytes()), UnixMs(ended_ms));
        match state.parse() {
            Ok(State::Done) => self.done.push((id, ended_at)),
            Ok(state) => drop(self.failed.insert(id, (state, ended_at))),
            Err(_) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.failed.is_empty()
    }

    /// Final state of a job by its result; None if it has none, or if it was requeued by hand since.
    pub(super) fn state_of(&self, entry: &JobEntry, store: &dyn Store) -> Option<State> {
        let id = fingerprint(entry.job.id.as_ref()?.as_bytes());
        let counts = |ended_at: UnixMs| !self.resends || ended_at >= entry.job.created_at;
        let first = self.done.partition_point(|(other, _)| *other < id);
        let mut of_job = self.done.iter().skip(first).take_while(|(other, _)| *other == id);
        if of_job.any(|(_, ended_at)| counts(*ended_at)) {
            return Some(State::Done);
        }
        let (state, ended_at) = self.failed.get(&id).copied().filter(|(_, ended_at)| counts(*ended_at))?;
        let detail = store.inspect(&JobSelector::Number(entry.number)).ok().flatten();
        let is_requeued = detail.is_some_and(|detail| is_requeued_since(ended_at, &detail.history));
        (!is_requeued).then_some(state)
    }
}

/// Whether the store knows this end of a job, so that the job is open because it is to be sent once more. Of the
/// earliest changes, a long history has none.
fn is_requeued_since(ended_at: UnixMs, history: &[JobEvent]) -> bool {
    let is_later = |event: &JobEvent| event.at >= ended_at;
    let is_end = |event: &JobEvent| matches!(event.state, State::DeadLettered | State::Expired);
    let is_full = history.len() >= MAX_JOB_EVENTS && history.iter().all(is_later);
    is_full || history.iter().any(|event| is_later(event) && (is_end(event) || event.reason == REQUEUED_BY_HAND))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use weir_send::store::{JobOrder, MemoryStore, QueueBounds};
    use weir_send::{Job, JobStatus};

    fn entry(id: &str, created_ms: i64) -> JobEntry {
        let status = JobStatus {
            state: State::Queued,
            changed_at: UnixMs(0),
            reason: String::new(),
            attempts: 0,
            maybe_sent: false,
            retry_at: None,
            last_attempt: None,
        };
        let job = Job { id: Some(id.into()), created_at: UnixMs(created_ms), ..Job::default() };
        JobEntry { number: 1, job, status }
    }

    fn results(text: &str, resends: bool) -> (EarlierResults, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        EarlierResults::read(&file, resends).unwrap()
    }

    const TEXT: &str = r#"{"id":"a","state":"done","ended_ms":50}
{"id":"b","state":"expired","ended_ms":50}
{"id":"b","state":"done","ended_ms":60}
{"id":"c","state":"dead_lettered","ended_ms":50}
nonsense
{"id":null,"state":"done"}
{"id":"d","state":"done"#;

    #[test]
    fn a_job_has_the_state_of_its_result() {
        let store = MemoryStore::new(QueueBounds::default(), JobOrder::Fifo);
        let (all, length) = results(TEXT, false);
        assert_eq!(length as usize, TEXT.rfind('\n').unwrap() + 1, "the last line is incomplete");
        let state = |id| all.state_of(&entry(id, 100), &store);
        assert_eq!([state("a"), state("b")], [Some(State::Done); 2]);
        assert_eq!([state("c"), state("d"), state("e")], [Some(State::DeadLettered), None, None]);
        assert!(results("", false).0.is_empty() && !all.is_empty());
    }

    #[test]
    fn with_resend_only_results_after_the_submission_count() {
        let store = MemoryStore::new(QueueBounds::default(), JobOrder::Fifo);
        let (all, _) = results(TEXT, true);
        assert_eq!(all.state_of(&entry("b", 55), &store), Some(State::Done));
        assert_eq!([all.state_of(&entry("b", 70), &store), all.state_of(&entry("c", 70), &store)], [None; 2]);
    }

    #[test]
    fn a_requeued_job_is_open_again() {
        let event = |at, state, reason: &str| JobEvent { at: UnixMs(at), state, reason: reason.into(), attempt: None };
        let crash = event(70, State::Queued, "the sender ended before sending it");
        assert!(!is_requeued_since(UnixMs(50), &[event(40, State::DeadLettered, "status 500"), crash.clone()]));
        assert!(is_requeued_since(UnixMs(50), &[event(50, State::DeadLettered, "status 500"), crash.clone()]));
        assert!(is_requeued_since(UnixMs(50), &[event(60, State::Queued, REQUEUED_BY_HAND), crash.clone()]));
        assert!(is_requeued_since(UnixMs(50), &vec![crash; MAX_JOB_EVENTS]));
    }
}
