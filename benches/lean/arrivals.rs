//! Notes when each request arrived, and says how far that is from an even schedule.
//!
//! An even schedule has the asked period and one free number, its start; the start is taken as the median of
//! `t_k - k * period`, which a few stragglers cannot move. Only the middle 80 % of the arrivals are judged, so that
//! connecting and stopping are left out. A generator that keeps its spacing but not its rate drifts off the schedule,
//! and the deviation shows that too.

use crate::behaviour::{Answer, Behaviour, Ticket, quantile};
use crate::clock::Nanos;

/// Room for a run of a minute at 70,000 requests/s before the list has to move.
const ROOM: usize = 1 << 22;

/// Arrivals closer than this to the one before were sent in one burst.
const BURST_US: f64 = 20.0;

pub struct Arrivals {
    times: Vec<Nanos>,
}

impl Default for Arrivals {
    fn default() -> Self {
        // Written once, so that no page fault falls into the measuring.
        let mut times = vec![1; ROOM];
        times.clear();
        Self { times }
    }
}

impl Behaviour for Arrivals {
    fn arrived(&mut self, now: Nanos, _ticket: Ticket) -> Answer {
        self.times.push(now);
        Answer::Now
    }

    fn arrivals(&self, rate_per_s: Option<f64>) -> String {
        report(&self.times, rate_per_s)
    }

    fn reset(&mut self) {
        self.times.clear();
    }
}

/// The statistics as a JSON object; without an asked rate, the even schedule is the one between first and last.
fn report(times: &[Nanos], rate_per_s: Option<f64>) -> String {
    let n = times.len();
    let middle = &times[n / 10..n - n / 10];
    let [first, .., last] = middle else { return format!("{{\"n\":{n}}}") };
    let mean_period_ns = (last - first) as f64 / (middle.len() - 1) as f64;
    let period_ns = rate_per_s.map_or(mean_period_ns, |rate| 1e9 / rate);

    let mut gaps: Vec<f64> = middle.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3).collect();
    gaps.sort_by(f64::total_cmp);
    let bursts = gaps.partition_point(|&gap| gap < BURST_US) as f64 / gaps.len() as f64;
    let deviations = deviations_us(middle, period_ns);
    format!(
        "{{\"n\":{n},\"judged\":{},\"rate_per_s\":{:.3},\"gap_us\":{{\"p50\":{:.1},\"p99\":{:.1},\"max\":{:.1}}},\
         \"gaps_below_20us\":{bursts:.4},\
         \"deviation_us\":{{\"p50\":{:.1},\"p99\":{:.1},\"p999\":{:.1},\"max\":{:.1}}}}}",
        middle.len(),
        1e9 / mean_period_ns,
        quantile(&gaps, 0.5),
        quantile(&gaps, 0.99),
        quantile(&gaps, 1.0),
        quantile(&deviations, 0.5),
        quantile(&deviations, 0.99),
        quantile(&deviations, 0.999),
        quantile(&deviations, 1.0),
    )
}

/// How far each arrival is from the even schedule, without its sign, sorted.
fn deviations_us(times: &[Nanos], period_ns: f64) -> Vec<f64> {
    let first = times.first().copied().unwrap_or_default();
    let mut offsets: Vec<f64> =
        times.iter().enumerate().map(|(k, t)| ((t - first) as f64 - k as f64 * period_ns) / 1e3).collect();
    offsets.sort_by(f64::total_cmp);
    let start = quantile(&offsets, 0.5);
    let mut deviations: Vec<f64> = offsets.iter().map(|offset| (offset - start).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    deviations
}
