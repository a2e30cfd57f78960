//! Counts of a trace as it is read: lines, and what is left out.

use std::collections::BTreeMap;

use weir_measure::run_trace::RunTrace;

/// Reason why a line or a request is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TraceOmission {
    /// Cannot be read.
    Broken,
    /// Longer than a mebibyte.
    TooLong,
    /// About something else than a request.
    NoRequest,
    /// Without tokens of a prompt or a response, as a request that has failed.
    NoTokens,
    /// Not among the sampled sessions.
    NotSampled,
    /// Too far out of order.
    OutOfOrder,
    /// Waits for a request that is not in its session, or too far before it.
    LostTurn,
}

impl TraceOmission {
    /// Name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::TooLong => "too_long",
            Self::NoRequest => "no_request",
            Self::NoTokens => "no_tokens",
            Self::NotSampled => "not_sampled",
            Self::OutOfOrder => "out_of_order",
            Self::LostTurn => "lost_turn",
        }
    }
}

/// Counts of a trace as it is read: ahead of what is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceTally {
    pub(super) lines: u64,
    left_out: BTreeMap<TraceOmission, u64>,
    first_broken: Option<String>,
}

impl TraceTally {
    /// Counts requests or lines that are left out.
    pub(super) fn leave_out(&mut self, omission: TraceOmission, count: u64) {
        if count > 0 {
            *self.left_out.entry(omission).or_default() += count;
        }
    }

    /// Counts a line that cannot be read; `describe` has its place and problem.
    pub(super) fn add_broken(&mut self, describe: impl FnOnce() -> String) {
        self.leave_out(TraceOmission::Broken, 1);
        if self.first_broken.is_none() {
            self.first_broken = Some(describe());
        }
    }

    /// Why a trace in this format has no request.
    pub(super) fn emptiness(&self, name: &str, format: &str) -> String {
        if let Some(first) = &self.first_broken {
            return format!("--trace: {first}; the format was taken to be {format}");
        }
        let most = self.left_out.iter().max_by_key(|(_, count)| **count);
        let left_out =
            most.map_or_else(String::new, |(omission, _)| format!("; most are left out: {}", omission.name()));
        format!("--trace: {name}: no request in {} lines{left_out}", self.lines)
    }

    /// Adds the counts to the part of a result.
    pub(super) fn add_to(&self, trace: &mut RunTrace) {
        trace.lines = self.lines;
        trace.left_out = self.left_out.iter().map(|(omission, n)| (omission.name().to_owned(), *n)).collect();
        trace.first_broken.clone_from(&self.first_broken);
    }
}
