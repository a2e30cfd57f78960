//! What was counted while jobs were sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decide::Nanos;
use crate::measure::histogram::Histogram;
use crate::send::News;
use crate::send::state::State;

/// What came of jobs and requests.
#[derive(Debug)]
pub(super) struct Tally {
    keys: Vec<String>,
    pub(super) per_key: Vec<OfKey>,
    pub(super) done: u64,
    pub(super) graveyard: u64,
    pub(super) expired: u64,
    /// Requests without success.
    pub(super) failed: u64,
    /// Requests after the first of a job.
    pub(super) retried: u64,
    /// Refused for its rate, and for its nonce.
    pub(super) refused: [u64; 2],
    /// From when a job was made to its answer; of those that were delivered.
    pub(super) response: Histogram,
    /// From the sending to the answer.
    pub(super) service: Histogram,
    /// How much later requests left than they could have.
    pub(super) late: Histogram,
}

/// What came of one key's requests.
#[derive(Clone, Debug, Default)]
pub(super) struct OfKey {
    pub(super) done: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    pub(super) lost: Option<String>,
}

impl Tally {
    pub(super) fn new(keys: Vec<String>) -> Self {
        Self {
            per_key: vec![OfKey::default(); keys.len()],
            keys,
            done: 0,
            graveyard: 0,
            expired: 0,
            failed: 0,
            retried: 0,
            refused: [0; 2],
            response: Histogram::precise(),
            service: Histogram::precise(),
            late: Histogram::precise(),
        }
    }

    pub(super) fn keys(&self) -> &[String] {
        &self.keys
    }

    pub(super) fn count(&mut self, news: &News) {
        match news {
            News::Tried(tried) => {
                self.retried += u64::from(tried.again);
                let Some(of_key) = self.per_key.get_mut(tried.key) else { return };
                if tried.done {
                    of_key.done += 1;
                } else {
                    of_key.failed += 1;
                    self.failed += 1;
                }
                match tried.outcome {
                    Ok(429) => {
                        of_key.refused += 1;
                        self.refused[0] += 1;
                    }
                    Ok(400) => self.refused[1] += 1,
                    _ => {}
                }
                if let Some(late) = tried.late {
                    self.late.record(late);
                }
                if tried.outcome.is_ok() {
                    self.service.record(tried.took);
                }
            }
            News::Ended(ended) => match ended.state {
                State::Done => {
                    self.done += 1;
                    let ms = u64::try_from(ended.at.0.saturating_sub(ended.entry.job.created.0)).unwrap_or(0);
                    self.response.record(Nanos::from_millis(ms));
                }
                State::Expired => self.expired += 1,
                _ => self.graveyard += 1,
            },
            News::KeyLost(key, why) => {
                if let Some(of_key) = self.per_key.get_mut(*key) {
                    of_key.lost = Some(why.clone());
                }
            }
        }
    }
}

/// Whoever held it is gone, and what it holds is good.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
