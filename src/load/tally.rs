//! What one worker counts, beside the outcomes: requests in the system, connections, CPU, first words of failures.

use std::collections::BTreeMap;

use crate::decide::Nanos;
use crate::decide::feed::Feed;
use crate::measure::outcome::{Failure, Outcome};
use crate::measure::recorder::{Interval, Recorder, Totals};

/// One worker's counts; [`Tally::add`] joins those of all.
#[derive(Debug)]
pub(super) struct Tally {
    recorder: Recorder,
    from: Nanos,
    until: Nanos,
    in_flight: u64,
    /// Requests in the system, integrated over the window, in request nanoseconds.
    area: f64,
    last: Nanos,
    pub(super) last_done: Nanos,
    /// Requests on their way when the run was cut off.
    pub(super) unfinished: u64,
    /// Arrivals of the open loop that were due in the window, and those of them that were never sent.
    pub(super) offered: u64,
    pub(super) dropped: u64,
    pub(super) most_backlog: u64,
    pub(super) connections: u64,
    pub(super) server: Option<String>,
    pub(super) tls: Option<String>,
    /// What the first failure of each kind said.
    pub(super) details: BTreeMap<Failure, String>,
    cpu_start: Option<(Nanos, Nanos)>,
    cpu_end: (Nanos, Nanos),
    /// CPU time in the window, and the busiest thread's share of a core.
    pub(super) cpu: Nanos,
    pub(super) cpu_share: f64,
}

impl Tally {
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
            offered: 0,
            dropped: 0,
            most_backlog: 0,
            connections: 0,
            server: None,
            tls: None,
            details: BTreeMap::new(),
            cpu_start: None,
            cpu_end: (Nanos::ZERO, Nanos::ZERO),
            cpu: Nanos::ZERO,
            cpu_share: 0.0,
        }
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// A request meant to start at `intended` starts at `now`; it has been in the system since it was meant to.
    #[inline]
    pub(super) fn begin(&mut self, intended: Nanos, now: Nanos) {
        self.flow_to(now);
        self.area += self.within(intended, now);
        self.in_flight += 1;
    }

    /// A request has ended.
    #[inline]
    pub(super) fn end(&mut self, outcome: &Outcome) {
        if outcome.done >= self.last {
            self.flow_to(outcome.done);
        } else {
            // The kernel says that it ended earlier than we noticed.
            self.area -= self.within(outcome.done, self.last);
        }
        self.in_flight -= 1;
        self.last_done = self.last_done.max(outcome.done);
        self.recorder.record(outcome);
    }

    #[inline]
    fn flow_to(&mut self, now: Nanos) {
        if now > self.last {
            self.area += self.in_flight as f64 * self.within(self.last, now);
            self.last = now;
        }
    }

    /// How much of the time between two moments lies in the window, in nanoseconds.
    #[inline]
    fn within(&self, a: Nanos, b: Nanos) -> f64 {
        (b.min(self.until) - a.max(self.from)).0 as f64
    }

    /// A request meant to start at `intended` had to wait since every connection was busy.
    pub(super) fn waited(&mut self, intended: Nanos) {
        self.recorder.totals.waited += u64::from(intended >= self.from);
    }

    /// A connection was made before the start, in this time.
    pub(super) fn connected_beforehand(&mut self, time: Nanos) {
        self.recorder.totals.connect.record(time);
    }

    pub(super) fn see_backlog(&mut self, backlog: u64) {
        self.most_backlog = self.most_backlog.max(backlog);
    }

    /// Keeps the first words on each kind of failure.
    pub(super) fn detail(&mut self, kind: Failure, words: impl FnOnce() -> String) {
        self.details.entry(kind).or_insert_with(words);
    }

    /// Looks for the `Server` header in the first head that comes in one piece; once.
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

    /// This thread has used `cpu` by `now`.
    pub(super) fn note_cpu(&mut self, now: Nanos, cpu: Nanos) {
        if now >= self.from && self.cpu_start.is_none() {
            self.cpu_start = Some((now, cpu));
        }
        if now <= self.until || self.cpu_end.0 < self.from {
            self.cpu_end = (now, cpu);
        }
    }

    /// What has happened since the last call.
    pub(super) fn take_interval(&mut self, backlog: u64) -> Box<Interval> {
        let mut taken = Box::new(std::mem::take(&mut self.recorder.interval));
        (taken.backlog, taken.in_flight) = (backlog, self.in_flight);
        taken
    }

    /// The run is over.
    pub(super) fn close(&mut self, now: Nanos, feed: &Feed) {
        self.flow_to(now);
        self.unfinished = self.in_flight;
        (self.offered, self.dropped) = (feed.offered(), feed.dropped());
        if let Some((start, before)) = self.cpu_start {
            let (end, after) = self.cpu_end;
            self.cpu = after - before;
            self.cpu_share = if end > start { self.cpu.0 as f64 / (end - start).0 as f64 } else { 0.0 };
        }
    }

    /// Adds another worker's counts.
    pub(super) fn add(&mut self, other: Self) {
        self.recorder.totals.add(&other.recorder.totals);
        self.area += other.area;
        self.last_done = self.last_done.max(other.last_done);
        self.unfinished += other.unfinished;
        self.offered += other.offered;
        self.dropped += other.dropped;
        self.most_backlog += other.most_backlog;
        self.connections += other.connections;
        self.server = self.server.take().or(other.server);
        self.tls = self.tls.take().or(other.tls);
        for (kind, words) in other.details {
            self.details.entry(kind).or_insert(words);
        }
        self.cpu += other.cpu;
        self.cpu_share = self.cpu_share.max(other.cpu_share);
    }

    /// Requests in the system, averaged over a window of this length.
    pub(super) fn in_flight_mean(&self, length: Nanos) -> f64 {
        self.area / length.0.max(1) as f64
    }

    pub(super) fn into_totals(self) -> Totals {
        self.recorder.totals
    }
}
