//! Power and false positives of verdicts: many simulated studies of variants with a known difference.

use crate::compare::{Better, Finding, Metric, MetricSample, Pair, Settings, UnclearReason, judge};
use weir_base::rng::SeededRng;

/// Disturbances of runs, as fractions of the figure.
#[derive(Clone, Copy, Debug)]
struct NoiseModel {
    name: &'static str,
    /// Log-normal noise of each run.
    noise: f64,
    /// Drift from round to round, on both sides.
    drift: f64,
    /// Disturbance of one round in ten, different for each run.
    bad_rounds: f64,
    /// Slowdown of three runs in a hundred.
    outliers: f64,
}

const NOISE_MODELS: [NoiseModel; 5] = [
    NoiseModel { name: "1%", noise: 0.01, drift: 0.0, bad_rounds: 0.0, outliers: 0.0 },
    NoiseModel { name: "2%", noise: 0.02, drift: 0.0, bad_rounds: 0.0, outliers: 0.0 },
    NoiseModel { name: "2% and drift", noise: 0.02, drift: 0.01, bad_rounds: 0.0, outliers: 0.0 },
    NoiseModel { name: "1.5%, drift and bad rounds", noise: 0.015, drift: 0.01, bad_rounds: 0.1, outliers: 0.0 },
    NoiseModel { name: "1.5%, drift and outliers", noise: 0.015, drift: 0.01, bad_rounds: 0.0, outliers: 0.08 },
];
/// Default repeats of a study.
const REPEATS_PER_STUDY: usize = 10;

impl NoiseModel {
    /// Simulated study: response times of two variants, the second `slower` times as long.
    fn study(&self, repeats: usize, slower: f64, rng: &mut SeededRng) -> (MetricSample, MetricSample) {
        let (mut base, mut other, mut level) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..repeats {
            level += self.drift * rng.normal();
            let bad = if rng.unit() < 0.1 { self.bad_rounds } else { 0.0 };
            let mut run = |factor: f64| {
                let outlier = if rng.unit() < 0.03 { self.outliers } else { 0.0 };
                let disturbed = bad * (1.0 + 0.5 * rng.exponential());
                100.0 * factor * (level + self.noise * rng.normal() + disturbed + outlier).exp()
            };
            base.push(run(1.0));
            other.push(run(slower));
        }
        (MetricSample::in_rounds(base), MetricSample::in_rounds(other))
    }

    /// Number of 100 such studies with the wanted finding.
    fn found(&self, slower: f64, wanted: impl Fn(Finding) -> bool) -> usize {
        let mut rng = SeededRng::new(11, 0);
        let settings = Settings { resamples: 499, ..Settings::default() };
        let verdicts = (0..100).map(|_| {
            let (base, other) = self.study(REPEATS_PER_STUDY, slower, &mut rng);
            judge(&[Pair { metric: &time(), base: &base, other: &other }], &settings)[0].finding
        });
        verdicts.filter(|finding| wanted(*finding)).count()
    }
}

fn time() -> Metric {
    Metric::ratio("p50", "ms", Better::Lower)
}

fn one(base: &MetricSample, other: &MetricSample) -> crate::compare::ComparisonVerdict {
    judge(&[Pair { metric: &time(), base, other }], &Settings::default()).remove(0)
}

#[test]
fn of_a_hundred_studies_of_the_same_thing_five_at_most_find_a_difference() {
    for world in NOISE_MODELS {
        let wrong = world.found(1.0, |finding| matches!(finding, Finding::Better | Finding::Worse));
        assert!(wrong <= 5, "{}: {wrong}", world.name);
    }
}

#[test]
fn of_a_hundred_studies_of_something_slower_by_5_percent_ninety_call_it_worse() {
    for world in NOISE_MODELS {
        let right = world.found(1.05, |finding| finding == Finding::Worse);
        let wrong = world.found(1.05, |finding| matches!(finding, Finding::Better | Finding::Same));
        assert!(right >= 90 && wrong <= 1, "{}: {right} right, {wrong} wrong", world.name);
    }
}

#[test]
fn what_is_the_same_is_found_to_be_the_same_where_runs_agree() {
    assert!(NOISE_MODELS[0].found(1.0, |finding| finding == Finding::Same) >= 95);
}

#[test]
fn twenty_comparisons_of_equals_hardly_ever_hold_one_difference() {
    let mut rng = SeededRng::new(5, 0);
    let settings = Settings { resamples: 1_999, ..Settings::default() };
    let wrong = (0..20).filter(|_| {
        let cells: Vec<_> = (0..20).map(|_| NOISE_MODELS[1].study(5, 1.0, &mut rng)).collect();
        let metric = time();
        let pairs: Vec<_> = cells.iter().map(|(base, other)| Pair { metric: &metric, base, other }).collect();
        judge(&pairs, &settings).iter().any(|verdict| matches!(verdict.finding, Finding::Better | Finding::Worse))
    });
    assert!(wrong.count() <= 2);
}

#[test]
fn what_changes_from_round_to_round_drops_out_by_round_only() {
    // Each round is 20% slower than the one before it; the other side is always slower by 5% and a little.
    let rounds = || (0..8).map(|round| 1.2_f64.powi(round));
    let other = || rounds().zip([1.049, 1.052, 1.05, 1.047, 1.053, 1.05, 1.051, 1.048]).map(|(level, by)| level * by);
    let verdict = one(&MetricSample::in_rounds(rounds()), &MetricSample::in_rounds(other()));
    assert_eq!(verdict.finding, Finding::Worse);
    assert!((verdict.effect.unwrap_or(0.0) - 1.05).abs() < 0.001, "{verdict:?}");
    assert!(verdict.interval.is_some_and(|of| of.low > 1.045 && of.high < 1.055), "{verdict:?}");
    let verdict = one(&MetricSample::unpaired(rounds()), &MetricSample::unpaired(other()));
    assert!(matches!(verdict.finding, Finding::Unclear(UnclearReason::TooNoisy(_))), "{verdict:?}");
}

