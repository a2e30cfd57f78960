//! Time series of the steps of scenarios, in bounded memory.
//!
//! All steps together have a number of points, so a series of fifty steps has wider points than one of three: a run of
//! ten hours with fifty steps must not fill the memory, nor the file of its result. A point keeps its histogram while
//! the run lasts, so percentiles of merged points are exact; the result has the percentiles alone.

use serde::{Deserialize, Serialize};

use super::packed_histogram::{packed_sum, unpacked};
use super::step_counts::StepInterval;
use weir_base::Nanos;
use weir_histogram::percentiles::null_or_ms;

/// Maximum number of points of all steps of a run, unless that would leave a step fewer than [`MIN_POINTS_PER_STEP`].
pub const MAX_STEP_POINTS: usize = 6_000;
/// Number of points that a step may have, however many steps there are.
pub const MIN_POINTS_PER_STEP: usize = 60;
/// Maximum number of points of a step, as of the whole run.
const MAX_POINTS_PER_STEP: usize = 1200;

/// Interval of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepPoint {
    /// Start of the interval, in seconds since the start of the run.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub width_s: f64,
    /// Successes that ended in the interval.
    pub ok: u64,
    /// Failed requests that ended in the interval.
    pub failed: u64,
    /// Median response time of the successes, in milliseconds; `None` without any.
    #[serde(deserialize_with = "null_or_ms")]
    pub p50_ms: Option<f64>,
    /// 99th percentile of these times, in milliseconds.
    #[serde(deserialize_with = "null_or_ms")]
    pub p99_ms: Option<f64>,
}

/// Points of the steps of a run, in order of time.
#[derive(Debug)]
pub(super) struct StepSeries {
    steps: Vec<Vec<PackedStepPoint>>,
    /// Intervals per point now; a power of two.
    intervals_per_point: u64,
}

#[derive(Clone, Debug, Default)]
struct PackedStepPoint {
    ok: u64,
    failed: u64,
    histogram: Vec<u8>,
}

impl Default for StepSeries {
    fn default() -> Self {
        Self { steps: Vec::new(), intervals_per_point: 1 }
    }
}

impl StepSeries {
    /// Adds the counts of interval `number`, from 0.
    pub(super) fn add(&mut self, number: u64, steps: &[StepInterval]) {
        if self.steps.len() < steps.len() {
            self.steps.resize_with(steps.len(), Vec::new);
        }
        let max_points = (MAX_STEP_POINTS / self.steps.len().max(1)).clamp(MIN_POINTS_PER_STEP, MAX_POINTS_PER_STEP);
        while number / self.intervals_per_point >= max_points as u64
            || self.steps.iter().any(|points| points.len() > max_points)
        {
            self.widen();
        }
        let index = usize::try_from(number / self.intervals_per_point).unwrap_or(max_points - 1);
        for (points, interval) in self.steps.iter_mut().zip(steps).filter(|(_, interval)| interval.requests > 0) {
            if points.len() <= index {
                points.resize_with(index + 1, PackedStepPoint::default);
            }
            points[index].add(interval);
        }
    }

    fn widen(&mut self) {
        self.intervals_per_point *= 2;
        for points in &mut self.steps {
            let mut merged: Vec<PackedStepPoint> = Vec::with_capacity(points.len() / 2 + 1);
            for (i, point) in std::mem::take(points).into_iter().enumerate() {
                match merged.last_mut() {
                    Some(last) if i % 2 == 1 => last.merge(point),
                    _ => merged.push(point),
                }
            }
            *points = merged;
        }
    }

    /// Points of a step, in intervals of a length before any merge; the last one ends at `end_s`, the length of the run.
    pub(super) fn points(&self, step: usize, interval: Nanos, end_s: f64) -> Vec<StepPoint> {
        let width = self.intervals_per_point as f64 * interval.as_secs_f64();
        let packed = self.steps.get(step).map(Vec::as_slice).unwrap_or_default();
        let points = packed.iter().enumerate().map(|(i, point)| {
            let t_s = i as f64 * width;
            point.point(t_s, width.min((end_s - t_s).max(0.0)))
        });
        points.filter(|point| point.width_s > 0.0 || point.ok + point.failed > 0).collect()
    }
}

