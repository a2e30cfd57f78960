//! Recorder of outcomes: totals and the current interval. Each thread has its own; nothing is shared or locked.

use std::collections::BTreeMap;

use super::counts::RunCounts;
use super::histogram::Histogram;
use super::outcome::{Outcome, RequestEnd};
use super::times::ResponseTimes;
use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;

/// Totals of the measured window; sums over threads.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Requests that ended, without dropped and unfinished ones.
    pub requests: u64,
    /// Whole responses with a status below 400.
    pub ok: u64,
    /// Responses that ended within the window, the numerator of the rate.
    pub responses_in_window: u64,
    /// Number of responses by status.
    pub(super) statuses: Box<[u64; 1000]>,
    /// Requests without a response, by kind.
    pub(super) failures: [u64; FailureKind::ALL.len()],
    /// Bytes read, heads and framing included.
    pub bytes_in: u64,
    /// Bytes of response bodies.
    pub body_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Times of successes.
    pub good: ResponseTimes,
    /// Times of whole responses with a status of 400 and above, separate so that fast failures improve no percentile.
    pub bad: ResponseTimes,
    /// Time from the intended start to the failure, of requests without a whole response.
    pub no_response: Histogram,
    /// Time to connect, of requests that waited for it.
    pub connect: Histogram,
    /// Lateness of the generator itself.
    pub lateness: Histogram,
    /// Requests that waited because every connection was busy.
    pub waited: u64,
    /// Body length of the first response.
    pub body_length: Option<u64>,
    /// Number of responses with another body length.
    pub other_lengths: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            requests: 0,
            ok: 0,
            responses_in_window: 0,
            statuses: Box::new([0; 1000]),
            failures: [0; FailureKind::ALL.len()],
            bytes_in: 0,
            body_in: 0,
            bytes_out: 0,
            good: ResponseTimes::default(),
            bad: ResponseTimes::default(),
            no_response: Histogram::precise(),
            connect: Histogram::precise(),
            lateness: Histogram::precise(),
            waited: 0,
            body_length: None,
            other_lengths: 0,
        }
    }
}

impl Totals {
    /// Adds the totals of another thread.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.ok += other.ok;
        self.responses_in_window += other.responses_in_window;
        self.statuses.iter_mut().zip(other.statuses.iter()).for_each(|(a, b)| *a += b);
        self.failures.iter_mut().zip(other.failures).for_each(|(a, b)| *a += b);
        self.bytes_in += other.bytes_in;
        self.body_in += other.body_in;
        self.bytes_out += other.bytes_out;
        self.good.add(&other.good);
        self.bad.add(&other.bad);
        self.no_response.add(&other.no_response);
        self.connect.add(&other.connect);
        self.lateness.add(&other.lateness);
        self.waited += other.waited;
        self.other_lengths += other.other_lengths;
        if self.body_length != other.body_length && other.body_length.is_some() {
            match self.body_length {
                None => self.body_length = other.body_length,
                Some(_) => self.other_lengths += other.responses() - other.other_lengths,
            }
        }
    }

    /// Number of whole responses, whatever their status.
    pub fn responses(&self) -> u64 {
        self.good.count() + self.bad.count()
    }

    /// Mean response time of all whole responses, in nanoseconds; 0 without any.
    pub fn mean_response_ns(&self) -> f64 {
        let sum = |times: &ResponseTimes| times.response.mean_ns() * times.count() as f64;
        (sum(&self.good) + sum(&self.bad)) / self.responses().max(1) as f64
    }

    /// Histogram of times of failures: until the response had arrived, or until it was clear that none would.
    pub fn failed_response(&self) -> Histogram {
        let mut all = self.bad.response.clone();
        all.add(&self.no_response);
        all
    }

    /// Number of requests that ended without a response.
    pub fn no_response_count(&self) -> u64 {
        self.requests - self.responses()
    }

    /// Number of responses by status, of statuses that occurred.
    pub fn by_status(&self) -> BTreeMap<String, u64> {
        self.statuses.iter().enumerate().filter(|(_, n)| **n > 0).map(|(s, n)| (s.to_string(), *n)).collect()
    }

    /// Failed requests by kind: without a response, or of class `4xx` or `5xx` (and above).
    pub fn by_failure(&self) -> BTreeMap<String, u64> {
        let sum = |range: std::ops::Range<usize>| self.statuses[range].iter().sum::<u64>();
        FailureKind::ALL
            .iter()
            .map(|kind| (kind.name(), self.failures[*kind as usize]))
            .chain([("4xx", sum(400..500)), ("5xx", sum(500..1000))])
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| (name.to_owned(), n))
            .collect()
    }

    /// Number of failures of a kind.
    pub fn failed(&self, kind: FailureKind) -> u64 {
        self.failures[kind as usize]
    }
}

