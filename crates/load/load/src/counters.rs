//! A worker's counts: outcomes, requests in the system, backlog, CPU, first messages of failures.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_measure::Counts;
use weir_measure::failure_sample::FailureSample;
use weir_measure::outcome::Outcome;
use weir_measure::recorder::{Interval, Recorder};
use weir_measure::time_window::TimeWindow;
use weir_pace::feed::Feed;
use weir_request::secret_mask::SecretMask;
use weir_scenario::plan::{StepFindings, StepVerdict};

use super::event_streams::{StreamOptions, StreamSinks};
use super::headers::with_headers;
use super::plan::LoadPlan;
use super::steps::ScriptTime;

/// CPU time that a thread has used by a time.
#[derive(Clone, Copy, Debug, Default)]
struct CpuReading {
    at: Nanos,
    used: Nanos,
}

/// One worker's counts, reported by [`WorkerCounters::take_counts`].
#[derive(Debug)]
pub(super) struct WorkerCounters {
    recorder: Recorder,
    /// Secrets that messages leave out.
    mask: SecretMask,
    window: TimeWindow,
    in_flight: u64,
    /// Maximum of `in_flight` since the last interval, of the samples.
    max_in_flight: u64,
    /// Time up to which requests in the system are integrated.
    last: Nanos,
    max_backlog: u64,
    /// CPU time of the thread at the start and at the end of its window.
    cpu_start: Option<CpuReading>,
    cpu_end: CpuReading,
    /// Time within calls of a script, at the start and at the end of its window.
    script_start: Nanos,
    script_end: Nanos,
}

impl WorkerCounters {
    /// Counts of a plan.
    pub(super) fn of(plan: &LoadPlan) -> Box<Self> {
        let mut counters = Box::new(Self::new(plan.warmup, plan.until, plan.mask.clone()));
        if plan.control.is_some() {
            counters.recorder.report_outcomes();
        }
        counters
    }

    fn new(from: Nanos, until: Nanos, mask: SecretMask) -> Self {
        Self {
            recorder: Recorder::new(from, until),
            mask,
            window: TimeWindow { from, until },
            in_flight: 0,
            max_in_flight: 0,
            last: Nanos::ZERO,
            max_backlog: 0,
            cpu_start: None,
            cpu_end: CpuReading::default(),
            script_start: Nanos::ZERO,
            script_end: Nanos::ZERO,
        }
    }

    /// Replaces the end of the window, which lies ahead.
    pub(super) fn set_until(&mut self, until: Nanos) {
        self.window.until = until;
        self.recorder.set_until(until);
    }

    /// Counts that were not reported yet.
    pub(super) fn counts(&mut self) -> &mut Counts {
        &mut self.recorder.counts
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Takes a sample of the requests in flight for their maximum.
    #[inline]
    pub(super) fn sample_in_flight(&mut self) {
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
    }

    /// Records a request intended at `intended` that starts at `now`; it is in the system since the former.
    #[inline]
    pub(super) fn begin(&mut self, intended: Nanos, now: Nanos) {
        self.integrate_to(now);
        self.recorder.counts.area += self.within(intended, now);
        self.in_flight += 1;
    }

    /// Counts that the streamed response to a request intended at `intended` adds to.
    #[inline]
    pub(super) fn stream_sinks(&mut self, options: &StreamOptions, intended: Nanos) -> StreamSinks<'_> {
        let Counts { streams, llm, .. } = &mut self.recorder.counts;
        StreamSinks {
            window: self.window,
            is_counted: intended >= self.window.from,
            interval: self.recorder.interval.streams.get_or_insert_default(),
            streams: streams.get_or_insert_default(),
            llm: options.api.map(|_| &mut **llm.get_or_insert_default()),
            arrived: None,
            reads: None,
        }
    }

    /// Records bytes of a streamed body that have just come, of a request intended at `intended`.
    #[inline]
    pub(super) fn record_body(&mut self, bytes: u64, intended: Nanos) {
        self.recorder.record_body(bytes, intended);
    }

    /// Adds bytes of a response that has not ended to those of the interval.
    #[inline]
    pub(super) fn record_arrived(&mut self, bytes: u64) {
        self.recorder.interval.bytes_in += bytes;
    }

