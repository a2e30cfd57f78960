//! Counters of a run.

use super::failures::FailureCounts;
use super::tokens::TokenCounts;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_send::SenderEvent;
use weir_send::state::State;

/// Counters of jobs and requests.
#[derive(Debug)]
pub(super) struct SendStats {
    keys: Vec<String>,
    pub(super) per_key: Vec<KeySendStats>,
    pub(super) done: u64,
    pub(super) dead_lettered: u64,
    pub(super) expired: u64,
    /// Requests without success, also those of jobs that are delivered later.
    pub(super) failed: u64,
    /// Jobs that were not sent, since their results were in the file already.
    pub(super) in_results: u64,
    /// Of these, those without a mark of a send: new to the store.
    pub(super) in_results_unmarked: u64,
    /// Attempts after the first of a job.
    pub(super) retries: u64,
    /// Rejected requests: rate-limited (429), and with an overtaken nonce (400).
    pub(super) rejected_by_status: [u64; 2],
    /// From submission to response, of delivered jobs.
    pub(super) response_time: Histogram,
    /// From a send to its response.
    pub(super) service_time: Histogram,
    /// Delay of sends beyond what the limits allowed.
    pub(super) lateness: Histogram,
    /// Requests without success, by cause.
    pub(super) failures: FailureCounts,
    /// Tokens of all responses, if they are of language models.
    pub(super) tokens: Option<TokenCounts>,
}

/// Counters of one key's requests.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySendStats {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) rejected: u64,
    pub(super) disabled_reason: Option<String>,
}

impl SendStats {
    pub(super) fn new(keys: Vec<String>, failures: FailureCounts, tokens: Option<TokenCounts>) -> Self {
        Self {
            per_key: vec![KeySendStats::default(); keys.len()],
            keys,
            done: 0,
            dead_lettered: 0,
            expired: 0,
            failed: 0,
            in_results: 0,
            in_results_unmarked: 0,
            retries: 0,
            rejected_by_status: [0; 2],
            response_time: Histogram::precise(),
            service_time: Histogram::precise(),
            lateness: Histogram::precise(),
            failures,
            tokens,
        }
    }

    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    pub(super) fn record(&mut self, event: &SenderEvent) {
        match event {
            SenderEvent::AttemptEnded(attempt) => {
                self.retries += u64::from(attempt.is_retry);
                self.failures.record(attempt);
                // A response that failed its check is paid for, too.
                if let Some(tokens) = self.tokens.as_mut().filter(|_| !attempt.failure_body.is_empty()) {
                    tokens.record(&attempt.failure_body);
                }
                let Some(of_key) = self.per_key.get_mut(attempt.key) else { return };
                if attempt.succeeded {
                    of_key.done += 1;
                } else {
                    of_key.failed += 1;
                    self.failed += 1;
                }
                match attempt.outcome {
                    Ok(429) => {
                        of_key.rejected += 1;
                        self.rejected_by_status[0] += 1;
                    }
                    Ok(400) => self.rejected_by_status[1] += 1,
                    _ => {}
                }
                if let Some(late) = attempt.lateness {
                    self.lateness.record(late);
                }
                if attempt.outcome.is_ok() {
                    self.service_time.record(attempt.service_time);
                }
            }
            SenderEvent::JobEnded(ended) => match ended.state {
                State::Done => {
                    self.done += 1;
                    self.tokens.iter_mut().for_each(|tokens| tokens.record(&ended.body));
                    let ms = u64::try_from(ended.ended_at.0.saturating_sub(ended.entry.job.created_at.0)).unwrap_or(0);
                    self.response_time.record(Nanos::from_millis(ms));
                }
                State::Expired => self.expired += 1,
                _ => self.dead_lettered += 1,
            },
            SenderEvent::KeyUnusable(key, reason) => {
                if let Some(of_key) = self.per_key.get_mut(*key) {
                    of_key.disabled_reason = Some(reason.clone());
                }
            }
        }
    }
}