/// Counts of one interval of the time series.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Successes.
    pub ok: u64,
    /// Failed requests.
    pub failed: u64,
    /// Whole responses, whatever their status.
    pub responses: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Response times of successes.
    pub response: Histogram,
    /// Times of failures: until the response had arrived, or until it was clear that none would.
    pub failed_response: Histogram,
    /// Arrivals waiting for a connection at the end of the interval.
    pub backlog: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// Counts of the interval for the result of the run; agents report them during the run.
    pub counts: Option<Box<RunCounts>>,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            ok: 0,
            failed: 0,
            responses: 0,
            bytes_in: 0,
            response: Histogram::coarse(),
            failed_response: Histogram::coarse(),
            backlog: 0,
            in_flight: 0,
            counts: None,
        }
    }
}

impl Interval {
    /// Adds the counts of another thread in the same interval.
    pub fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.responses += other.responses;
        self.bytes_in += other.bytes_in;
        self.response.add(&other.response);
        self.failed_response.add(&other.failed_response);
        self.backlog += other.backlog;
        self.in_flight += other.in_flight;
        if let Some(other) = &other.counts {
            match &mut self.counts {
                Some(own) => own.add(other),
                none => *none = Some(other.clone()),
            }
        }
    }

    /// Resets all counts and keeps the memory.
    pub fn reset(&mut self) {
        self.response.reset();
        self.failed_response.reset();
        self.counts = None;
        (self.ok, self.failed, self.responses, self.bytes_in) = (0, 0, 0, 0);
        (self.backlog, self.in_flight) = (0, 0);
    }
}

/// Recorder of one thread.
#[derive(Debug)]
pub struct Recorder {
    /// Totals of the window.
    pub totals: Totals,
    /// Counts since the last reset.
    pub interval: Interval,
    from: Nanos,
    until: Nanos,
}

impl Recorder {
    /// Recorder of a window. Requests with an intended start before `from` (the warm-up) count in the series only;
    /// responses after `until` do not count for the rate.
    pub fn new(from: Nanos, until: Nanos) -> Self {
        Self { totals: Totals::default(), interval: Interval::default(), from, until }
    }

    /// Returns the totals since the last call. The reference body length stays that of the first response.
    pub fn take_totals(&mut self) -> Totals {
        let body_length = self.totals.body_length;
        std::mem::replace(&mut self.totals, Totals { body_length, ..Totals::default() })
    }