impl PackedStepPoint {
    fn add(&mut self, interval: &StepInterval) {
        self.ok += interval.requests.saturating_sub(interval.failed);
        self.failed += interval.failed;
        if interval.times.count() > 0 {
            self.histogram = packed_sum(&self.histogram, &interval.times);
        }
    }

    fn merge(&mut self, later: Self) {
        self.ok += later.ok;
        self.failed += later.failed;
        match (self.histogram.is_empty(), later.histogram.is_empty()) {
            (_, true) => {}
            (true, false) => self.histogram = later.histogram,
            (false, false) => self.histogram = packed_sum(&self.histogram, &unpacked(&later.histogram)),
        }
    }

    fn point(&self, t_s: f64, width_s: f64) -> StepPoint {
        let times = unpacked(&self.histogram);
        StepPoint {
            t_s,
            width_s,
            ok: self.ok,
            failed: self.failed,
            p50_ms: times.quantile_ms(0.5),
            p99_ms: times.quantile_ms(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interval of a step with successes of a length, and a failure.
    fn interval(ok: u64, ms: u64) -> StepInterval {
        let mut interval = StepInterval { requests: ok + 1, failed: 1, ..StepInterval::default() };
        (0..ok).for_each(|_| interval.times.record(Nanos::from_millis(ms)));
        interval
    }

    #[test]
    fn each_step_has_its_own_times_at_any_width_of_points() {
        let mut series = StepSeries::default();
        for second in 0..5_000 {
            series.add(second, &[interval(2, 5), interval(1, 50)]);
        }
        let near = |time: Option<f64>, ms: f64| time.is_some_and(|time| (time - ms).abs() < 0.02 * ms);
        for (step, ok, ms) in [(0, 10_000, 5.0), (1, 5_000, 50.0)] {
            let points = series.points(step, Nanos::SECOND, 5_000.0);
            assert!((600..=MAX_POINTS_PER_STEP).contains(&points.len()), "{}", points.len());
            assert_eq!(points.iter().map(|point| point.ok).sum::<u64>(), ok);
            assert_eq!(points.iter().map(|point| point.failed).sum::<u64>(), 5_000);
            assert!((points.iter().map(|point| point.width_s).sum::<f64>() - 5_000.0).abs() < 1e-6);
            assert!(points.iter().all(|point| near(point.p50_ms, ms) && point.p99_ms >= point.p50_ms));
        }
        assert!(series.points(2, Nanos::SECOND, 5_000.0).is_empty());
    }

    #[test]
    fn ten_hours_of_fifty_steps_have_no_more_points_than_fit_and_lose_no_request() {
        let mut series = StepSeries::default();
        let all = vec![interval(1, 7); 50];
        // A step that is first seen late makes the points of all of them wider.
        (0..36_000).step_by(30).for_each(|second| series.add(second, if second < 900 { &all[..1] } else { &all }));
        let points: Vec<Vec<StepPoint>> = (0..50).map(|step| series.points(step, Nanos::SECOND, 36_000.0)).collect();
        assert!(points.iter().map(Vec::len).sum::<usize>() <= MAX_STEP_POINTS);
        let bytes: usize = series.steps.iter().flatten().map(|point| point.histogram.capacity()).sum();
        assert!(bytes < 4 << 20, "{bytes} bytes");
        for (step, expected) in [(0, 1_200), (49, 1_170)] {
            assert_eq!(points[step].iter().map(|point| point.ok).sum::<u64>(), expected);
        }
    }

    #[test]
    fn an_interval_without_requests_of_a_step_is_a_point_without_times() {
        let mut series = StepSeries::default();
        series.add(0, &[interval(1, 1), StepInterval::default()]);
        series.add(2, &[interval(1, 1)]);
        let points = series.points(0, Nanos::SECOND, 2.5);
        assert_eq!(points.iter().map(|point| (point.ok, point.failed)).collect::<Vec<_>>(), [(1, 1), (0, 0), (1, 1)]);
        assert_eq!((points[1].p50_ms, points[2].width_s), (None, 0.5));
        assert!(series.points(1, Nanos::SECOND, 2.5).is_empty());
    }
}
