//! Counters of calls and attempts, shared by all event loops.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::attempt_log::{AttemptStatus, CallTrace};
use super::latency_histogram::LatencyHistogram;
use weir_base::failure::FailureKind;
use weir_resilience::admission;
use weir_resilience::admission::Priority;
use weir_resilience::hedge::LaunchReason;
use weir_resilience::upstream::hosts::HostTotals;
use weir_retry::grpc::Code;
use weir_retry::policy::AttemptFailure;

/// Counters of one plan's calls, by outcome.
#[derive(Debug, Default)]
pub struct CallCounts {
    won: AtomicU64,
    failed: AtomicU64,
    deadline_exceeded: AtomicU64,
    client_closed: AtomicU64,
    budget_exhausted: AtomicU64,
    /// Times from a call's beginning to the head of its response, or its failure.
    pub latencies: LatencyHistogram,
    rejected: [[AtomicU64; Priority::ALL.len()]; admission::RejectionReason::ALL.len()],
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

    /// Counts a rejected call.
    pub(super) fn rejected(&self, why: admission::RejectionReason, priority: Priority) {
        self.rejected[why as usize][priority.index()].fetch_add(1, Relaxed);
    }

    /// Calls by outcome; the names are the values of the metrics' label.
    pub fn outcomes(&self) -> [(&'static str, u64); 5] {
        let counters = [
            ("succeeded", &self.won),
            ("failed", &self.failed),
            ("deadline_exceeded", &self.deadline_exceeded),
            ("client_closed", &self.client_closed),
        ];
        let [succeeded, failed, late, closed] = counters.map(|(name, counter)| (name, counter.load(Relaxed)));
        [succeeded, failed, late, closed, ("rejected", self.rejections().map(|(_, _, count)| count).sum())]
    }

    /// Rejected calls, by reason and priority.
    pub fn rejections(&self) -> impl Iterator<Item = (admission::RejectionReason, Priority, u64)> {
        let of = |why: admission::RejectionReason| Priority::ALL.into_iter().map(move |priority| (why, priority));
        let both = admission::RejectionReason::ALL.into_iter().flat_map(of);
        both.map(|(why, priority)| (why, priority, self.rejected[why as usize][priority.index()].load(Relaxed)))
    }

    /// Extra attempts skipped because the budget was spent or no slot was free.
    pub fn budget_exhausted(&self) -> u64 {
        self.budget_exhausted.load(Relaxed)
    }
}

/// Outcome of a call that was not rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    Won,
    Failed,
    DeadlineExceeded,
    ClientClosed,
}

/// Counters of an upstream's attempts.
///
/// Every attempt ends exactly once: the sum of [`Self::sent`] is that of [`Self::outcomes`] plus the attempts that have
/// not ended yet.
#[derive(Debug, Default)]
pub struct UpstreamCounts {
    sent: [AtomicU64; 4],
    won: AtomicU64,
    failed_attempts: AtomicU64,
    cancelled: AtomicU64,
    by_kind: [AtomicU64; FailureKind::ALL.len()],
    /// 1xx to 5xx, by the first digit.
    by_class: [AtomicU64; 5],
    by_grpc: [AtomicU64; 17],
    in_flight: AtomicU64,
    /// Hedges by outcome, in the order of [`Self::hedges`].
    hedges: [AtomicU64; 3],
    /// Retries by outcome, in the same order.
    retries: [AtomicU64; 3],
    /// Times from an attempt's beginning to its success or failure; without cancelled ones.
    pub latencies: LatencyHistogram,
}

/// Names of launch reasons, in the order of [`reason_index`].
const LAUNCH_REASONS: [&str; 4] = ["first", "stage", "failure", "retry"];

fn by_outcome([won, failed, cancelled]: &[AtomicU64; 3]) -> [(&'static str, u64); 3] {
    [("won", won), ("failed", failed), ("cancelled", cancelled)].map(|(name, counter)| (name, counter.load(Relaxed)))
}

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

    /// Counts a failure that came after a response was passed on, without counting its attempt as failed.
    pub(super) fn count_failure(&self, failure: AttemptFailure) {
        match failure {
            AttemptFailure::Kind(kind) => self.by_kind.get(kind as usize),
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

    /// Attempts by the reason of their launch.
    pub fn sent(&self) -> [(&'static str, u64); 4] {
        std::array::from_fn(|i| (LAUNCH_REASONS[i], self.sent[i].load(Relaxed)))
    }

    /// Attempts by outcome: `won` (the call's response), `failed`, or `cancelled` (another one won, the deadline
    /// passed, or the caller disconnected).
    pub fn outcomes(&self) -> [(&'static str, u64); 3] {
        [("won", &self.won), ("failed", &self.failed_attempts), ("cancelled", &self.cancelled)]
            .map(|(name, counter)| (name, counter.load(Relaxed)))
    }

    /// Attempts that have ended, without cancelled ones.
    pub(super) fn totals(&self) -> HostTotals {
        HostTotals { succeeded: self.won.load(Relaxed), failed: self.failed_attempts.load(Relaxed) }
    }

    /// Failures by kind, class of status, and gRPC code.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let kinds =
            FailureKind::ALL.iter().zip(&self.by_kind).map(|(kind, counter)| (kind.name(), counter.load(Relaxed)));
        let classes =
            STATUS_CLASSES.into_iter().zip(&self.by_class).map(|(class, counter)| (class, counter.load(Relaxed)));
        let codes = Code::all().zip(&self.by_grpc).map(|(code, counter)| (code.name(), counter.load(Relaxed)));
        kinds.chain(classes).chain(codes)
    }

    /// Counts the latencies of a call's attempts, its hedges and its retries; once, at its end.
    pub(super) fn count_ended(&self, trace: &CallTrace) {
        for attempt in &trace.attempts {
            let outcome = match &attempt.end {
                AttemptStatus::Won(_) => 0,
                AttemptStatus::Failed(..) => 1,
                AttemptStatus::Cancelled | AttemptStatus::Running => 2,
            };
            if outcome < 2 {
                self.latencies.record(attempt.ended - attempt.launched);
            }
            let extra = match attempt.reason {
                LaunchReason::First => None,
                LaunchReason::Stage(_) | LaunchReason::Failure(_) => Some(&self.hedges),
                LaunchReason::Retry(_) => Some(&self.retries),
            };
            if let Some(by_outcome) = extra {
                by_outcome[outcome].fetch_add(1, Relaxed);
            }
        }
    }

    /// Hedges of calls that have ended, by outcome: `won` (its response was the call's), `failed`, or `cancelled` (another
    /// attempt was faster).
    pub fn hedges(&self) -> [(&'static str, u64); 3] {
        by_outcome(&self.hedges)
    }

    /// Retries of calls that have ended, by outcome.
    pub fn retries(&self) -> [(&'static str, u64); 3] {
        by_outcome(&self.retries)
    }

    /// Attempts in flight, until the last byte of their responses.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }
}
