//! Time series of a run, in bounded memory.
//!
//! A run of a month must not fill the memory, and a run of ten seconds must show each second. A series starts with
//! points of one second (or another interval); at [`MAX_POINTS`] neighbours are merged and points become twice as wide.
//! Each point contains its histogram, so merged percentiles are exact.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::packed_histogram::{packed_sum, unpacked};
use super::recorder::Interval;
use super::step_series::{StepPoint, StepSeries};
use super::stream_series::{PackedStreamPoint, StreamPoint};
use super::websocket_series::WebSocketPoint;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_histogram::percentiles::null_or_ms;

/// Maximum number of points of a series.
pub const MAX_POINTS: usize = 1200;

/// Interval of a run, of one or several seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Start of the interval, in seconds since the start of the run.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub width_s: f64,
    /// Successes in the interval.
    pub ok: u64,
    /// Failed requests in the interval.
    pub failed: u64,
    /// Whole responses in the interval, whatever their status.
    pub responses: u64,
    /// Bytes read in the interval.
    pub bytes_in: u64,
    /// Requests in flight at the end of the interval.
    pub in_flight: u64,
    /// Maximum of the requests in flight, of the threads together.
    pub max_in_flight: u64,
    /// Arrivals waiting for a connection at the end of the interval.
    pub backlog: u64,
    /// Median response time of the successes, in milliseconds; `None` without any.
    #[serde(deserialize_with = "null_or_ms")]
    pub p50_ms: Option<f64>,
    /// 99th percentile of these times, in milliseconds.
    #[serde(deserialize_with = "null_or_ms")]
    pub p99_ms: Option<f64>,
    /// Maximum of these times, in milliseconds.
    #[serde(deserialize_with = "null_or_ms")]
    pub max_ms: Option<f64>,
    /// Histogram of these times: HdrHistogram V2 at two digits, in nanoseconds, base64.
    pub histogram: String,
    /// Median time of the failures, in milliseconds: until the response had arrived, or until it was clear that none
    /// would; `None` without any.
    #[serde(deserialize_with = "null_or_ms")]
    pub failed_p50_ms: Option<f64>,
    /// 99th percentile of these times, in milliseconds.
    #[serde(deserialize_with = "null_or_ms")]
    pub failed_p99_ms: Option<f64>,
    /// Maximum of these times, in milliseconds.
    #[serde(deserialize_with = "null_or_ms")]
    pub failed_max_ms: Option<f64>,
    /// Histogram of these times, in the format of `histogram`; empty without any.
    pub failed_histogram: String,
    /// Streamed responses; `None` if responses are not read as streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamPoint>,
    /// Connections of WebSocket; `None` if it is not spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<WebSocketPoint>,
}

impl SeriesPoint {
    /// Requests that ended, per second.
    pub fn rate_per_s(&self) -> f64 {
        if self.width_s > 0.0 { (self.ok + self.failed) as f64 / self.width_s } else { 0.0 }
    }
}

/// Points of a run, in order of time.
#[derive(Debug)]
pub struct RunSeries {
    points: Vec<PackedPoint>,
    steps: StepSeries,
    /// Length of a point before any merge.
    base_interval: Nanos,
    /// Intervals per point now; a power of two.
    intervals_per_point: u64,
}

#[derive(Debug)]
struct PackedPoint {
    interval: IntervalCounts,
    histogram: Vec<u8>,
    failed: Vec<u8>,
    streams: Option<Box<PackedStreamPoint>>,
    websocket: Option<WebSocketPoint>,
}

#[derive(Clone, Copy, Debug, Default)]
struct IntervalCounts {
    ok: u64,
    failed: u64,
    responses: u64,
    bytes_in: u64,
    in_flight: u64,
    max_in_flight: u64,
    backlog: u64,
}

impl Default for RunSeries {
    fn default() -> Self {
        Self::with_interval(Nanos::SECOND)
    }
}

