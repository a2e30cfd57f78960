//! May a run be believed, and if not, why, in words that say what to do.
//!
//! A load generator that is late, saturated or measuring too little still prints figures with three digits. Each
//! rule here catches one way in which figures have been wrong in the field:
//!
//! 1. too short or too few: percentiles of a handful are noise;
//! 2. the generator was late: response times then hold its own delay;
//! 3. the generator used up its core: the limit found is its own;
//! 4. Little's law, N = X R (Little 1961): requests in the system, averaged over time, must equal throughput times
//!    mean response time. It ties three independently taken figures together; where it fails, one of them is wrong;
//! 5. requests without an answer have no response time, so percentiles are of the lucky ones.

use serde::{Deserialize, Serialize};

use super::recorder::Totals;
use super::run::Run;
use crate::decide::Nanos;

/// The least measured time, in seconds, that is not called too short.
pub const LEAST_S: f64 = 1.0;
/// The fewest answers that are not called too few: below, the 99th percentile is the maximum.
pub const LEAST_ANSWERS: u64 = 100;
/// The largest accepted deviation from Little's law.
pub const LITTLE: f64 = 0.05;
/// The largest accepted share of a core.
pub const CPU_SHARE: f64 = 0.95;

/// Whether a run may be believed, and the reasons when not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trust {
    /// Whether nothing speaks against it.
    pub ok: bool,
    /// What speaks against it, a sentence each.
    pub reasons: Vec<String>,
}

/// What the judgement rests on.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// Length of the window, in seconds.
    pub duration_s: f64,
    /// What was counted.
    pub totals: &'a Totals,
    /// Arrivals per second meant to start.
    pub offered: f64,
    /// Answers per second.
    pub achieved: f64,
    /// Arrivals never sent.
    pub dropped: u64,
    /// The busiest generator thread's share of a core.
    pub cpu_share: f64,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
}

impl Trust {
    /// Applies every rule.
    pub fn judge(evidence: &Evidence<'_>) -> Self {
        let reasons: Vec<String> =
            [too_little, late, saturated, little, unanswered].iter().filter_map(|rule| rule(evidence)).collect();
        Self { ok: reasons.is_empty(), reasons }
    }
}

/// Whether what was slow in a run may have been weir itself: a thread that had no time left, or sends that were late by
/// more than a tenth of the slow response times.
pub fn is_own_fault(run: &Run) -> bool {
    run.cpu_share > CPU_SHARE || run.lateness_ms.p99 > (run.response_ms.p99 / 10.0).max(Nanos::MILLI.as_millis_f64())
}

fn too_little(e: &Evidence<'_>) -> Option<String> {
    let answers = e.totals.answers();
    if answers < LEAST_ANSWERS {
        return Some(format!(
            "too few answers: {answers}; below {LEAST_ANSWERS} the high percentiles are single requests. Run longer."
        ));
    }
    (e.duration_s < LEAST_S)
        .then(|| format!("too short: {:.3} s measured; run for at least {LEAST_S} s, better 10.", e.duration_s))
}

fn late(e: &Evidence<'_>) -> Option<String> {
    let (lateness, median) = (&e.totals.lateness, e.totals.response.quantile(0.5));
    let tenth = Nanos(median.0 / 10);
    let (p50, p99) = (lateness.quantile(0.5), lateness.quantile(0.99));
    (p99 > tenth.max(Nanos::MILLI) || p50 > tenth.max(Nanos(200_000))).then(|| {
        format!(
            "weir itself sent late: half of the requests by {p50}, 1 % by {p99} or more, where the median response time \
             is {median}. Lower the rate, use more threads (-t), or another machine."
        )
    })
}

fn saturated(e: &Evidence<'_>) -> Option<String> {
    (e.cpu_share > CPU_SHARE).then(|| {
        format!(
            "weir's busiest thread used {:.0} % of a core: the limit may be weir's own, and response times hold waiting \
             inside weir. Use more threads (-t) or another machine, or fewer connections.",
            e.cpu_share * 100.0
        )
    })
}

fn little(e: &Evidence<'_>) -> Option<String> {
    let product = e.achieved * e.totals.response.mean_ns() / 1e9;
    // Failures are in the system too, but have no response time; rule 5 speaks of them.
    let few_failures = e.totals.unanswered() * 100 <= e.totals.requests && e.dropped == 0;
    let ratio = product / e.in_flight_mean;
    (few_failures && e.totals.answers() >= LEAST_ANSWERS && e.duration_s >= LEAST_S && (ratio - 1.0).abs() > LITTLE)
        .then(|| {
            format!(
                "Little's law does not hold: {:.2} requests in the system on average, but throughput x mean response \
                 time is {product:.2}. The load changed during the run, or it is short beside its response times.",
                e.in_flight_mean
            )
        })
}