#[test]
fn one_run_cannot_tell_and_two_cannot_either() {
    let sample = |values: &[f64]| MetricSample::unpaired(values.iter().copied());
    let verdict = one(&sample(&[100.0]), &sample(&[150.0]));
    assert_eq!(verdict.finding, Finding::Unclear(UnclearReason::OneRun));
    assert!((verdict.effect.unwrap_or(0.0) - 1.5).abs() < 1e-9, "it is said all the same: {verdict:?}");
    let verdict = one(&sample(&[100.0, 101.0]), &sample(&[150.0, 151.0]));
    assert_eq!(verdict.finding, Finding::Unclear(UnclearReason::TooFew));
    let verdict = one(&sample(&[]), &sample(&[150.0]));
    assert_eq!((verdict.finding, verdict.effect), (Finding::Unclear(UnclearReason::NoFigures), None));
}

#[test]
fn runs_that_may_not_be_trusted_never_win_and_may_lose() {
    let sample = |level: f64, untrusted: usize| {
        let mut sample = MetricSample::in_rounds([0.99, 1.0, 1.01, 1.0, 0.995].map(|part| level * part));
        sample.figures.iter_mut().take(untrusted).for_each(|figure| figure.trusted = false);
        sample
    };
    let finding = |base, other| one(&base, &other).finding;
    assert_eq!(finding(sample(100.0, 0), sample(80.0, 1)), Finding::Better, "one in five");
    assert_eq!(finding(sample(100.0, 0), sample(80.0, 2)), Finding::Unclear(UnclearReason::Untrusted));
    assert_eq!(finding(sample(100.0, 2), sample(80.0, 0)), Finding::Better);
    assert_eq!(finding(sample(100.0, 2), sample(120.0, 0)), Finding::Unclear(UnclearReason::Untrusted));
    assert_eq!(finding(sample(100.0, 0), sample(120.0, 2)), Finding::Worse);
    assert_eq!(finding(sample(100.0, 2), sample(100.0, 0)), Finding::Unclear(UnclearReason::Untrusted));
}

#[test]
fn figures_that_never_differ_are_the_same_and_a_constant_difference_is_one() {
    let constant = |value: f64| MetricSample::unpaired([value; 4]);
    let verdict = one(&constant(10.0), &constant(10.0));
    assert_eq!((verdict.finding, verdict.effect), (Finding::Same, Some(1.0)));
    assert_eq!(one(&constant(10.0), &constant(11.0)).finding, Finding::Worse);
}

#[test]
fn shares_that_may_be_zero_are_compared_in_points() {
    let metric = Metric::fraction("errors", Better::Lower);
    let judged = |base: [f64; 4], other: [f64; 4]| {
        let (base, other) = (MetricSample::unpaired(base), MetricSample::unpaired(other));
        judge(&[Pair { metric: &metric, base: &base, other: &other }], &Settings::default()).remove(0)
    };
    assert_eq!(judged([0.0; 4], [0.0; 4]).finding, Finding::Same);
    let verdict = judged([0.0; 4], [0.05, 0.06, 0.05, 0.04]);
    assert_eq!(verdict.finding, Finding::Worse);
    assert!((verdict.effect.unwrap_or(0.0) - 0.05).abs() < 1e-9);
}

#[test]
fn the_same_figures_and_seed_give_the_same_verdict() {
    let (base, other) = NOISE_MODELS[1].study(6, 1.02, &mut SeededRng::new(3, 3));
    assert_eq!(one(&base, &other), one(&base, &other));
}

/// Verdicts on rates and errors of runs in turns.
fn beside_failures(rates: [[f64; 8]; 2], failed: [[f64; 8]; 2]) -> Finding {
    let settings = Settings::default();
    let [base, other] = rates.map(MetricSample::in_rounds);
    let metric = Metric::ratio("rate", "/s", Better::Higher);
    let [rate] = judge(&[Pair { metric: &metric, base: &base, other: &other }], &settings).try_into().expect("one");
    let [base, other] = failed.map(MetricSample::in_rounds);
    let metric = Metric::fraction("errors", Better::Lower);
    let [failed] = judge(&[Pair { metric: &metric, base: &base, other: &other }], &settings).try_into().expect("one");
    rate.unless_it_fails_more(&failed, &settings).finding
}

#[test]
fn who_fails_more_is_not_called_faster_for_it() {
    let wobble = |value: f64| [0.998, 1.003, 1.0, 0.997, 1.002, 1.001, 0.999, 1.004].map(|share| value * share);
    let (slow, fast) = (wobble(1000.0), wobble(1500.0));
    let (none, few, many) = ([0.0; 8], wobble(0.004), wobble(0.2));
    assert_eq!(beside_failures([slow, fast], [none, none]), Finding::Better);
    assert_eq!(beside_failures([slow, fast], [none, few]), Finding::Better, "0.4% is less than what matters");
    assert_eq!(beside_failures([slow, fast], [none, many]), Finding::Unclear(UnclearReason::Failures));
    assert_eq!(beside_failures([slow, fast], [many, none]), Finding::Better);
    assert_eq!(beside_failures([fast, slow], [none, many]), Finding::Worse, "slower, and it fails more");
    assert_eq!(beside_failures([fast, slow], [many, none]), Finding::Unclear(UnclearReason::Failures), "the base does");
    let now_and_then = [0.0, 0.9, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0];
    assert_eq!(
        beside_failures([slow, fast], [none, now_and_then]),
        Finding::Unclear(UnclearReason::Failures),
        "it looks so"
    );
}