    /// Takes such bytes back from an interval that has just had all of an ended response.
    pub(super) fn take_back_arrived(&mut self, bytes: u64) {
        let all = &mut self.recorder.interval.bytes_in;
        *all = all.saturating_sub(bytes);
    }

    /// Gives up requests that have begun, which the end of the run cuts off.
    pub(super) fn give_up(&mut self, requests: u64, now: Nanos) {
        self.integrate_to(now);
        self.in_flight -= requests;
        self.recorder.counts.unfinished += requests;
    }

    /// Records the end of a request.
    #[inline]
    pub(super) fn end(&mut self, outcome: &Outcome) {
        self.leave(outcome);
        self.record(outcome);
    }

    /// Records a request that has left the system.
    #[inline]
    pub(super) fn record(&mut self, outcome: &Outcome) {
        self.recorder.record(outcome);
    }

    /// Takes a request out of the system.
    #[inline]
    pub(super) fn leave(&mut self, outcome: &Outcome) {
        if outcome.done >= self.last {
            self.integrate_to(outcome.done);
        } else {
            // The kernel's time of the end is earlier than the read.
            self.recorder.counts.area -= self.within(outcome.done, self.last);
        }
        self.in_flight -= 1;
        let counts = &mut self.recorder.counts;
        counts.last_done = counts.last_done.max(outcome.done);
    }

    /// Records a request of a step, and its checks.
    pub(super) fn end_step(
        &mut self,
        step: u32,
        outcome: &Outcome,
        findings: &StepFindings,
        sample: impl FnOnce() -> FailureSample,
    ) {
        let failed_checks =
            (0..findings.checks_evaluated).filter(|check| findings.has_passed(*check) == Some(false)).count();
        self.recorder.interval.step(step).record(outcome, failed_checks as u64);
        if outcome.intended < self.window.from {
            return;
        }
        let counts = self.recorder.counts.step(step);
        counts.record(outcome);
        match findings.verdict {
            Some(StepVerdict::Redirected) => counts.redirects += 1,
            Some(StepVerdict::Retried) => counts.retries += 1,
            _ => {}
        }
        for check in 0..findings.checks_evaluated {
            let passed = findings.has_passed(check);
            passed.into_iter().for_each(|passed| counts.record_check(check as usize, passed));
        }
        if !findings.failures.is_empty() {
            counts.record_sample(sample);
        }
    }

    /// Records a request of a step that could not be rendered.
    pub(super) fn record_unsent(&mut self, step: u32, now: Nanos, sample: impl FnOnce() -> FailureSample) {
        if now < self.window.from {
            return;
        }
        let counts = self.recorder.counts.step(step);
        counts.unsent += 1;
        counts.record_sample(sample);
    }

    /// Records an iteration.
    pub(super) fn end_iteration(&mut self, scenario: u32, intended: Nanos, now: Nanos, ok: bool) {
        self.recorder.interval.iterations += 1;
        let iterations = self.recorder.counts.scenario(scenario);
        if self.window.contains(now) {
            iterations.ended_in_window += 1;
        }
        if intended >= self.window.from {
            iterations.record(intended, now, ok);
        }
    }

    #[inline]
    fn integrate_to(&mut self, now: Nanos) {
        if now > self.last {
            self.recorder.counts.area += self.in_flight as f64 * self.within(self.last, now);
            self.last = now;
        }
    }

    /// Part of the time between two instants that lies in the window, in nanoseconds.
    #[inline]
    fn within(&self, a: Nanos, b: Nanos) -> f64 {
        (b.min(self.window.until) - a.max(self.window.from)).0 as f64
    }

    /// Time when a request intended at `intended` could have been sent on a connection that is `free` since then; with
    /// `capped` it had to wait for that, since all allowed ones were busy.
    #[inline]
    pub(super) fn ready(&mut self, intended: Nanos, capped: bool, free: Nanos) -> Nanos {
        if !capped || intended >= free {
            return intended;
        }
        self.recorder.counts.waited += u64::from(intended >= self.window.from);
        free
    }

    /// Records a connection made before the start, and its time.
    pub(super) fn preconnected(&mut self, time: Nanos) {
        self.recorder.counts.connect.record(time);
    }

    pub(super) fn record_backlog(&mut self, backlog: u64) {
        self.recorder.counts.max_backlog += backlog.saturating_sub(self.max_backlog);
        self.max_backlog = self.max_backlog.max(backlog);
    }

