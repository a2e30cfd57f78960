//! Results that the file had when it was opened: a job with a result has ended, even if its store has it as queued.
//!
//! The store lags behind the file at a crash, and may lag more with each further one; it may also have been emptied or
//! deleted. So each job that is claimed is looked up, not only those that were leased at the last crash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::batch::ResultsForm;
use weir_send::api_key::fingerprint;
use weir_send::state::State;
use weir_send::store::{JobSelector, REQUEUED_BY_HAND, Store};
use weir_send::{JobEntry, JobEvent, MAX_JOB_EVENTS, UnixMs};

/// Ends of jobs by the fingerprint of their IDs. Most are done, and cost two words each.
#[derive(Debug, Default)]
pub(super) struct EarlierResults {
    form: ResultsForm,
    /// Fingerprints and times of the end of delivered jobs, sorted.
    done: Vec<(u64, UnixMs)>,
    /// Other ends of each job.
    failed: HashMap<u64, FailedResults>,
    /// Whether jobs that were submitted after their result are sent.
    resends: bool,
}

/// Results of a job that was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FailedResults {
    /// State and time of the last one.
    state: State,
    ended_at: UnixMs,
    count: usize,
}

/// Line of results, in any form.
#[derive(Debug, Deserialize)]
struct ParsedResult<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    custom_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    state: Option<Cow<'a, str>>,
    #[serde(default)]
    ended_ms: i64,
    response: Option<IgnoredAny>,
    #[serde(borrow)]
    error: Option<ParsedError<'a>>,
    #[serde(borrow)]
    result: Option<ParsedBatchResult<'a>>,
}

#[derive(Debug, Deserialize)]
struct ParsedError<'a> {
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct ParsedBatchResult<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

impl ParsedResult<'_> {
    /// Form of the line; None for other lines.
    fn form(&self) -> Option<ResultsForm> {
        match (&self.custom_id, &self.result) {
            (Some(_), Some(_)) => Some(ResultsForm::AnthropicBatch),
            (Some(_), None) => (self.response.is_some() || self.error.is_some()).then_some(ResultsForm::OpenAiBatch),
            (None, _) => (self.id.is_some() && self.state.is_some()).then_some(ResultsForm::Weir),
        }
    }

    /// Final state of the job.
    fn state(&self, form: ResultsForm, is_errors: bool) -> Option<State> {
        let is = |text: &Option<Cow<'_, str>>, expected| text.as_deref() == Some(expected);
        Some(match form {
            ResultsForm::Weir => self.state.as_deref()?.parse().ok()?,
            ResultsForm::OpenAiBatch if !is_errors => State::Done,
            ResultsForm::OpenAiBatch => match &self.error {
                Some(error) if is(&error.code, "batch_expired") => State::Expired,
                _ => State::DeadLettered,
            },
            ResultsForm::AnthropicBatch => match &*self.result.as_ref()?.kind {
                "succeeded" => State::Done,
                "expired" => State::Expired,
                _ => State::DeadLettered,
            },
        })
    }
}

impl EarlierResults {
    pub(super) fn new(form: ResultsForm, resends: bool) -> Self {
        Self { form, resends, ..Self::default() }
    }

    /// Adds the complete lines of a file; returns their length in bytes.
    ///
    /// # Errors
    /// The file cannot be read, or has results of another form.
    pub(super) fn read(&mut self, file: &File, is_errors: bool) -> Result<u64, String> {
        let (mut complete, mut number, mut line) = (0, 0_u64, Vec::new());
        let mut lines = BufReader::with_capacity(256 * 1024, file);
        lines.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
        while lines.read_until(b'\n', &mut line).map_err(|error| error.to_string())? > 0 {
            number += 1;
            if line.ends_with(b"\n") {
                complete += line.len() as u64;
                if let Some(other) = self.add(&line, is_errors) {
                    return Err(format!(
                        "line {number} is a result in the form {}, and not {}; give another --out, or --results {}",
                        other.name(),
                        self.form.name(),
                        other.name()
                    ));
                }
            }
            line.clear();
        }
        Ok(complete)
    }

    /// After all files.
    pub(super) fn finish(&mut self) {
        self.done.sort_unstable();
    }

    /// Adds a line; returns its form if it is another one.
    fn add(&mut self, line: &[u8], is_errors: bool) -> Option<ResultsForm> {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let parsed: ParsedResult<'_> = serde_json::from_str(text).ok()?;
        let form = parsed.form()?;
        if form != self.form {
            return Some(form);
        }
        let id = fingerprint(parsed.custom_id.as_ref().or(parsed.id.as_ref())?.as_bytes());
        let ended_at = UnixMs(parsed.ended_ms);
        match parsed.state(form, is_errors)? {
            State::Done => self.done.push((id, ended_at)),
            state => {
                let count = self.failed.get(&id).map_or(0, |failed| failed.count) + 1;
                self.failed.insert(id, FailedResults { state, ended_at, count });
            }
        }
        None
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
        let failed = self.failed.get(&id).copied().filter(|failed| counts(failed.ended_at))?;
        let detail = store.inspect(&JobSelector::Number(entry.number)).ok().flatten();
        let history = detail.map(|detail| detail.history).unwrap_or_default();
        let is_requeued = match self.form {
            ResultsForm::Weir => is_requeued_since(failed.ended_at, &history),
            // These results have no times.
            ResultsForm::OpenAiBatch | ResultsForm::AnthropicBatch => is_requeued_after(failed.count, &history),
        };
        (!is_requeued).then_some(failed.state)
    }
}

