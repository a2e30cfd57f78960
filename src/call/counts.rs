//! What is counted of calls and of attempts, by all event loops together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::decide::admit::{self, Priority};
use crate::decide::grpc::Code;
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
    refused: [[AtomicU64; Priority::ALL.len()]; admit::Why::ALL.len()],
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

    /// A call is not taken.
    pub(super) fn refused(&self, why: admit::Why, priority: Priority) {
        self.refused[why as usize][priority.index()].fetch_add(1, Relaxed);
    }

    /// Each word for an end, and how many calls had it.
    pub fn ends(&self) -> [(&'static str, u64); 5] {
        let counters = [("won", &self.won), ("failed", &self.failed), ("late", &self.late), ("gone", &self.gone)];
        let [won, failed, late, gone] = counters.map(|(word, counter)| (word, counter.load(Relaxed)));
        [won, failed, late, gone, ("refused", self.refusals().map(|(_, _, count)| count).sum())]
    }

    /// Calls that were not taken, by why and by how much they matter.
    pub fn refusals(&self) -> impl Iterator<Item = (admit::Why, Priority, u64)> {
        let of = |why: admit::Why| Priority::ALL.into_iter().map(move |priority| (why, priority));
        let both = admit::Why::ALL.into_iter().flat_map(of);
        both.map(|(why, priority)| (why, priority, self.refused[why as usize][priority.index()].load(Relaxed)))
    }

    /// Extra attempts that the budget did not allow, or that had no free place.
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
///
/// Every attempt that is sent ends once: those by [`Self::sent`] are those by [`Self::ends`], and those that have not
/// ended yet.
#[derive(Debug, Default)]
pub struct UpstreamCounts {
    sent: [AtomicU64; 4],
    won: AtomicU64,
    lost: AtomicU64,
    cancelled: AtomicU64,
    by_kind: [AtomicU64; Kind::ALL.len()],
    /// 1xx to 5xx, by their first digit.
    by_class: [AtomicU64; 5],
    by_grpc: [AtomicU64; 17],
    in_flight: AtomicU64,
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
        self.seen(failure);
    }

    /// A failure that came behind an answer that was passed on: it is told, though its attempt is not lost.
    pub(super) fn seen(&self, failure: Failure) {
        match failure {
            Failure::Kind(kind) => {
                let place = Kind::ALL.iter().position(|one| *one == kind);
                place.and_then(|place| self.by_kind.get(place))
            }
            Failure::Grpc(code) => self.by_grpc.get(usize::from(code.number())),
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

    /// Attempts by why they were sent.
    pub fn sent(&self) -> [(&'static str, u64); 4] {
        std::array::from_fn(|i| (REASONS[i], self.sent[i].load(Relaxed)))
    }

    /// Attempts by what became of them: `won` is the answer of its call, `lost` is a failure, `cancelled` was not
    /// wanted any more, because of another one's success, the call's deadline, or the caller's leaving.
    pub fn ends(&self) -> [(&'static str, u64); 3] {
        [("won", &self.won), ("lost", &self.lost), ("cancelled", &self.cancelled)]
            .map(|(word, counter)| (word, counter.load(Relaxed)))
    }

    /// Failures by kind, by class of status, and by code of gRPC.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let kinds = Kind::ALL.iter().zip(&self.by_kind).map(|(kind, counter)| (kind.name(), counter.load(Relaxed)));
        let classes = CLASSES.into_iter().zip(&self.by_class).map(|(class, counter)| (class, counter.load(Relaxed)));
        let codes = Code::all().zip(&self.by_grpc).map(|(code, counter)| (code.name(), counter.load(Relaxed)));
        kinds.chain(classes).chain(codes)
    }

    /// Attempts now, until the last byte of their answers.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }
}
