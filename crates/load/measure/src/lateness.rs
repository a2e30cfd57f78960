//! Lateness of the generator, judged by its effect on percentiles of response times.

use super::step_counts::StepCounts;
use weir_histogram::Histogram;
use weir_histogram::percentiles::Percentiles;

/// Maximum lateness as a fraction of the response time at the same quantile.
pub const MAX_LATENESS_FRACTION: f64 = 0.1;
/// Tolerated lateness in milliseconds by quantile, whatever its fraction: an idle virtual machine wakes threads up with
/// a delay.
pub const TOLERATED_LATENESS_MS: [(f64, f64); 5] =
    [(0.5, 0.2), (0.75, 0.5), (0.9, 1.0), (0.95, 1.0), (0.99, TOLERATED_LATENESS_P99_MS)];
/// Tolerated lateness at the 99th percentile, in milliseconds.
const TOLERATED_LATENESS_P99_MS: f64 = 2.0;
/// Whether lateness distorts the 99th percentile of response times.
pub(super) fn is_p99_distorted(lateness_ms: &Percentiles, response_ms: &Percentiles) -> bool {
    let both = lateness_ms.p99.zip(response_ms.p99);
    both.is_some_and(|(late, response)| is_distorted(late, response, TOLERATED_LATENESS_P99_MS))
}

/// Whether lateness distorts a percentile of response times; all in milliseconds.
fn is_distorted(late: f64, response: f64, least: f64) -> bool {
    late > least.max(response * MAX_LATENESS_FRACTION)
}

/// Whether lateness distorts a quantile of response times, of those that are judged.
pub(super) fn is_any_distorted(
    lateness: &Histogram,
    response: &Histogram,
    service: &Histogram,
    is_judged: impl Fn(f64) -> bool,
) -> bool {
    // Response time minus lateness is the service time, or more if the request waited for a connection. So lateness
    // distorts no quantile by more than the difference of both.
    let distorted = |&(q, least): &(f64, f64)| {
        let times = [lateness, response, service].map(|times| times.quantile_ms(q));
        let [Some(late), Some(within), Some(service)] = times else { return false };
        is_judged(q) && is_distorted(late.min(within - service), within, least)
    };
    TOLERATED_LATENESS_MS.iter().any(distorted)
}

/// Minimum number of responses beyond a judged quantile of a step. Fewer are what one stall of the machine makes late,
/// and a step may have few requests.
const MIN_TAIL_RESPONSES: f64 = 3.0;

/// Whether lateness distorts the percentiles of a step. Quantiles with few responses beyond them are not judged.
pub(super) fn is_step_distorted(step: &StepCounts) -> bool {
    // Of 30 responses, 3 are beyond 0.9, and 2.9999999999999996 in floating point.
    let has_tail = |q: f64| step.ok as f64 * (1.0 - q) > MIN_TAIL_RESPONSES - 0.01;
    is_any_distorted(&step.lateness, &step.response, &step.service, has_tail)
}
