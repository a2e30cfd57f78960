//! The run second by second, in bounded memory.
//!
//! A soak of a month must not fill the memory, and a run of ten seconds must show each of them. So a series starts
//! with points of one second (or whatever is asked for) and, when it has [`MOST`] of them, merges neighbours and goes on with points twice as
//! wide. Each point keeps its histogram (packed), so the merged percentiles are true ones.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use super::recorder::Interval;
use crate::decide::Nanos;

/// The most points that a series keeps.
pub const MOST: usize = 1200;

/// One stretch of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where it starts, in seconds since the start of the run.
    pub t_s: f64,
    /// How long it is, in seconds.
    pub width_s: f64,
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Bytes read in it.
    pub bytes_in: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Arrivals that waited for a connection at its end.
    pub backlog: u64,
    /// Response times of its answers, ms.
    pub p50_ms: f64,
    /// See `p50_ms`.
    pub p99_ms: f64,
    /// See `p50_ms`.
    pub max_ms: f64,
    /// All response times of its answers: HdrHistogram V2 at two digits, base64.
    pub histogram: String,
}

impl Point {
    /// Requests that ended per second.
    pub fn rate_per_s(&self) -> f64 {
        if self.width_s > 0.0 { (self.ok + self.failed) as f64 / self.width_s } else { 0.0 }
    }
}

/// The points of a run, in order of time.
#[derive(Debug)]
pub struct Series {
    points: Vec<Packed>,
    /// What a point covers at first.
    stretch: Nanos,
    /// Stretches that a point covers now; a power of two.
    width: u64,
}

#[derive(Debug)]
struct Packed {
    interval: IntervalCounts,
    histogram: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct IntervalCounts {
    ok: u64,
    failed: u64,
    bytes_in: u64,
    in_flight: u64,
    backlog: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self::of(Nanos::SECOND)
    }
}

impl Series {
    /// One whose points cover so much at first.
    pub fn of(stretch: Nanos) -> Self {
        Self { points: Vec::new(), stretch, width: 1 }
    }

    /// Adds what was seen in stretch number `stretch` (from 0).
    pub fn add(&mut self, stretch: u64, interval: &Interval) {
        while stretch / self.width >= MOST as u64 {
            self.widen();
        }
        let index = usize::try_from(stretch / self.width).unwrap_or(MOST - 1);
        while self.points.len() <= index {
            self.points.push(Packed::empty());
        }
        self.points[index].add(interval);
    }

    fn widen(&mut self) {
        self.width *= 2;
        let mut merged: Vec<Packed> = Vec::with_capacity(MOST);
        for (i, point) in std::mem::take(&mut self.points).into_iter().enumerate() {
            match merged.last_mut() {
                Some(last) if i % 2 == 1 => last.merge(&point),
                _ => merged.push(point),
            }
        }
        self.points = merged;
    }

    /// The points; the last one ends at `end_s`, the length of the run.
    pub fn points(&self, end_s: f64) -> Vec<Point> {
        let width = self.width as f64 * self.stretch.as_secs_f64();
        let points = self.points.iter().enumerate().map(|(i, packed)| {
            let start = i as f64 * width;
            packed.point(start, width.min((end_s - start).max(0.0)))
        });
        points.filter(|p| p.width_s > 0.0 || p.ok + p.failed > 0).collect()
    }
}

impl Packed {
    fn empty() -> Self {
        Self { interval: IntervalCounts::default(), histogram: Vec::new() }
    }

    fn unpacked(&self) -> Histogram {
        // Own bytes always come back; an empty point has none.
        Histogram::from_bytes(&self.histogram).unwrap_or_else(|_| Histogram::coarse())
    }

    fn add(&mut self, other: &Interval) {
        let counts = &mut self.interval;
        counts.ok += other.ok;
        counts.failed += other.failed;
        counts.bytes_in += other.bytes_in;
        (counts.in_flight, counts.backlog) = (other.in_flight, other.backlog);
        let mut histogram = self.unpacked();
        histogram.add(&other.response);
        self.histogram = histogram.to_bytes();
        self.histogram.shrink_to_fit();
    }

    fn merge(&mut self, later: &Self) {
        let counts = later.interval;
        self.add(&Interval {
            ok: counts.ok,
            failed: counts.failed,
            bytes_in: counts.bytes_in,
            response: later.unpacked(),
            backlog: counts.backlog,
            in_flight: counts.in_flight,
            counted: None,
        });
    }

    fn point(&self, t_s: f64, width_s: f64) -> Point {
        let histogram = self.unpacked();
        Point {
            t_s,
            width_s,
            ok: self.interval.ok,
            failed: self.interval.failed,
            bytes_in: self.interval.bytes_in,
            in_flight: self.interval.in_flight,
            backlog: self.interval.backlog,
            p50_ms: histogram.quantile(0.5).as_millis_f64(),
            p99_ms: histogram.quantile(0.99).as_millis_f64(),
            max_ms: histogram.max().as_millis_f64(),
            histogram: BASE64_STANDARD.encode(&self.histogram),
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
        let mut series = Series::default();
        series.add(0, &second(10, 5));
        series.add(0, &second(30, 50));
        let points = series.points(0.5);
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].ok, points[0].bytes_in), (40, 400));
        assert!((points[0].rate_per_s() - 80.0).abs() < 1e-9);
        assert!((points[0].p50_ms - 50.0).abs() < 1.0);
    }

    #[test]
    fn a_run_of_a_month_has_no_more_points_than_fit_and_loses_no_request() {
        let mut series = Series::default();
        for s in (0..30 * 86_400).step_by(600) {
            series.add(s, &second(3, 7));
        }
        let points = series.points(30.0 * 86_400.0);
        assert!(points.len() <= MOST);
        assert_eq!(points.iter().map(|p| p.ok).sum::<u64>(), 30 * 144 * 3);
        assert!(points.iter().all(|p| p.ok == 0 || (p.p99_ms - 7.0).abs() < 0.2));
    }

    #[test]
    fn a_second_without_answers_is_a_point_too() {
        let mut series = Series::default();
        series.add(0, &second(1, 1));
        series.add(3, &second(1, 1));
        assert_eq!(series.points(4.0).iter().map(|p| p.ok).collect::<Vec<_>>(), [1, 0, 0, 1]);
    }
}
