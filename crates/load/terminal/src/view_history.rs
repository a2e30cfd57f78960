//! Last minutes of a run, a point for each interval.

use std::collections::VecDeque;

use weir_measure::recorder::Interval;

/// Last minutes of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewHistory {
    points: VecDeque<ViewPoint>,
}

/// An interval in the charts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ViewPoint {
    /// End, in seconds since the start of the run.
    pub(crate) end_s: f64,
    /// Requests per second, or iterations with scenarios: what the rate that is set is of.
    pub(crate) rate_per_s: f64,
    /// Arrival rate that is set; none in a closed loop.
    pub(crate) target_per_s: Option<f64>,
    /// Median response time of successes; none without any.
    pub(crate) p50_ms: Option<f64>,
    /// 99th percentile of them.
    pub(crate) p99_ms: Option<f64>,
    /// Connections of WebSocket at the end, and those upgraded per second; none without WebSocket.
    pub(crate) held: Option<f64>,
    pub(crate) upgraded_per_s: Option<f64>,
}

/// Maximum number of points.
const MAX_POINTS: usize = 300;

impl ViewHistory {
    /// Adds an interval of a length that ended at `end_s`.
    pub(crate) fn push(&mut self, end_s: f64, width_s: f64, interval: &Interval, target_per_s: Option<f64>) {
        if self.points.len() == MAX_POINTS {
            self.points.pop_front();
        }
        let times = &interval.response;
        let rate_per_s = if width_s > 0.0 { interval.ended() as f64 / width_s } else { 0.0 };
        let (p50_ms, p99_ms) = (times.quantile_ms(0.5), times.quantile_ms(0.99));
        let websocket = interval.websocket.as_deref();
        self.points.push_back(ViewPoint {
            end_s,
            rate_per_s,
            target_per_s,
            p50_ms,
            p99_ms,
            held: websocket.map(|point| point.held as f64),
            upgraded_per_s: websocket.filter(|_| width_s > 0.0).map(|point| point.upgraded as f64 / width_s),
        });
    }

    /// Times and values of the points that have one.
    pub(crate) fn values(&self, value: impl Fn(&ViewPoint) -> Option<f64>) -> Vec<(f64, f64)> {
        self.points.iter().filter_map(|point| Some((point.end_s, value(point)?))).collect()
    }

    /// First and last time, in seconds; a span is at least some seconds long.
    pub(crate) fn span_s(&self) -> [f64; 2] {
        let first = self.points.front().map_or(0.0, |point| point.end_s);
        let last = self.points.back().map_or(0.0, |point| point.end_s);
        [first, last.max(first + MIN_SPAN_S)]
    }
}

/// Shortest span of the charts, in seconds.
const MIN_SPAN_S: f64 = 10.0;
