//! What was counted while jobs were sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decide::Nanos;
use crate::measure::histogram::Histogram;
use crate::send::SenderEvent;
use crate::send::state::State;

/// What came of jobs and requests.
#[derive(Debug)]
pub(super) struct SendStats {
    keys: Vec<String>,
    pub(super) per_key: Vec<KeySendStats>,
    pub(super) done: u64,
    pub(super) dead_lettered: u64,
    pub(super) expired: u64,
    /// Requests without success.
    pub(super) failed: u64,
    /// Requests after the first of a job.
    pub(super) retries: u64,
    /// Refused for its rate, and for its nonce.
    pub(super) rejected_by_status: [u64; 2],
    /// From when a job was made to its answer; of those that were delivered.
    pub(super) response_time: Histogram,
    /// From the sending to the answer.
    pub(super) service_time: Histogram,
    /// How much later requests left than they could have.
    pub(super) lateness: Histogram,
}

/// What came of one key's requests.
#[derive(Clone, Debug, Default)]
pub(super) struct KeySendStats {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) rate_limited: u64,
    pub(super) unusable_reason: Option<String>,
}

impl SendStats {
    pub(super) fn new(keys: Vec<String>) -> Self {
        Self {
            per_key: vec![KeySendStats::default(); keys.len()],
            keys,
            done: 0,
            dead_lettered: 0,
            expired: 0,
            failed: 0,
            retries: 0,
            rejected_by_status: [0; 2],
            response_time: Histogram::precise(),
            service_time: Histogram::precise(),
            lateness: Histogram::precise(),
        }
    }

    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    pub(super) fn record(&mut self, news: &SenderEvent) {
        match news {
            SenderEvent::AttemptEnded(tried) => {
                self.retries += u64::from(tried.is_retry);
                let Some(of_key) = self.per_key.get_mut(tried.key) else { return };
                if tried.succeeded {
                    of_key.done += 1;
                } else {
                    of_key.failed += 1;
                    self.failed += 1;
                }
                match tried.outcome {
                    Ok(429) => {
                        of_key.rate_limited += 1;
                        self.rejected_by_status[0] += 1;
                    }
                    Ok(400) => self.rejected_by_status[1] += 1,
                    _ => {}
                }
                if let Some(late) = tried.lateness {
                    self.lateness.record(late);
                }
                if tried.outcome.is_ok() {
                    self.service_time.record(tried.service_time);
                }
            }
            SenderEvent::JobEnded(ended) => match ended.state {
                State::Done => {
                    self.done += 1;
                    let ms = u64::try_from(ended.ended_at.0.saturating_sub(ended.entry.job.created_at.0)).unwrap_or(0);
                    self.response_time.record(Nanos::from_millis(ms));
                }
                State::Expired => self.expired += 1,
                _ => self.dead_lettered += 1,
            },
            SenderEvent::KeyUnusable(key, why) => {
                if let Some(of_key) = self.per_key.get_mut(*key) {
                    of_key.unusable_reason = Some(why.clone());
                }
            }
        }
    }
}

/// Whoever held it is gone, and what it holds is good.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
