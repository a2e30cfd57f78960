//! Recorder of outcomes: counts and the current interval. Each thread has its own; nothing is shared or locked.

use serde::{Deserialize, Serialize};
use weir_base::grpc_status::is_success_status;

use super::counts::Counts;
use super::merge::{at, merged};
use super::outcome::{Outcome, RequestEnd};
use super::outcome_counts::OutcomeCounts;
use super::response_counts::BodyLengths;
use super::step_counts::{StepCounts, StepInterval};
use super::stream_interval::StreamInterval;
use super::time_window::TimeWindow;
use super::websocket_series::WebSocketPoint;
use weir_base::Nanos;
use weir_histogram::histogram::{self, Histogram};

merged! {
    /// Counts of one interval of the time series.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Interval {
        /// Successes.
        pub ok: u64 => sum,
        /// Failed requests.
        pub failed: u64 => sum,
        /// Whole responses, whatever their status.
        pub responses: u64 => sum,
        /// Bytes read.
        pub bytes_in: u64 => sum,
        /// Response times of successes.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub response: Histogram => sum,
        /// Times of failures: until the response had arrived, or until it was clear that none would.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub failed_response: Histogram => sum,
        /// Arrivals waiting for a connection at the end of the interval.
        pub backlog: u64 => sum,
        /// Requests in flight at the end of the interval.
        pub in_flight: u64 => sum,
        /// Maximum of the requests in flight: the sum of the maxima of all threads.
        pub max_in_flight: u64 => sum,
        /// Iterations that ended; 0 without scenarios.
        pub iterations: u64 => sum,
        /// Steps of the scenarios, in order; empty without scenarios.
        pub steps: Vec<StepInterval> => sum,
        /// Requests by their outcome, of a load that may be changed while it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub outcomes: Option<Box<OutcomeCounts>> => sum,
        /// Streamed responses; none if responses are not read as streams.
        pub streams: Option<Box<StreamInterval>> => sum,
        /// Connections of WebSocket; none if it is not spoken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub websocket: Option<Box<WebSocketPoint>> => sum,
        /// Counts of the interval for the result of the run; agents report them during the run.
        pub counts: Option<Box<Counts>> => sum,
    }
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
            max_in_flight: 0,
            iterations: 0,
            steps: Vec::new(),
            outcomes: None,
            websocket: None,
            streams: None,
            counts: None,
        }
    }
}

impl Interval {
    /// Requests that ended; with scenarios iterations, as limits count them.
    pub fn ended(&self) -> u64 {
        if self.steps.is_empty() { self.ok + self.failed } else { self.iterations }
    }

    /// Requests to language models that succeeded and met the objectives of each request.
    pub fn good_llm_requests(&self) -> u64 {
        self.streams.as_ref().map_or(0, |streams| streams.good)
    }

    /// Counts of a step by its index among all steps.
    pub fn step(&mut self, index: u32) -> &mut StepInterval {
        at(&mut self.steps, index)
    }

    /// Checks an interval that a peer sent.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}

/// Recorder of one thread.
#[derive(Debug)]
pub struct Recorder {
    /// Counts of the window.
    pub counts: Counts,
    /// Counts since the last reset.
    pub interval: Interval,
    window: TimeWindow,
    /// Outcomes that an interval had; none if intervals have none.
    reported: Option<OutcomeCounts>,
}

impl Recorder {
    /// Recorder of a window. Requests with an intended start before `from` (the warm-up) count in the series only;
    /// responses after `until` do not count for the rate.
    pub fn new(from: Nanos, until: Nanos) -> Self {
        let window = TimeWindow { from, until };
        let mut counts = Counts::default();
        counts.reserve();
        Self { counts, interval: Interval::default(), window, reported: None }
    }

    /// Replaces the end of the window, which lies ahead.
    pub fn set_until(&mut self, until: Nanos) {
        self.window.until = until;
    }

    /// Lets intervals have their requests by outcome.
    pub fn report_outcomes(&mut self) {
        self.reported.get_or_insert_default();
    }

    /// Returns the interval since the last call, with its requests by outcome if they are reported. In the warm-up they
    /// are not known.
    pub fn take_interval(&mut self) -> Interval {
        let mut taken = std::mem::take(&mut self.interval);
        if let Some(reported) = &mut self.reported {
            let first = |(index, step): (u32, &StepCounts)| Some((index, step.samples.first()?.clone()));
            let now = OutcomeCounts {
                statuses: self.counts.statuses.clone(),
                accepted: self.counts.accepted.as_deref().cloned().unwrap_or_default(),
                failures: self.counts.failures,
                details: self.counts.details.clone(),
                messages: self.counts.messages.clone(),
                samples: (0..).zip(&self.counts.steps).filter_map(first).collect(),
            };
            let mut new = now.clone();
            new.details.retain(|kind, _| !reported.details.contains_key(kind));
            new.messages.retain(|status, _| !reported.messages.contains_key(status));
            new.samples.retain(|step, _| !reported.samples.contains_key(step));
            new.statuses.subtract(&reported.statuses);
            new.accepted.subtract(&reported.accepted);
            new.failures.iter_mut().zip(&reported.failures).for_each(|(all, before)| *all -= before);
            taken.outcomes = Some(Box::new(new));
            *reported = now;
        }
        taken
    }

