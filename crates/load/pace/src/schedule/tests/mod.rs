//! Schedules: examples, and properties against a naive integral.

use super::*;
use proptest::prelude::*;

fn steady(rate: f64, seconds: u64) -> Vec<LoadStage> {
    vec![LoadStage { from_per_s: rate, to_per_s: rate, length: Nanos::from_secs(seconds) }]
}

#[test]
fn a_constant_rate_is_even() {
    let all: Vec<ScheduledArrival> = Schedule::new(steady(5000.0, 2), Arrivals::Constant, 0).collect();
    assert_eq!(all.len(), 10_000);
    for (k, arrival) in all.iter().enumerate() {
        assert_eq!(arrival.intended, Nanos(k as u64 * 200_000));
        assert_eq!(arrival.number, k as u64);
    }
}

#[test]
fn a_number_of_arrivals_is_expected_when_that_many_have_started() {
    let stages = vec![
        LoadStage { from_per_s: 0.0, to_per_s: 20.0, length: Nanos::from_secs(10) },
        LoadStage { from_per_s: 50.0, to_per_s: 50.0, length: Nanos::from_secs(4) },
    ];
    let schedule = Schedule::new(stages, Arrivals::Constant, 1);
    for (arrivals, at) in [(0, 0.0), (25, 5.0), (100, 10.0), (150, 11.0), (300, 14.0), (9_999, 14.0)] {
        assert!((schedule.time_of(arrivals).as_secs_f64() - at).abs() < 1e-6, "{arrivals}");
    }
}

#[test]
fn a_ramp_from_nothing_follows_the_square_root() {
    let ramp = vec![LoadStage { from_per_s: 0.0, to_per_s: 100.0, length: Nanos::from_secs(10) }];
    let all: Vec<ScheduledArrival> = Schedule::new(ramp, Arrivals::Constant, 0).collect();
    assert_eq!(all.len(), 500);
    for arrival in &all {
        let expected = (arrival.number as f64 / 5.0).sqrt();
        assert!((arrival.intended.as_secs_f64() - expected).abs() < 1e-8);
    }
}

#[test]
fn a_stage_without_arrivals_is_a_pause() {
    let mut stages = steady(10.0, 1);
    stages.extend(steady(0.0, 5));
    stages.extend(steady(10.0, 1));
    let times: Vec<f64> = Schedule::new(stages, Arrivals::Constant, 0).map(|a| a.intended.as_secs_f64()).collect();
    assert_eq!(times.len(), 20);
    assert!(times[9] < 1.0 && times[10] >= 6.0, "{times:?}");
}

#[test]
fn poisson_arrivals_have_the_mean_and_the_spread_of_poisson() {
    let counts: Vec<f64> =
        (0..400).map(|seed| Schedule::new(steady(50.0, 2), Arrivals::Poisson, seed).count() as f64).collect();
    let mean = counts.iter().sum::<f64>() / 400.0;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 399.0;
    assert!((mean - 100.0).abs() < 2.0, "{mean}");
    assert!((variance - 100.0).abs() < 25.0, "{variance}");
}

#[test]
fn a_billion_arrivals_do_not_drift() {
    let mut late = Schedule::new(steady(1e6, 2000), Arrivals::Constant, 0);
    late.number = 1_000_000_000;
    late.next_number = late.number;
    late.level = late.number as f64;
    assert_eq!(late.next().map(|a| a.intended), Some(Nanos::from_secs(1000)));
}

fn gamma(shape: f64) -> Arrivals {
    Arrivals::Gamma(Burstiness::new(shape).expect("a burstiness"))
}

/// Gaps of a load of 1/s.
fn gaps(kind: Arrivals, seed: u64) -> Vec<f64> {
    let times: Vec<f64> =
        Schedule::new(steady(1.0, 50_000), kind, seed).map(|arrival| arrival.intended.as_secs_f64()).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn gamma_arrivals_have_the_rate_and_the_spread_of_their_shape() {
    for shape in [0.25, 0.5, 1.0, 2.0, 10.0] {
        let gaps = gaps(gamma(shape), 3);
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // 50,000 gaps: the standard error of the mean is below 1%, of the variance below 4% at the smallest shape.
        assert!((mean - 1.0).abs() < 0.03, "{shape}: {mean}");
        assert!((variance * shape - 1.0).abs() < 0.12, "{shape}: {variance}");
    }
}

#[test]
fn arrivals_have_the_variation_that_is_asked_for() {
    for cv in [0.3, 1.0, 2.0, 3.0] {
        let gamma = Burstiness::of_variation(cv).map(Arrivals::Gamma).expect("a burstiness");
        let weibull = WeibullShape::of_variation(cv).map(Arrivals::Weibull).expect("a shape");
        for kind in [gamma, weibull] {
            let gaps = gaps(kind, 5);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean - 1.0).abs() < 0.05, "{kind:?}: {mean}");
            assert!((variance.sqrt() / mean / cv - 1.0).abs() < 0.1, "{kind:?}: {}", variance.sqrt() / mean);
        }
    }
    assert!(Burstiness::of_variation(10.1).is_err() && Burstiness::of_variation(0.0).is_err());
}