    /// Records an outcome.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        let response = outcome.response();
        let ok = outcome.is_ok();
        let interval = &mut self.interval;
        interval.ok += u64::from(ok);
        interval.failed += u64::from(!ok);
        interval.bytes_in += outcome.bytes_in;
        let has_response = matches!(outcome.end, RequestEnd::Response(_));
        interval.responses += u64::from(has_response);
        if ok {
            interval.response.record(response);
        } else {
            interval.failed_response.record(response);
        }
        // The rate counts all responses within the window: those to requests of the warm-up balance those that are
        // still in flight at its end.
        if has_response && outcome.done >= self.from && outcome.done <= self.until {
            self.totals.responses_in_window += 1;
        }
        if outcome.intended < self.from {
            return;
        }
        let totals = &mut self.totals;
        totals.requests += 1;
        totals.ok += u64::from(ok);
        totals.bytes_in += outcome.bytes_in;
        totals.body_in += outcome.body_in;
        totals.bytes_out += outcome.bytes_out;
        if outcome.connect > Nanos::ZERO {
            totals.connect.record(outcome.connect);
        }
        match outcome.end {
            RequestEnd::Failed(kind) => {
                totals.failures[kind as usize] += 1;
                totals.no_response.record(response);
            }
            RequestEnd::Response(status) => {
                totals.statuses[usize::from(status.min(999))] += 1;
                if ok { &mut totals.good } else { &mut totals.bad }.record(outcome);
                totals.lateness.record(outcome.lateness());
                let length = *totals.body_length.get_or_insert(outcome.body_in);
                totals.other_lengths += u64::from(length != outcome.body_in);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(intended: u64, done: u64, status: u16) -> Outcome {
        Outcome {
            number: 0,
            intended: Nanos(intended),
            ready: Nanos(intended),
            sent: Nanos(intended + 10),
            first_byte: Nanos(done),
            done: Nanos(done),
            connect: Nanos::ZERO,
            end: RequestEnd::Response(status),
            bytes_in: 100,
            body_in: 40,
            bytes_out: 50,
        }
    }

    #[test]
    fn the_warm_up_is_in_the_series_and_not_in_the_totals() {
        let mut recorder = Recorder::new(Nanos(1000), Nanos(2000));
        recorder.record(&answer(0, 900, 200));
        recorder.record(&answer(990, 1010, 200));
        recorder.record(&answer(1500, 1600, 404));
        recorder.record(&answer(1990, 2500, 200));
        assert_eq!(recorder.interval.ok + recorder.interval.failed, 4);
        let totals = &recorder.totals;
        assert_eq!((totals.requests, totals.ok), (2, 1));
        assert_eq!(totals.responses_in_window, 2, "one begun in the warm-up, one in the window");
        assert_eq!(totals.by_failure(), BTreeMap::from([("4xx".to_owned(), 1)]));
    }

    #[test]
    fn fast_failures_do_not_make_the_times_of_successes_better() {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        recorder.record(&answer(0, 90_000, 200));
        for _ in 0..9 {
            recorder.record(&answer(0, 1_000, 500));
            recorder.record(&Outcome { end: RequestEnd::Failed(FailureKind::Reset), ..answer(0, 500, 200) });
        }
        let Recorder { totals, interval, .. } = &recorder;
        assert_eq!((totals.good.count(), totals.bad.count(), totals.no_response.count()), (1, 9, 9));
        assert_eq!((totals.responses(), totals.no_response_count(), interval.responses), (10, 9, 10));
        assert!(totals.good.response.min() >= Nanos(89_000) && interval.response.min() >= Nanos(89_000));
        assert_eq!((totals.failed_response().count(), interval.failed_response.count()), (18, 18));
        assert!(totals.failed_response().max() < Nanos(1_100) && interval.failed_response.max() < Nanos(1_100));
        assert!((totals.mean_response_ns() - 9_900.0).abs() < 20.0, "{}", totals.mean_response_ns());
    }

    #[test]
    fn totals_add_up_over_threads_that_saw_other_lengths() {
        let mut a = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let mut b = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        a.record(&answer(0, 5, 200));
        b.record(&Outcome { body_in: 41, ..answer(0, 5, 500) });
        b.record(&Outcome { body_in: 41, ..answer(0, 5, 200) });
        a.totals.add(&b.totals);
        assert_eq!((a.totals.requests, a.totals.ok), (3, 2));
        assert_eq!((a.totals.body_length, a.totals.other_lengths), (Some(40), 2));
    }
}
