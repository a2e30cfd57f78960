//! Counts of a log: lines, requests by method and status, and omitted lines by reason.

use std::collections::BTreeMap;

use crate::{LineOmission, TimedRecord};
use weir_measure::run_replay::RunReplay;

/// Number of methods and of statuses that are counted by name.
const MAX_NAMES: usize = 100;
/// Name of all beyond.
const OTHER_NAMES: &str = "other";

/// Counts of a log's lines: sent, filtered out, malformed.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogTally {
    pub(crate) lines: u64,
    requests: u64,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    methods: BTreeMap<Box<str>, u64>,
    statuses: BTreeMap<Option<u16>, u64>,
    left_out: BTreeMap<LineOmission, u64>,
    first_broken: Option<String>,
}

impl LogTally {
    /// Counts a request that is sent.
    pub(crate) fn add(&mut self, timed: &TimedRecord) {
        self.requests += 1;
        self.first_ns.get_or_insert(timed.start_ns);
        self.last_ns = Some(timed.start_ns);
        let has_room = self.methods.len() < MAX_NAMES;
        match self.methods.get_mut(&timed.record.method) {
            Some(count) => *count += 1,
            None if has_room => drop(self.methods.insert(timed.record.method.clone(), 1)),
            None => *self.methods.entry(OTHER_NAMES.into()).or_default() += 1,
        }
        *self.statuses.entry(timed.record.status).or_default() += 1;
    }

    /// Counts a line that is left out.
    pub(crate) fn leave_out(&mut self, omission: LineOmission) {
        *self.left_out.entry(omission).or_default() += 1;
    }

    /// Counts a line that cannot be read; `describe` has its place and problem.
    pub(crate) fn add_broken(&mut self, describe: impl FnOnce() -> String) {
        self.leave_out(LineOmission::Broken);
        if self.first_broken.is_none() {
            self.first_broken = Some(describe());
        }
    }

    /// Sets how many lines were too far out of order.
    pub(crate) fn set_out_of_order(&mut self, (omission, count): (LineOmission, u64)) {
        if count > 0 {
            self.left_out.insert(omission, count);
        }
    }

    /// First broken line, with its place and problem.
    pub(crate) fn first_broken(&self) -> Option<&str> {
        self.first_broken.as_deref()
    }

    /// Why most of the lines are left out.
    pub(crate) fn main_omission(&self) -> Option<LineOmission> {
        self.left_out.iter().max_by_key(|(_, count)| **count).map(|(omission, _)| *omission)
    }

    /// Part of the result of a run.
    pub(crate) fn to_replay(&self) -> RunReplay {
        let seconds = |ns: i64| ns as f64 / 1e9;
        let status = |status: &Option<u16>| status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        RunReplay {
            lines: self.lines,
            requests: self.requests,
            first_unix_s: self.first_ns.map(seconds),
            last_unix_s: self.last_ns.map(seconds),
            methods: self.methods.iter().map(|(method, n)| (method.to_string(), *n)).collect(),
            status: self.statuses.iter().map(|(code, n)| (status(code), *n)).collect(),
            left_out: self.left_out.iter().map(|(omission, n)| (omission.name().to_owned(), *n)).collect(),
            first_broken: self.first_broken.clone(),
            ..RunReplay::default()
        }
    }
}
