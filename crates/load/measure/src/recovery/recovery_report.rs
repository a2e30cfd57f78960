//! Result of a test of recovery (`docs/schema/capacity.schema.json`).

use serde::Serialize;

use super::baseline_bounds::totals;
use super::recovery_second::RecoverySecond;
use super::recovery_test::{RecoveryPhase, RecoveryTest, RecoveryVerdict, RestFinding};
use weir_histogram::Histogram;

/// Result of a test of recovery. Times of calls count from their intended starts, with all attempts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryReport {
    /// Verdict.
    pub verdict: RecoveryVerdict,
    /// Reason as a sentence.
    pub reason: String,
    /// Calls per second before and after the trigger.
    pub load_per_s: f64,
    /// The same as a fraction of the capacity that was found; none if the load was given.
    pub load_fraction: Option<f64>,
    /// Disturbance in words: `a spike to 240/s for 5 s`.
    pub trigger: String,
    /// Maximum retries of a call.
    pub retries: u64,
    /// Time after which a client gives a request up, in milliseconds.
    pub timeout_ms: f64,
    /// Seconds from the end of the trigger until calls were as before; none if they were not.
    pub recovery_s: Option<usize>,
    /// Finding without load; none if it was not taken away.
    pub rest: Option<RestFinding>,
    /// Maximum of the median time of a normal second, in milliseconds; none without a baseline.
    pub max_p50_ms: Option<f64>,
    /// Phases, in order.
    pub phases: Vec<PhaseReport>,
    /// Every second, in order.
    pub series: Vec<SecondReport>,
    /// Reasons not to trust the result; empty if there are none.
    pub doubts: Vec<String>,
}

/// Phase of the load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseReport {
    /// Phase.
    pub phase: RecoveryPhase,
    /// Start, in seconds since the start of the load.
    pub from_s: usize,
    /// Length, in seconds.
    pub duration_s: usize,
    /// Calls offered per second.
    pub offered_per_s: f64,
    /// Good calls per second.
    pub good_per_s: f64,
    /// Failed calls per second.
    pub failed_per_s: f64,
    /// Median time of good calls, in milliseconds; none without one.
    pub p50_ms: Option<f64>,
    /// 99th percentile of times of good calls, in milliseconds; none without one.
    pub p99_ms: Option<f64>,
    /// Requests per call; none without a call.
    pub requests_per_call: Option<f64>,
}

/// One second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SecondReport {
    /// Start, in seconds since the start of the load.
    pub t_s: usize,
    /// Calls offered per second.
    pub offered_per_s: f64,
    /// Good calls.
    pub good: u64,
    /// Failed calls.
    pub failed: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Median time of good calls, in milliseconds; none without one.
    pub p50_ms: Option<f64>,
    /// 90th percentile of times of good calls, in milliseconds; none without one.
    pub p90_ms: Option<f64>,
    /// Requests in flight at its end.
    pub in_flight: u64,
}

/// Subject of a test.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveryFacts {
    /// Calls per second before and after the trigger.
    pub load_per_s: f64,
    /// The same as a fraction of the capacity that was found.
    pub load_fraction: Option<f64>,
    /// Disturbance in words.
    pub trigger: String,
    /// Maximum retries of a call.
    pub retries: u64,
    /// Time after which a client gives a request up, in milliseconds.
    pub timeout_ms: f64,
    /// Reason of the end, of a test that was cut off.
    pub cut_off: String,
    /// Reasons not to trust the result.
    pub doubts: Vec<String>,
}

impl RecoveryReport {
    /// Report of a test.
    pub fn of(test: &RecoveryTest, facts: RecoveryFacts) -> Self {
        let finding = test.finding(&facts.cut_off);
        let mut doubts = facts.doubts;
        let waited = test.seconds().iter().map(|second| second.backlog).max().unwrap_or(0);
        // Below a tenth of a second's calls it is the way of random arrivals.
        if waited as f64 > facts.load_per_s / 10.0 {
            doubts.push(format!(
                "up to {waited} calls waited within weir, so the load was less than planned; raise -c, or use another machine"
            ));
        }
        let phases = test.starts().iter().map(|(phase, from)| phase_report(*phase, *from, test.seconds_of(*phase)));
        Self {
            verdict: finding.verdict,
            reason: finding.reason,
            load_per_s: facts.load_per_s,
            load_fraction: facts.load_fraction,
            trigger: facts.trigger,
            retries: facts.retries,
            timeout_ms: facts.timeout_ms,
            recovery_s: finding.recovery_s,
            rest: finding.rest,
            max_p50_ms: test.bounds().map(|bounds| bounds.max_p50_ms),
            phases: phases.filter(|phase| phase.duration_s > 0).collect(),
            series: (0..).zip(test.seconds()).map(|(t_s, second)| second_report(t_s, second)).collect(),
            doubts,
        }
    }
}

fn phase_report(phase: RecoveryPhase, from_s: usize, seconds: &[RecoverySecond]) -> PhaseReport {
    let length = seconds.len().max(1) as f64;
    let (good, failed) = totals(seconds);
    let requests: u64 = seconds.iter().map(|second| second.requests).sum();
    let mut times = Histogram::coarse();
    seconds.iter().for_each(|second| times.add(&second.times));
    PhaseReport {
        phase,
        from_s,
        duration_s: seconds.len(),
        offered_per_s: seconds.iter().map(|second| second.offered_per_s).sum::<f64>() / length,
        good_per_s: good / length,
        failed_per_s: failed / length,
        p50_ms: times.quantile_ms(0.5),
        p99_ms: times.quantile_ms(0.99),
        requests_per_call: (good + failed > 0.0).then(|| requests as f64 / (good + failed)),
    }
}

fn second_report(t_s: usize, second: &RecoverySecond) -> SecondReport {
    SecondReport {
        t_s,
        offered_per_s: second.offered_per_s,
        good: second.good,
        failed: second.failed,
        requests: second.requests,
        p50_ms: second.quantile_ms(0.5),
        p90_ms: second.quantile_ms(0.9),
        in_flight: second.in_flight,
    }
}