fn unanswered(e: &Evidence<'_>) -> Option<String> {
    let lost = e.totals.unanswered() + e.dropped;
    let all = e.totals.requests + e.dropped;
    // A hundredth: then the 99th percentile itself is one of those that have no figure.
    (lost > 0 && lost * 100 >= all).then(|| {
        format!(
            "{lost} of {all} requests got no answer{}; percentiles are over answers only, so true ones are higher.",
            if e.dropped > 0 {
                format!(" ({} never sent: no connection was free in time)", e.dropped)
            } else {
                String::new()
            }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{End, Failure, Outcome};
    use super::super::recorder::Recorder;
    use super::super::run::{Connections, Manifest, Model, Parts, Target};
    use super::*;

    fn outcome(response_ms: u64, late_us: u64, end: End) -> Outcome {
        let done = Nanos::from_millis(response_ms);
        Outcome {
            number: 0,
            intended: Nanos::ZERO,
            ready: Nanos::ZERO,
            sent: Nanos(late_us * 1000),
            first_byte: done,
            done,
            connect: Nanos::ZERO,
            end,
            bytes_in: 1,
            body_in: 1,
            bytes_out: 1,
        }
    }

    fn totals(n: u64, response_ms: u64, late_us: u64) -> Totals {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        (0..n).for_each(|_| recorder.record(&outcome(response_ms, late_us, End::Answer(200))));
        recorder.totals
    }

    fn evidence(totals: &Totals) -> Evidence<'_> {
        Evidence {
            duration_s: 10.0,
            totals,
            offered: 100.0,
            achieved: 100.0,
            dropped: 0,
            cpu_share: 0.3,
            in_flight_mean: 1.0,
        }
    }

    fn reasons(e: &Evidence<'_>) -> Vec<String> {
        Trust::judge(e).reasons
    }

    #[test]
    fn a_sound_run_is_believed() {
        let totals = totals(1000, 10, 30);
        assert_eq!(Trust::judge(&evidence(&totals)), Trust { ok: true, reasons: vec![] });
    }

    #[test]
    fn each_fault_is_one_reason() {
        let sound = totals(1000, 10, 30);
        let late = totals(1000, 10, 1500);
        let few = totals(99, 10, 30);
        let cases = [
            (Evidence { duration_s: 0.4, ..evidence(&sound) }, "too short"),
            (evidence(&few), "too few"),
            (evidence(&late), "sent late"),
            (Evidence { cpu_share: 0.97, ..evidence(&sound) }, "97 % of a core"),
            (Evidence { in_flight_mean: 1.2, ..evidence(&sound) }, "Little's law"),
            (Evidence { dropped: 20, ..evidence(&sound) }, "20 of 1020 requests got no answer"),
        ];
        for (evidence, words) in cases {
            let reasons = reasons(&evidence);
            assert!(reasons.len() == 1 && reasons[0].contains(words), "{words}: {reasons:?}");
        }
    }

    #[test]
    fn a_run_without_answers_says_so_and_nothing_absurd() {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        (0..500).for_each(|_| recorder.record(&outcome(1, 0, End::Failed(Failure::Reset))));
        let reasons = reasons(&Evidence { achieved: 0.0, in_flight_mean: 0.0, ..evidence(&recorder.totals) });
        assert_eq!(reasons.len(), 2, "{reasons:?}");
    }

    #[test]
    fn a_thread_without_time_and_late_sends_are_weir_s_own_fault() {
        let run = |cpu_share: f64, late_us: u64| {
            Run::new(Parts {
                model: Model::Closed,
                target: Target::default(),
                totals: totals(1000, 10, late_us),
                series: Vec::new(),
                duration_s: 10.0,
                warmup_s: 0.0,
                offered: None,
                dropped: 0,
                unfinished: 0,
                connections: Connections::default(),
                cpu_s: 0.0,
                cpu_share,
                spins: false,
                in_flight_mean: 1.0,
                interrupted: false,
                manifest: Manifest::default(),
            })
        };
        assert!(!is_own_fault(&run(0.5, 900)));
        assert!(is_own_fault(&run(0.5, 1_500)), "more than a tenth of 10 ms");
        assert!(is_own_fault(&run(0.97, 30)));
    }
}
