//! What was counted while jobs were sent, and the line that says where it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Queue;
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::measure::histogram::Histogram;
use crate::send::state::State;
use crate::send::store::Counts;
use crate::send::{News, Progress};

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
            News::Ended(ended) => {
                self.retried += u64::from(ended.tries.saturating_sub(1));
                match ended.state {
                    State::Done => {
                        self.done += 1;
                        let ms = u64::try_from(ended.at.0.saturating_sub(ended.entry.job.created.0)).unwrap_or(0);
                        self.response.record(Nanos::from_millis(ms));
                    }
                    State::Expired => self.expired += 1,
                    _ => self.graveyard += 1,
                }
            }
            News::KeyLost(key, why) => {
                if let Some(of_key) = self.per_key.get_mut(*key) {
                    of_key.lost = Some(why.clone());
                }
            }
        }
    }
}

/// Looks at the tally and the queue now and then.
pub(super) struct Watch {
    pub(super) tally: Arc<Mutex<Tally>>,
    store: Queue,
    clock: Clock,
    pub(super) counts: Counts,
    out: usize,
    looked: Nanos,
    /// The sum of queue sizes, and how many.
    sizes: (f64, u64),
    /// When, and how many were done, a second ago or more.
    before: (Nanos, u64),
    rate_per_s: f64,
}

const SECOND_MS: u64 = 1000;

impl Watch {
    pub(super) fn new(tally: Arc<Mutex<Tally>>, store: Queue, clock: Clock) -> Self {
        let counts = store.counts().unwrap_or_default();
        Self {
            tally,
            store,
            clock,
            counts,
            out: 0,
            looked: Nanos::ZERO,
            sizes: (0.0, 0),
            before: (Nanos::ZERO, 0),
            rate_per_s: 0.0,
        }
    }

    pub(super) fn look(&mut self, progress: &Progress) {
        let now = self.clock.now();
        self.out = progress.out;
        if now - self.looked < Nanos::from_millis(SECOND_MS) {
            return;
        }
        self.looked = now;
        self.look_at_store();
        self.sizes.0 += self.waiting() as f64;
        self.sizes.1 += 1;
        let done = lock(&self.tally).done;
        let (at, then) = self.before;
        self.rate_per_s = (done - then) as f64 / (now - at).as_secs_f64().max(1e-9);
        self.before = (now, done);
    }

    pub(super) fn look_at_store(&mut self) {
        self.counts = self.store.counts().unwrap_or(self.counts);
    }

    /// Jobs that are still to be delivered.
    pub(super) fn waiting(&self) -> u64 {
        self.counts.open()
    }

    pub(super) fn mean_waiting(&self) -> f64 {
        if self.sizes.1 == 0 { self.waiting() as f64 } else { self.sizes.0 / self.sizes.1 as f64 }
    }

    pub(super) fn elapsed(&self) -> Nanos {
        self.clock.now()
    }

    /// Jobs that have come to their end.
    pub(super) fn ended(&self) -> u64 {
        State::ALL.into_iter().filter(|state| !state.open()).map(|state| self.counts.of(state)).sum()
    }

    /// All jobs that are known of.
    pub(super) fn known(&self) -> u64 {
        self.ended() + self.waiting()
    }

    /// Where it is.
    pub(super) fn line(&self) -> String {
        let tally = lock(&self.tally);
        format!(
            "{:.0}s: {} done, {} failed, {} expired, {} in the graveyard; {:.1}/s, mean response {:.0} ms; queue {} (mean {:.0}), dead letters {}, out {}",
            self.elapsed().as_secs_f64(),
            tally.done,
            tally.failed,
            tally.expired,
            tally.graveyard,
            self.rate_per_s,
            tally.response.mean_ns() / 1e6,
            self.waiting(),
            self.mean_waiting(),
            self.counts.of(State::Dead),
            self.out
        )
    }
}

/// Whoever held it is gone, and what it holds is good.
pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
