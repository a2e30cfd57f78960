//! Responses that a program has not decided about when their user goes on.

use super::super::Worker;
use super::UserRequests;
use crate::program::ReleasedRecord;
use crate::steps::StepExchange;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_scenario::plan::{FlowFailure, StepFindings, StepVerdict};

/// Response that a program has not decided about when its user goes on: it has left the system, and is not recorded.
#[derive(Debug)]
pub(super) struct HeldRecord {
    pub(super) user: u32,
    pub(super) outcome: Outcome,
    pub(super) exchange: Box<StepExchange>,
}

impl Worker<'_, UserRequests<'_>> {
    /// Holds a record back under a number.
    pub(super) fn hold(&mut self, number: u64, held: HeldRecord) {
        self.results.counters.leave(&held.outcome);
        if let Some(earlier) = self.flow.held.insert(number, held) {
            self.record_held(earlier, ReleasedRecord::default());
        }
    }

    /// Records what a program has decided about.
    #[inline]
    pub(super) fn release_decided(&mut self) {
        if self.flow.held.is_empty() {
            return;
        }
        for released in self.flow.table.flow.take_released() {
            if let Some(held) = self.flow.held.remove(&released.number) {
                self.record_held(held, released);
            }
        }
    }

    /// Records what is left, by its status: no decision follows.
    pub(super) fn release_all(&mut self) {
        self.release_decided();
        for (_, held) in std::mem::take(&mut self.flow.held) {
            self.record_held(held, ReleasedRecord::default());
        }
    }

    fn record_held(&mut self, held: HeldRecord, released: ReleasedRecord) {
        let HeldRecord { user, mut outcome, exchange } = held;
        let is_failed = !released.failures.is_empty() || released.is_success == Some(false);
        let is_failed_by_status = released.is_success.is_none() && outcome.end.status().is_some_and(|it| it >= 400);
        let findings = StepFindings {
            step: exchange.step,
            verdict: Some(if is_failed || is_failed_by_status { StepVerdict::Failed } else { StepVerdict::Passed }),
            failures: released.failures.into_iter().map(FlowFailure::Program).collect(),
            ..StepFindings::default()
        };
        if let Some(status) = outcome.end.status().filter(|_| is_failed || released.is_success.is_some()) {
            outcome.end = RequestEnd::Checked { status, passed: !is_failed };
        }
        // What the last call has found is still to be looked at.
        let of_last_call = std::mem::replace(&mut self.flow.table.findings, findings);
        self.record_left(user, &outcome, Some(&exchange));
        self.flow.table.findings = of_last_call;
        self.flow.table.exchanges.put(exchange);
    }
}
