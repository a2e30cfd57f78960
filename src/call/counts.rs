//! What is counted of calls and of attempts, by all event loops together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::decide::hedge::Why;
use crate::decide::policy::{Failure, Kind};

/// How calls ended.
#[derive(Debug, Default)]
pub struct CallCounts {
    won: AtomicU64,
    failed: AtomicU64,
    late: AtomicU64,
    gone: AtomicU64,
    suppressed: AtomicU64,
}

impl CallCounts {
    pub(super) fn ended(&self, how: CallEnd) {
        let counter = match how {
            CallEnd::Won => &self.won,
            CallEnd::Failed => &self.failed,
            CallEnd::Late => &self.late,
            CallEnd::Gone => &self.gone,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn suppressed(&self) {
        self.suppressed.fetch_add(1, Relaxed);
    }

    /// Each word for an end, and how many calls had it.
    pub fn ends(&self) -> [(&'static str, u64); 4] {
        let counters = [("won", &self.won), ("failed", &self.failed), ("late", &self.late), ("gone", &self.gone)];
        counters.map(|(word, counter)| (word, counter.load(Relaxed)))
    }

    /// Extra attempts that the budget did not allow.
    pub fn budget_refusals(&self) -> u64 {
        self.suppressed.load(Relaxed)
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallEnd {
    Won,
    Failed,
    Late,
    Gone,
}

/// What became of an upstream's attempts.
#[derive(Debug, Default)]
pub struct UpstreamCounts {
    sent: [AtomicU64; 4],
    won: AtomicU64,
    lost: AtomicU64,
    cancelled: AtomicU64,
    by_kind: [AtomicU64; Kind::ALL.len()],
    /// 1xx to 5xx, by their first digit.
    by_class: [AtomicU64; 5],
    in_flight: AtomicU64,
    waiting: AtomicU64,
    waited_ns: AtomicU64,
}

/// Why attempts are sent, in words, in the order of [`reason`].
const REASONS: [&str; 4] = ["first", "stage", "failure", "retry"];

fn reason(why: Why) -> usize {
    match why {
        Why::First => 0,
        Why::Stage(_) => 1,
        Why::Failure(_) => 2,
        Why::Retry(_) => 3,
    }
}

impl UpstreamCounts {
    pub(super) fn began(&self, why: Why) {
        self.sent[reason(why)].fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
    }

    pub(super) fn released(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    pub(super) fn won(&self) {
        self.won.fetch_add(1, Relaxed);
    }

    pub(super) fn failed(&self, failure: Failure) {
        self.lost.fetch_add(1, Relaxed);
        match failure {
            Failure::Kind(kind) => {
                let place = Kind::ALL.iter().position(|one| *one == kind);
                place.and_then(|place| self.by_kind.get(place))
            }
            Failure::Status(status) => self.by_class.get(usize::from(status / 100).wrapping_sub(1)),
        }
        .iter()
        .for_each(|counter| {
            counter.fetch_add(1, Relaxed);
        });
    }

    pub(super) fn cancelled(&self) {
        self.cancelled.fetch_add(1, Relaxed);
    }

    pub(super) fn waits(&self) {
        self.waiting.fetch_add(1, Relaxed);
    }

    pub(super) fn waited(&self, ns: u64) {
        self.waiting.fetch_sub(1, Relaxed);
        self.waited_ns.fetch_add(ns, Relaxed);
    }

    /// Attempts by why they were sent.
    pub fn sent(&self) -> [(&'static str, u64); 4] {
        std::array::from_fn(|i| (REASONS[i], self.sent[i].load(Relaxed)))
    }

    /// Attempts by what became of them: `won` is the answer of its call, `lost` is a failure, `cancelled` was not
    /// wanted any more.
    pub fn ends(&self) -> [(&'static str, u64); 3] {
        [("won", &self.won), ("lost", &self.lost), ("cancelled", &self.cancelled)]
            .map(|(word, counter)| (word, counter.load(Relaxed)))
    }

    /// Failures by kind, and by class of status.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let kinds = Kind::ALL.iter().zip(&self.by_kind).map(|(kind, counter)| (kind.name(), counter.load(Relaxed)));
        kinds.chain(CLASSES.into_iter().zip(&self.by_class).map(|(class, counter)| (class, counter.load(Relaxed))))
    }

    /// Attempts now, those that wait for a place aside.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Attempts that wait for a place now.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }

    /// How long attempts have waited for a place, all together, in seconds.
    pub fn waited_s(&self) -> f64 {
        self.waited_ns.load(Relaxed) as f64 / 1e9
    }
}