/// Whether the store knows this end of a job, so that the job is open because it is to be sent once more. Of the
/// earliest changes, a long history has none.
fn is_requeued_since(ended_at: UnixMs, history: &[JobEvent]) -> bool {
    let is_later = |event: &JobEvent| event.at >= ended_at;
    let is_full = history.len() >= MAX_JOB_EVENTS && history.iter().all(is_later);
    is_full || history.iter().any(|event| is_later(event) && (is_end(event) || event.reason == REQUEUED_BY_HAND))
}

/// Whether the store knows as many ends of a job as the file has results of it.
fn is_requeued_after(results: usize, history: &[JobEvent]) -> bool {
    let ends = history.iter().filter(|event| is_end(event)).count();
    let requeues = history.iter().filter(|event| event.reason == REQUEUED_BY_HAND).count();
    history.len() >= MAX_JOB_EVENTS || ends.max(requeues) >= results
}

fn is_end(event: &JobEvent) -> bool {
    matches!(event.state, State::DeadLettered | State::Expired)
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
        read(ResultsForm::Weir, resends, &[(text, false)]).unwrap()
    }

    fn read(form: ResultsForm, resends: bool, files: &[(&str, bool)]) -> Result<(EarlierResults, u64), String> {
        let (mut results, mut length) = (EarlierResults::new(form, resends), 0);
        for (text, is_errors) in files {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            length += results.read(&file, *is_errors)?;
        }
        results.finish();
        Ok((results, length))
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

    const OUTPUT: &str = r#"{"id":"batch_req_1","custom_id":"a","response":{"status_code":200,"request_id":"r","body":{}},"error":null}
"#;
    const ERRORS: &str = r#"{"id":"batch_req_2","custom_id":"b","response":{"status_code":400,"request_id":"r","body":{}},"error":null}
{"id":"batch_req_3","custom_id":"c","response":null,"error":{"code":"batch_expired","message":"m"}}
"#;
    const ANTHROPIC: &str = r#"{"custom_id":"a","result":{"type":"succeeded","message":{"type":"message"}}}
{"custom_id":"b","result":{"type":"errored","error":{"type":"error","error":{"type":"api_error","message":"m"}}}}
{"custom_id":"c","result":{"type":"expired"}}
"#;

    #[test]
    fn results_of_a_provider_have_the_states_of_their_files_and_types() {
        let store = MemoryStore::new(QueueBounds::default(), JobOrder::Fifo);
        for (form, files) in [
            (ResultsForm::OpenAiBatch, &[(OUTPUT, false), (ERRORS, true)][..]),
            (ResultsForm::AnthropicBatch, &[(ANTHROPIC, false)]),
        ] {
            let (all, length) = read(form, false, files).unwrap();
            assert_eq!(length as usize, files.iter().map(|(text, _)| text.len()).sum::<usize>());
            let states = ["a", "b", "c", "d"].map(|id| all.state_of(&entry(id, 100), &store));
            assert_eq!(states, [Some(State::Done), Some(State::DeadLettered), Some(State::Expired), None], "{form:?}");
        }
    }

    #[test]
    fn results_of_another_form_are_an_error() {
        let forms = [ResultsForm::Weir, ResultsForm::OpenAiBatch, ResultsForm::AnthropicBatch];
        for (form, text) in forms.into_iter().zip([TEXT, OUTPUT, ANTHROPIC]) {
            for other in forms {
                let found = read(other, false, &[(text, false)]);
                assert_eq!(found.is_ok(), form == other, "{form:?} as {other:?}");
                if let Err(why) = found {
                    assert!(why.starts_with("line 1 is ") && why.contains(form.name()), "{why}");
                }
            }
        }
    }

    #[test]
    fn without_times_a_job_is_requeued_when_the_store_has_all_its_ends() {
        let end = JobEvent { at: UnixMs(1), state: State::DeadLettered, reason: "status 400".into(), attempt: None };
        let by_hand = JobEvent { state: State::Queued, reason: REQUEUED_BY_HAND.into(), ..end.clone() };
        assert!(!is_requeued_after(1, &[]), "a crash before the end was recorded");
        assert!(is_requeued_after(1, &[end.clone(), by_hand.clone()]));
        assert!(!is_requeued_after(2, &[end.clone(), by_hand]), "a crash after the second result");
        assert!(is_requeued_after(9, &vec![end; MAX_JOB_EVENTS]));
    }
}