/// The oracle: the k-th part of gaps is below the quantile of the distribution, whose formula is closed.
#[test]
fn weibull_gaps_have_the_quantiles_of_weibull() {
    for shape in [0.5, 2.0] {
        let mut own = gaps(WeibullShape::new(shape).map(Arrivals::Weibull).expect("a shape"), 6);
        own.sort_by(f64::total_cmp);
        // Mean of the distribution of scale 1: 2 for shape 0.5, half the root of pi for 2.
        let mean = if shape < 1.0 { 2.0 } else { std::f64::consts::PI.sqrt() / 2.0 };
        for tenth in 1..10 {
            let part = tenth as f64 / 10.0;
            let expected = (-(1.0 - part).ln()).powf(1.0 / shape) / mean;
            let found = own[own.len() * tenth / 10];
            assert!((found - expected).abs() < 0.03 * expected.max(0.5), "{shape}, {tenth}: {found} of {expected}");
        }
    }
}

/// The oracle: a whole shape is the sum of that many exponential gaps, and the distribution is the same at each tenth.
#[test]
fn gamma_gaps_of_whole_shapes_are_sums_of_exponential_ones() {
    let mut rng = SeededRng::new(9, 9);
    for shape in [1_usize, 3] {
        let mut naive: Vec<f64> =
            (0..50_000).map(|_| (0..shape).map(|_| rng.exponential()).sum::<f64>() / shape as f64).collect();
        let mut own = gaps(gamma(shape as f64), 4);
        naive.sort_by(f64::total_cmp);
        own.sort_by(f64::total_cmp);
        for tenth in 1..10 {
            let (naive, own) = (naive[naive.len() * tenth / 10], own[own.len() * tenth / 10]);
            assert!((naive - own).abs() < 0.03, "{shape}, {tenth}: {naive} against {own}");
        }
    }
}

#[test]
fn a_burstiness_is_a_number_in_its_range() {
    for shape in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9] {
        assert!(Burstiness::new(shape).is_err(), "{shape}");
    }
    assert_eq!(Burstiness::try_from(0.5).map(f64::from), Ok(0.5));
}

fn kinds() -> impl Strategy<Value = Arrivals> {
    let weibull = |cv| WeibullShape::of_variation(cv).map(Arrivals::Weibull).expect("a shape");
    prop_oneof![
        Just(Arrivals::Constant),
        Just(Arrivals::Poisson),
        (0.05..20.0_f64).prop_map(gamma),
        (0.1..4.0_f64).prop_map(weibull)
    ]
}

fn stages() -> impl Strategy<Value = Vec<LoadStage>> {
    let stage = (0.0..300.0_f64, 0.0..300.0_f64, 1..3000_u64).prop_map(|(a, b, ms)| LoadStage {
        from_per_s: a,
        to_per_s: b,
        length: Nanos::from_millis(ms),
    });
    prop::collection::vec(stage, 1..5)
}

proptest! {
    #[test]
    fn all_shards_together_are_the_whole(stages in stages(), seed: u64, of in 1..9_u64, kind in kinds()) {
        let whole: Vec<ScheduledArrival> = Schedule::new(stages.clone(), kind, seed).collect();
        let mut dealt: Vec<ScheduledArrival> = (0..of)
            .flat_map(|i| Schedule::new(stages.clone(), kind, seed).sharded(Shard::WHOLE.split(i, of)))
            .collect();
        dealt.sort_by_key(|a| a.number);
        prop_assert_eq!(whole, dealt);
    }

    #[test]
    fn arrivals_never_go_back_nor_past_the_end(stages in stages(), seed: u64, kind in kinds()) {
        let schedule = Schedule::new(stages, kind, seed);
        let end = schedule.length();
        let mut last = Nanos::ZERO;
        for arrival in schedule {
            prop_assert!(arrival.intended >= last && arrival.intended <= end);
            last = arrival.intended;
        }
    }

    /// The oracle: add up the rate in steps of 10 us. At the time of arrival k the sum is k.
    ///
    /// Levels are compared, not times: at a rate near 0, which may lie in an earlier stage, the time is ill-conditioned.
    #[test]
    fn constant_arrivals_match_a_naive_integral(stages in stages()) {
        const STEP: f64 = 1e-5;
        let times: Vec<f64> =
            Schedule::new(stages.clone(), Arrivals::Constant, 0).map(|a| a.intended.as_secs_f64()).collect();
        let (mut level, mut start, mut k) = (0.0, 0.0, 0_usize);
        for stage in &stages {
            let length = stage.length.as_secs_f64();
            let steps = (length / STEP).round() as usize;
            for i in 0..steps {
                let middle = (i as f64 + 0.5) / steps as f64;
                let rate = stage.from_per_s + (stage.to_per_s - stage.from_per_s) * middle;
                let now = start + i as f64 * STEP;
                while let Some(&at) = times.get(k).filter(|at| **at < now + STEP) {
                    let reached = level + rate * (at - now);
                    prop_assert!((reached - k as f64).abs() < 1e-4, "arrival {k} at {at}: the sum is {reached}");
                    k += 1;
                }
                level += rate * STEP;
            }
            start += length;
        }
        prop_assert!((times.len() as f64 - level).abs() < 1.0 + 1e-4, "{} arrivals, the sum is {level}", times.len());
    }
}