    /// Returns the counts since the last call. Facts about the service stay: later responses are compared with them.
    pub fn take_counts(&mut self) -> Counts {
        let Counts { server, tls, http, body_lengths, .. } = &self.counts;
        let body_lengths = BodyLengths { same: 0, ..*body_lengths };
        let (server, tls, http) = (server.clone(), tls.clone(), http.clone());
        let next = Counts { server, tls, http, body_lengths, ..Counts::default() };
        if let Some(reported) = &mut self.reported {
            *reported = OutcomeCounts::default();
        }
        std::mem::replace(&mut self.counts, next)
    }

    /// Records bytes of a streamed body that have just come, of a request intended at `intended`; its outcome says how
    /// many were recorded.
    #[inline]
    pub fn record_body(&mut self, bytes: u64, intended: Nanos) {
        self.interval.bytes_in += bytes;
        if intended >= self.window.from {
            self.counts.bytes_in += bytes;
            self.counts.body_in += bytes;
        }
    }

    /// Records an outcome.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        let response = outcome.response();
        let ok = outcome.is_ok();
        let interval = &mut self.interval;
        interval.ok += u64::from(ok);
        interval.failed += u64::from(!ok);
        interval.bytes_in += outcome.bytes_in.saturating_sub(outcome.counted_in);
        let has_response = outcome.end.status().is_some();
        interval.responses += u64::from(has_response);
        if ok {
            interval.response.record(response);
        } else {
            interval.failed_response.record(response);
        }
        // The rate counts all responses within the window: those to requests of the warm-up balance those that are
        // still in flight at its end.
        if has_response && self.window.contains(outcome.done) {
            self.counts.responses_in_window += 1;
        }
        if outcome.intended < self.window.from {
            return;
        }
        let counts = &mut self.counts;
        counts.requests += 1;
        counts.ok += u64::from(ok);
        counts.bytes_in += outcome.bytes_in.saturating_sub(outcome.counted_in);
        counts.body_in += outcome.body_in.saturating_sub(outcome.counted_in);
        counts.bytes_out += outcome.bytes_out;
        if outcome.connect > Nanos::ZERO {
            counts.connect.record(outcome.connect);
        }
        match outcome.end {
            RequestEnd::Failed(kind) => {
                counts.failures[kind as usize] += 1;
                counts.no_response.record(response);
            }
            RequestEnd::Response(status) | RequestEnd::Checked { status, .. } => {
                counts.statuses.record(status);
                counts.unexpected.record(outcome.end);
                if ok && !is_success_status(status) {
                    counts.accepted.get_or_insert_default().record(status);
                }
                if ok { &mut counts.good } else { &mut counts.bad }.record(outcome);
                counts.lateness.record(outcome.lateness());
                counts.body_lengths.record(outcome.body_in);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use weir_base::failure::FailureKind;

    fn answer(intended: u64, done: u64, status: u16) -> Outcome {
        Outcome {
            sent: Nanos(intended + 10),
            bytes_in: 100,
            body_in: 40,
            bytes_out: 50,
            ..Outcome::new(RequestEnd::Response(status), Nanos(intended), Nanos(done))
        }
    }

    #[test]
    fn the_warm_up_is_in_the_series_and_not_in_the_counts() {
        let mut recorder = Recorder::new(Nanos(1000), Nanos(2000));
        recorder.record(&answer(0, 900, 200));
        recorder.record(&answer(990, 1010, 200));
        recorder.record(&answer(1500, 1600, 404));
        recorder.record(&answer(1990, 2500, 200));
        assert_eq!(recorder.interval.ok + recorder.interval.failed, 4);
        let counts = &recorder.counts;
        assert_eq!((counts.requests, counts.ok), (2, 1));
        assert_eq!(counts.responses_in_window, 2, "one begun in the warm-up, one in the window");
        assert_eq!(counts.by_failure(), BTreeMap::from([("4xx".to_owned(), 1)]));
    }

    #[test]
    fn fast_failures_do_not_make_the_times_of_successes_better() {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        recorder.record(&answer(0, 90_000, 200));
        for _ in 0..9 {
            recorder.record(&answer(0, 1_000, 500));
            recorder.record(&Outcome { end: RequestEnd::Failed(FailureKind::Reset), ..answer(0, 500, 200) });
        }
        let Recorder { counts, interval, .. } = &recorder;
        assert_eq!((counts.good.count(), counts.bad.count(), counts.no_response.count()), (1, 9, 9));
        assert_eq!((counts.responses(), counts.no_response_count(), interval.responses), (10, 9, 10));
        assert!(counts.good.response.min() >= Some(Nanos(89_000)) && interval.response.min() >= Some(Nanos(89_000)));
        assert_eq!((counts.failed_response().count(), interval.failed_response.count()), (18, 18));
        let most = [counts.failed_response().max(), interval.failed_response.max()];
        assert!(most.iter().all(|most| most.is_some_and(|most| most < Nanos(1_100))), "{most:?}");
        assert!((counts.mean_response_ns() - 9_900.0).abs() < 20.0, "{}", counts.mean_response_ns());
    }

    #[test]
    fn counts_add_up_over_threads_that_saw_other_lengths() {
        let mut a = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let mut b = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        a.record(&answer(0, 5, 200));
        b.record(&Outcome { body_in: 41, ..answer(0, 5, 500) });
        b.record(&Outcome { body_in: 41, ..answer(0, 5, 200) });
        a.counts.add(&b.counts);
        assert_eq!((a.counts.requests, a.counts.ok), (3, 2));
        assert_eq!((a.counts.body_lengths.first, a.counts.other_lengths()), (Some(40), 2));
    }
}