    /// Stores the first message of each kind of failure, without secrets: a service may repeat what it was sent.
    pub(super) fn record_detail(&mut self, kind: FailureKind, words: impl FnOnce() -> String) {
        let mask = &self.mask;
        self.recorder.counts.details.entry(kind).or_insert_with(|| mask.shown(&words()));
    }

    /// Stores the first message of each status of gRPC, without secrets.
    #[cold]
    pub(super) fn record_message(&mut self, status: u16, words: impl FnOnce() -> String) {
        let mask = &self.mask;
        self.recorder.counts.messages.entry(status).or_insert_with(|| mask.shown(&words()));
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
        self.recorder.counts.server =
            Some(named.map_or_else(String::new, |h| String::from_utf8_lossy(h.value).into_owned()));
    }

    /// Finds the `server` field in the text of a first head over HTTP/2; once.
    #[cold]
    pub(super) fn find_server_field(&mut self, head: &[u8]) {
        let server = with_headers(head, |fields| {
            let field = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("server"));
            field.map_or_else(String::new, |(_, value)| String::from_utf8_lossy(value).into_owned())
        });
        self.recorder.counts.server = Some(server);
    }

    /// Records the CPU time that this thread has used by `now`, and the time within calls of a script.
    pub(super) fn record_cpu(&mut self, now: Nanos, cpu: Nanos, script: ScriptTime) {
        if now < self.window.from {
            return;
        }
        let reading = CpuReading { at: now, used: cpu };
        if self.cpu_start.is_none() {
            (self.cpu_start, self.cpu_end) = (Some(reading), reading);
            (self.script_start, self.script_end) = (script.total, script.total);
        } else if now <= self.window.until {
            self.recorder.counts.cpu += cpu - self.cpu_end.used;
            self.cpu_end = reading;
            self.script_end = script.total;
            let longest = &mut self.recorder.counts.longest_script_call;
            *longest = (*longest).max(script.longest);
        }
    }

    /// Counts since the last call.
    pub(super) fn take_interval(&mut self, backlog: u64) -> Box<Interval> {
        let mut taken = Box::new(self.recorder.take_interval());
        (taken.backlog, taken.in_flight) = (backlog, self.in_flight);
        taken.max_in_flight = std::mem::replace(&mut self.max_in_flight, self.in_flight).max(self.in_flight);
        taken
    }

    /// Ends the counting with the run.
    pub(super) fn close(&mut self, now: Nanos) {
        self.integrate_to(now);
        self.recorder.counts.unfinished += self.in_flight;
    }

    /// Takes over what a feed has offered.
    #[inline]
    pub(super) fn take_offers(&mut self, feed: &mut Feed) {
        let counts = &mut self.recorder.counts;
        counts.offered += feed.take_offered();
        counts.dropped += feed.take_dropped();
    }

    /// Counts since the last call.
    pub(super) fn take_counts(&mut self) -> Box<Counts> {
        self.recorder.counts.cpu_utilization = self.cpu_utilization();
        self.recorder.counts.script_utilization = self.script_utilization();
        Box::new(self.recorder.take_counts())
    }

    /// CPU time in the window so far, as a fraction of a core.
    fn cpu_utilization(&self) -> f64 {
        let (Some(start), end) = (self.cpu_start, self.cpu_end) else { return 0.0 };
        if end.at > start.at { (end.used - start.used).0 as f64 / (end.at - start.at).0 as f64 } else { 0.0 }
    }

    /// Time within calls of a script in the window so far, as a fraction of all.
    fn script_utilization(&self) -> f64 {
        let Some(start) = self.cpu_start else { return 0.0 };
        let length = self.cpu_end.at - start.at;
        if length > Nanos::ZERO { (self.script_end - self.script_start).0 as f64 / length.0 as f64 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_of_a_kind_is_kept_without_secrets() {
        let mut mask = SecretMask::default();
        mask.add("Bearer sk-abcdef-1");
        let mut counters = WorkerCounters::new(Nanos::ZERO, Nanos(1), mask);
        counters.record_detail(FailureKind::Body, || "wrong key sk-abcdef-1, token=S".to_owned());
        counters.record_detail(FailureKind::Body, || "another".to_owned());
        assert_eq!(counters.counts().details[&FailureKind::Body], "wrong key ***, token=***");
    }
}
