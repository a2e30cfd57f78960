//! A worker's counters besides the outcomes: requests in the system, connections, CPU, first messages of failures.

use std::collections::BTreeMap;

use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;
use crate::decide::load::feed::Feed;
use crate::measure::RunCounts;
use crate::measure::outcome::Outcome;
use crate::measure::recorder::{Interval, Recorder};

/// One worker's counters, reported by [`WorkerCounters::take_counts`].
#[derive(Debug)]
pub(super) struct WorkerCounters {
    recorder: Recorder,
    from: Nanos,
    until: Nanos,
    in_flight: u64,
    /// Requests in the system, integrated over the window, in request nanoseconds.
    area: f64,
    last: Nanos,
    last_done: Nanos,
    /// Requests in flight when the run was cut off.
    unfinished: u64,
    max_backlog: u64,
    pub(super) connections: u64,
    pub(super) server: Option<String>,
    pub(super) tls: Option<String>,
    /// First message of each kind of failure.
    details: BTreeMap<FailureKind, String>,
    cpu_start: Option<(Nanos, Nanos)>,
    cpu_end: (Nanos, Nanos),
    /// Time from the run's start to this thread's.
    pub(super) began: Nanos,
    reported: ReportedCounters,
}

/// Already reported part of the growing counts.
#[derive(Clone, Copy, Debug, Default)]
struct ReportedCounters {
    offered: u64,
    dropped: u64,
    max_backlog: u64,
    connections: u64,
    cpu: Nanos,
}

impl WorkerCounters {
    pub(super) fn new(from: Nanos, until: Nanos) -> Self {
        Self {
            recorder: Recorder::new(from, until),
            from,
            until,
            in_flight: 0,
            area: 0.0,
            last: Nanos::ZERO,
            last_done: Nanos::ZERO,
            unfinished: 0,
            max_backlog: 0,
            connections: 0,
            server: None,
            tls: None,
            details: BTreeMap::new(),
            cpu_start: None,
            cpu_end: (Nanos::ZERO, Nanos::ZERO),
            began: Nanos::ZERO,
            reported: ReportedCounters::default(),
        }
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Records a request intended at `intended` that starts at `now`; it is in the system since the former.
    #[inline]
    pub(super) fn begin(&mut self, intended: Nanos, now: Nanos) {
        self.integrate_to(now);
        self.area += self.within(intended, now);
        self.in_flight += 1;
    }

    /// Records the end of a request.
    #[inline]
    pub(super) fn end(&mut self, outcome: &Outcome) {
        if outcome.done >= self.last {
            self.integrate_to(outcome.done);
        } else {
            // The kernel's time of the end is earlier than the read.
            self.area -= self.within(outcome.done, self.last);
        }
        self.in_flight -= 1;
        self.last_done = self.last_done.max(outcome.done);
        self.recorder.record(outcome);
    }

    #[inline]
    fn integrate_to(&mut self, now: Nanos) {
        if now > self.last {
            self.area += self.in_flight as f64 * self.within(self.last, now);
            self.last = now;
        }
    }

    /// Part of the time between two instants that lies in the window, in nanoseconds.
    #[inline]
    fn within(&self, a: Nanos, b: Nanos) -> f64 {
        (b.min(self.until) - a.max(self.from)).0 as f64
    }

    /// Time when a request intended at `intended` could have been sent on a connection that is `free` since then; with
    /// `capped` it had to wait for that, since all allowed ones were busy.
    #[inline]
    pub(super) fn ready(&mut self, intended: Nanos, capped: bool, free: Nanos) -> Nanos {
        if !capped || intended >= free {
            return intended;
        }
        self.recorder.totals.waited += u64::from(intended >= self.from);
        free
    }

    /// Records a connection made before the start, and its time.
    pub(super) fn preconnected(&mut self, time: Nanos) {
        self.recorder.totals.connect.record(time);
    }

    pub(super) fn record_backlog(&mut self, backlog: u64) {
        self.max_backlog = self.max_backlog.max(backlog);
    }

    /// Stores the first message of each kind of failure.
    pub(super) fn record_detail(&mut self, kind: FailureKind, words: impl FnOnce() -> String) {
        self.details.entry(kind).or_insert_with(words);
    }

    /// Finds the `Server` header in the first head that comes in one piece; once.
    #[cold]
    pub(super) fn find_server(&mut self, bytes: &[u8]) {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut headers);
        if !response.parse(bytes).is_ok_and(|status| status.is_complete()) || response.code < Some(200) {
            return;
        }
        let named = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case("server"));
        self.server = Some(named.map_or_else(String::new, |h| String::from_utf8_lossy(h.value).into_owned()));
    }

    /// Records the CPU time that this thread has used by `now`.
    pub(super) fn record_cpu(&mut self, now: Nanos, cpu: Nanos) {
        if now >= self.from && self.cpu_start.is_none() {
            self.cpu_start = Some((now, cpu));
        }
        if now <= self.until || self.cpu_end.0 < self.from {
            self.cpu_end = (now, cpu);
        }
    }

    /// Counts since the last call.
    pub(super) fn take_interval(&mut self, backlog: u64) -> Box<Interval> {
        let mut taken = Box::new(std::mem::take(&mut self.recorder.interval));
        (taken.backlog, taken.in_flight) = (backlog, self.in_flight);
        taken
    }

    /// Ends the counting with the run.
    pub(super) fn close(&mut self, now: Nanos) {
        self.integrate_to(now);
        self.unfinished = self.in_flight;
    }

    /// Growing counts since the last call.
    pub(super) fn take_counts(&mut self, feed: &Feed) -> Box<RunCounts> {
        let (cpu, cpu_utilization) = self.cpu();
        let (connections, most_backlog) = (self.connections, self.max_backlog);
        let now = ReportedCounters {
            offered: feed.offered(),
            dropped: feed.dropped(),
            max_backlog: most_backlog,
            connections,
            cpu,
        };
        let before = std::mem::replace(&mut self.reported, now);
        Box::new(RunCounts {
            totals: self.recorder.take_totals(),
            area: std::mem::take(&mut self.area),
            last_done: self.last_done,
            unfinished: std::mem::take(&mut self.unfinished),
            offered: now.offered - before.offered,
            dropped: now.dropped - before.dropped,
            max_backlog: now.max_backlog - before.max_backlog,
            connections: now.connections - before.connections,
            server: self.server.clone(),
            tls: self.tls.clone(),
            details: self.details.clone(),
            cpu: now.cpu - before.cpu,
            cpu_utilization,
            began: self.began,
        })
    }

    /// CPU time in the window so far, and the fraction of a core that it is.
    fn cpu(&self) -> (Nanos, f64) {
        let Some((start, before)) = self.cpu_start else { return (Nanos::ZERO, 0.0) };
        let (end, after) = self.cpu_end;
        let cpu = after - before;
        (cpu, if end > start { cpu.0 as f64 / (end - start).0 as f64 } else { 0.0 })
    }
}
