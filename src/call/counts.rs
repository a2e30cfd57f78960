//! What is counted of calls and of attempts, by all event loops together.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::decide::admit::{self, Priority};
use crate::decide::grpc::Code;
use crate::decide::hedge::LaunchReason;
use crate::decide::policy::{AttemptFailure, FailureKind};

/// How calls ended.
#[derive(Debug, Default)]
pub struct CallCounts {
    won: AtomicU64,
    failed: AtomicU64,
    deadline_exceeded: AtomicU64,
    client_closed: AtomicU64,
    budget_exhausted: AtomicU64,
    rejected: [[AtomicU64; Priority::ALL.len()]; admit::RejectionReason::ALL.len()],
}

impl CallCounts {
    pub(super) fn ended(&self, how: CallOutcome) {
        let counter = match how {
            CallOutcome::Won => &self.won,
            CallOutcome::Failed => &self.failed,
            CallOutcome::DeadlineExceeded => &self.deadline_exceeded,
            CallOutcome::ClientClosed => &self.client_closed,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn count_budget_exhausted(&self) {
        self.budget_exhausted.fetch_add(1, Relaxed);
    }

    /// A call is not taken.
    pub(super) fn rejected(&self, why: admit::RejectionReason, priority: Priority) {
        self.rejected[why as usize][priority.index()].fetch_add(1, Relaxed);
    }

    /// Each word for an end, and how many calls had it.
    pub fn outcomes(&self) -> [(&'static str, u64); 5] {
        let counters = [
            ("won", &self.won),
            ("failed", &self.failed),
            ("late", &self.deadline_exceeded),
            ("gone", &self.client_closed),
        ];
        let [won, failed, late, gone] = counters.map(|(word, counter)| (word, counter.load(Relaxed)));
        [won, failed, late, gone, ("refused", self.rejections().map(|(_, _, count)| count).sum())]
    }

    /// Calls that were not taken, by why and by how much they matter.
    pub fn rejections(&self) -> impl Iterator<Item = (admit::RejectionReason, Priority, u64)> {
        let of = |why: admit::RejectionReason| Priority::ALL.into_iter().map(move |priority| (why, priority));
        let both = admit::RejectionReason::ALL.into_iter().flat_map(of);
        both.map(|(why, priority)| (why, priority, self.rejected[why as usize][priority.index()].load(Relaxed)))
    }

    /// Extra attempts that the budget did not allow, or that had no free place.
    pub fn budget_exhausted(&self) -> u64 {
        self.budget_exhausted.load(Relaxed)
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Won,
    Failed,
    DeadlineExceeded,
    ClientClosed,
}

/// What became of an upstream's attempts.
///
/// Every attempt that is sent ends once: those by [`Self::sent`] are those by [`Self::outcomes`], and those that have not
/// ended yet.
#[derive(Debug, Default)]
pub struct UpstreamCounts {
    sent: [AtomicU64; 4],
    won: AtomicU64,
    failed_attempts: AtomicU64,
    cancelled: AtomicU64,
    by_kind: [AtomicU64; FailureKind::ALL.len()],
    /// 1xx to 5xx, by their first digit.
    by_class: [AtomicU64; 5],
    by_grpc: [AtomicU64; 17],
    in_flight: AtomicU64,
}

/// Why attempts are sent, in words, in the order of [`reason_index`].
const LAUNCH_REASONS: [&str; 4] = ["first", "stage", "failure", "retry"];

fn reason_index(why: LaunchReason) -> usize {
    match why {
        LaunchReason::First => 0,
        LaunchReason::Stage(_) => 1,
        LaunchReason::Failure(_) => 2,
        LaunchReason::Retry(_) => 3,
    }
}

impl UpstreamCounts {
    pub(super) fn began(&self, why: LaunchReason) {
        self.sent[reason_index(why)].fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
    }

    pub(super) fn released(&self) {
        self.in_flight.fetch_sub(1, Relaxed);
    }

    pub(super) fn won(&self) {
        self.won.fetch_add(1, Relaxed);
    }

    pub(super) fn failed(&self, failure: AttemptFailure) {
        self.failed_attempts.fetch_add(1, Relaxed);
        self.count_failure(failure);
    }

    /// A failure that came behind an answer that was passed on: it is told, though its attempt is not lost.
    pub(super) fn count_failure(&self, failure: AttemptFailure) {
        match failure {
            AttemptFailure::Kind(kind) => {
                let place = FailureKind::ALL.iter().position(|one| *one == kind);
                place.and_then(|place| self.by_kind.get(place))
            }
            AttemptFailure::Grpc(code) => self.by_grpc.get(usize::from(code.number())),
            AttemptFailure::Status(status) => self.by_class.get(usize::from(status / 100).wrapping_sub(1)),
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
        std::array::from_fn(|i| (LAUNCH_REASONS[i], self.sent[i].load(Relaxed)))
    }

    /// Attempts by what became of them: `won` is the answer of its call, `lost` is a failure, `cancelled` was not
    /// wanted any more, because of another one's success, the call's deadline, or the caller's leaving.
    pub fn outcomes(&self) -> [(&'static str, u64); 3] {
        [("won", &self.won), ("lost", &self.failed_attempts), ("cancelled", &self.cancelled)]
            .map(|(word, counter)| (word, counter.load(Relaxed)))
    }

    /// Failures by kind, by class of status, and by code of gRPC.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let kinds =
            FailureKind::ALL.iter().zip(&self.by_kind).map(|(kind, counter)| (kind.name(), counter.load(Relaxed)));
        let classes =
            STATUS_CLASSES.into_iter().zip(&self.by_class).map(|(class, counter)| (class, counter.load(Relaxed)));
        let codes = Code::all().zip(&self.by_grpc).map(|(code, counter)| (code.name(), counter.load(Relaxed)));
        kinds.chain(classes).chain(codes)
    }

    /// Attempts now, until the last byte of their answers.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }
}