impl RunSeries {
    /// Series with points of this length before any merge.
    pub fn with_interval(base_interval: Nanos) -> Self {
        Self { points: Vec::new(), steps: StepSeries::default(), base_interval, intervals_per_point: 1 }
    }

    /// Adds the counts of interval `number`, from 0.
    pub fn add(&mut self, number: u64, interval: &Interval) {
        while number / self.intervals_per_point >= MAX_POINTS as u64 {
            self.widen();
        }
        let index = usize::try_from(number / self.intervals_per_point).unwrap_or(MAX_POINTS - 1);
        while self.points.len() <= index {
            self.points.push(PackedPoint::empty());
        }
        self.points[index].add(interval);
        self.steps.add(number, &interval.steps);
    }

    /// Points of a step by its index; the last one ends at `end_s`, the length of the run.
    pub fn step_points(&self, step: usize, end_s: f64) -> Vec<StepPoint> {
        self.steps.points(step, self.base_interval, end_s)
    }

    fn widen(&mut self) {
        self.intervals_per_point *= 2;
        let mut merged: Vec<PackedPoint> = Vec::with_capacity(MAX_POINTS);
        for (i, point) in std::mem::take(&mut self.points).into_iter().enumerate() {
            match merged.last_mut() {
                Some(last) if i % 2 == 1 => last.merge(&point),
                _ => merged.push(point),
            }
        }
        self.points = merged;
    }

    /// Points; the last one ends at `end_s`, the length of the run.
    pub fn points(&self, end_s: f64) -> Vec<SeriesPoint> {
        let width = self.intervals_per_point as f64 * self.base_interval.as_secs_f64();
        let points = self.points.iter().enumerate().map(|(i, packed)| {
            let start = i as f64 * width;
            packed.point(start, width.min((end_s - start).max(0.0)))
        });
        points.filter(|p| p.width_s > 0.0 || p.ok + p.failed > 0).collect()
    }
}

impl PackedPoint {
    fn empty() -> Self {
        Self {
            interval: IntervalCounts::default(),
            histogram: Vec::new(),
            failed: Vec::new(),
            streams: None,
            websocket: None,
        }
    }

    /// Histogram of successes.
    fn unpacked(&self) -> Histogram {
        unpacked(&self.histogram)
    }

    fn add(&mut self, other: &Interval) {
        let counts = &mut self.interval;
        counts.ok += other.ok;
        counts.failed += other.failed;
        counts.responses += other.responses;
        counts.bytes_in += other.bytes_in;
        (counts.in_flight, counts.backlog) = (other.in_flight, other.backlog);
        counts.max_in_flight = counts.max_in_flight.max(other.max_in_flight);
        self.histogram = packed_sum(&self.histogram, &other.response);
        if other.failed_response.count() > 0 {
            self.failed = packed_sum(&self.failed, &other.failed_response);
        }
        if let Some(streams) = &other.streams {
            self.streams.get_or_insert_default().add(streams);
        }
        if let Some(websocket) = &other.websocket {
            self.websocket.get_or_insert_default().follow(websocket);
        }
    }

    fn merge(&mut self, later: &Self) {
        let counts = later.interval;
        self.add(&Interval {
            ok: counts.ok,
            failed: counts.failed,
            responses: counts.responses,
            bytes_in: counts.bytes_in,
            response: later.unpacked(),
            failed_response: unpacked(&later.failed),
            backlog: counts.backlog,
            in_flight: counts.in_flight,
            max_in_flight: counts.max_in_flight,
            websocket: later.websocket.map(Box::new),
            ..Interval::default()
        });
        if let Some(streams) = &later.streams {
            self.streams.get_or_insert_default().merge(streams);
        }
    }

    fn point(&self, t_s: f64, width_s: f64) -> SeriesPoint {
        let (histogram, failures) = (self.unpacked(), unpacked(&self.failed));
        SeriesPoint {
            t_s,
            width_s,
            ok: self.interval.ok,
            failed: self.interval.failed,
            responses: self.interval.responses,
            bytes_in: self.interval.bytes_in,
            in_flight: self.interval.in_flight,
            max_in_flight: self.interval.max_in_flight.max(self.interval.in_flight),
            backlog: self.interval.backlog,
            p50_ms: histogram.quantile_ms(0.5),
            p99_ms: histogram.quantile_ms(0.99),
            max_ms: histogram.max_ms(),
            histogram: BASE64_STANDARD.encode(&self.histogram),
            failed_p50_ms: failures.quantile_ms(0.5),
            failed_p99_ms: failures.quantile_ms(0.99),
            failed_max_ms: failures.max_ms(),
            failed_histogram: failures.to_base64(),
            streams: self.streams.as_ref().map(|streams| streams.point()),
            websocket: self.websocket,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(ok: u64, ms: u64) -> Interval {
        let mut interval = Interval { ok, bytes_in: 10 * ok, ..Interval::default() };
        (0..ok).for_each(|_| interval.response.record(Nanos::from_millis(ms)));
        interval
    }

    #[test]
    fn threads_that_report_the_same_second_are_one_point() {
        let mut series = RunSeries::default();
        series.add(0, &second(10, 5));
        series.add(0, &second(30, 50));
        let points = series.points(0.5);
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].ok, points[0].bytes_in), (40, 400));
        assert!((points[0].rate_per_s() - 80.0).abs() < 1e-9);
        assert!((points[0].p50_ms.expect("times") - 50.0).abs() < 1.0);
    }

    #[test]
    fn a_run_of_a_month_has_no_more_points_than_fit_and_loses_no_request() {
        let mut series = RunSeries::default();
        for s in (0..30 * 86_400).step_by(600) {
            series.add(s, &second(3, 7));
        }
        let points = series.points(30.0 * 86_400.0);
        assert!(points.len() <= MAX_POINTS);
        assert_eq!(points.iter().map(|p| p.ok).sum::<u64>(), 30 * 144 * 3);
        assert!(points.iter().all(|p| p.p99_ms.map_or(p.ok == 0, |ms| (ms - 7.0).abs() < 0.2)));
    }

    #[test]
    fn times_of_failures_are_separate_at_any_width_of_points() {
        let mut series = RunSeries::default();
        for s in 0..2 * MAX_POINTS as u64 {
            let mut interval = Interval { failed: 2, responses: 4, ..second(3, 500) };
            [1, 9].iter().for_each(|ms| interval.failed_response.record(Nanos::from_millis(*ms)));
            series.add(s, &interval);
        }
        for point in series.points(2.0 * MAX_POINTS as f64) {
            assert_eq!((point.ok, point.failed, point.responses), (6, 4, 8));
            let near = |ms: Option<f64>, truth: f64| ms.is_some_and(|ms| (ms / truth - 1.0).abs() < 0.02);
            assert!(near(point.p50_ms, 500.0) && near(point.failed_p50_ms, 1.0), "{point:?}");
            assert!(near(point.failed_max_ms, 9.0) && !point.failed_histogram.is_empty(), "{point:?}");
        }
    }

    #[test]
    fn what_is_in_flight_has_its_maximum_at_any_width_of_points() {
        let mut series = RunSeries::default();
        for s in 0..2 * MAX_POINTS as u64 {
            let max_in_flight = if s % 2 == 0 { 90 } else { 7 };
            series.add(s, &Interval { in_flight: 3, max_in_flight, ..second(1, 1) });
        }
        for point in series.points(2.0 * MAX_POINTS as f64) {
            assert_eq!((point.in_flight, point.max_in_flight), (3, 90));
        }
    }

    #[test]
    fn a_second_without_responses_is_a_point_too() {
        let mut series = RunSeries::default();
        series.add(0, &second(1, 1));
        series.add(3, &second(1, 1));
        assert_eq!(series.points(4.0).iter().map(|p| p.ok).collect::<Vec<_>>(), [1, 0, 0, 1]);
        let point = &series.points(4.0)[1];
        assert_eq!((point.p50_ms, point.p99_ms, point.max_ms, point.failed_p50_ms), (None, None, None, None));
    }
}
