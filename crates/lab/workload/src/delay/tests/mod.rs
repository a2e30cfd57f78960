//! Distributions against their moments, and the notation.

use super::*;
use proptest::prelude::*;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn range(low: u64, high: u64) -> DelayRange {
    DelayRange { low: ms(low), high: ms(high) }
}

/// Many draws in ms, in ascending order.
fn drawn(text: &str) -> Vec<f64> {
    let (delay, rng) = (Delay::read(text).expect(text), SeededRng::new(5, 3));
    let mut all: Vec<f64> = (0..100_000).map(|k| delay.at(&rng, k).as_millis_f64()).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / all.len() as f64
}

fn percentile(all: &[f64], p: f64) -> f64 {
    all[(all.len() as f64 * p / 100.0) as usize]
}

fn near(value: f64, truth: f64) -> bool {
    (value / truth - 1.0).abs() < 0.02
}

#[test]
fn delays_are_read_in_each_notation() {
    for (text, delay) in [
        ("20ms", Delay::Constant(ms(20))),
        ("0ms", Delay::Constant(Nanos::ZERO)),
        ("constant: 1.5s", Delay::Constant(ms(1500))),
        ("100ms..600ms", Delay::Uniform(range(100, 600))),
        ("uniform:100ms .. 600ms", Delay::Uniform(range(100, 600))),
        ("5ms..5ms", Delay::Uniform(range(5, 5))),
        ("lognormal:200ms,0.5", Delay::Lognormal { median: ms(200), sigma: 0.5 }),
        ("exponential:200ms", Delay::Exponential { mean: ms(200) }),
        ("lognormal:200ms, p99=200ms", Delay::Lognormal { median: ms(200), sigma: 0.0 }),
        (
            "bimodal:50ms..100ms,400ms..900ms,20%",
            Delay::Bimodal { first: range(50, 100), second: range(400, 900), second_fraction: 0.2 },
        ),
    ] {
        assert_eq!(Delay::read(text), Ok(delay), "{text}");
    }
}

#[test]
fn an_invalid_delay_is_reported_with_what_to_write() {
    for (text, named) in [
        ("", "write e.g. 20ms"),
        ("constant:", "write e.g. 20ms"),
        ("soon", "invalid time 'soon'"),
        ("20", "invalid time '20'"),
        ("-1ms", "invalid time '-1ms'"),
        ("constant:1ms,2ms", "write e.g. 20ms"),
        ("normal:1ms,2", "invalid delay 'normal:1ms,2'"),
        ("600ms..100ms", "goes backwards"),
        ("uniform:1ms", "not a range"),
        ("25h", "a day (24h) is the most"),
        ("1ms..25h", "a day (24h) is the most"),
        ("lognormal:200ms", "write e.g."),
        ("exponential:", "invalid time ''"),
        ("exponential:1ms,2ms", "write e.g."),
        ("lognormal:200ms,p99=100ms", "below the median"),
        ("lognormal:0ms,1", "above 0"),
        ("lognormal:1ms,-1", "sigma from 0 to 10"),
        ("lognormal:1ms,NaN", "sigma from 0 to 10"),
        ("bimodal:1ms..2ms,3ms..4ms,120%", "write e.g. 20%"),
        ("bimodal:1ms..2ms,3ms..4ms,NaN%", "write e.g. 20%"),
        ("bimodal:1ms..2ms,3ms..4ms,0.2", "write e.g. 20%"),
        ("bimodal:1ms..2ms,3ms..4ms", "write e.g."),
    ] {
        let why = Delay::read(text).expect_err(text);
        assert!(why.contains(named) && !why.contains('\n'), "{text}: {why}");
    }
}

#[test]
fn a_file_of_samples_is_milliseconds_or_times() {
    let file = "# measured on a Friday\n12.5\n\n1.2s # slow\r\n  300us\n0\n";
    let all = vec![Nanos(12_500_000), ms(1200), Nanos(300_000), Nanos::ZERO];
    assert_eq!(Delay::samples(file), Ok(Delay::Samples(all)));
    for (file, named) in [
        ("", "no samples"),
        ("# nothing\n", "no samples"),
        ("1\n2\nthree\n", "line 3: invalid time 'three'"),
        ("1\n-2\n", "line 2: invalid delay '-2'"),
        ("inf", "line 1: invalid delay 'inf'"),
        ("NaN", "line 1: invalid delay 'NaN'"),
        ("1e12", "line 1: '1e12' is too long"),
    ] {
        let why = Delay::samples(file).expect_err(file);
        assert!(why.contains(named), "{file}: {why}");
    }
}

#[test]
fn uniform_delays_have_the_mean_and_the_quarters_of_their_range() {
    let all = drawn("100ms..600ms");
    assert!(near(mean(&all), 350.0) && near(percentile(&all, 25.0), 225.0) && near(percentile(&all, 75.0), 475.0));
    assert!(all[0] < 101.0 && all[all.len() - 1] > 599.0);
}

#[test]
fn lognormal_delays_have_the_given_median_and_p99() {
    let all = drawn("lognormal:200ms,p99=900ms");
    assert!(near(percentile(&all, 50.0), 200.0), "{}", percentile(&all, 50.0));
    assert!((percentile(&all, 99.0) / 900.0 - 1.0).abs() < 0.05, "{}", percentile(&all, 99.0));
    // The mean of a lognormal is median x exp(sigma^2 / 2).
    assert!(near(mean(&drawn("lognormal:200ms,0.5")), 200.0 * 0.125_f64.exp()));
}

#[test]
fn exponential_delays_have_their_mean_and_a_median_and_a_p99_that_follow_from_it() {
    let all = drawn("exponential:200ms");
    assert!(near(mean(&all), 200.0) && near(percentile(&all, 50.0), 200.0 * 2.0_f64.ln()));
    assert!((percentile(&all, 99.0) / (200.0 * 100.0_f64.ln()) - 1.0).abs() < 0.05, "{}", percentile(&all, 99.0));
}

#[test]
fn bimodal_delays_keep_their_fractions_and_nothing_lies_between() {
    let all = drawn("bimodal:50ms..100ms,400ms..900ms,20%");
    let second = all.iter().filter(|ms| **ms >= 400.0).count();
    assert!(second.abs_diff(20_000) < 400, "{second}");
    assert!(all.iter().all(|ms| (50.0..=100.0).contains(ms) || (400.0..=900.0).contains(ms)));
    assert!(near(mean(&all[..80_000]), 75.0) && near(mean(&all[80_400..]), 650.0));
    let (none, only) = (drawn("bimodal:1ms..2ms,3ms..4ms,0%"), drawn("bimodal:1ms..2ms,3ms..4ms,100%"));
    assert!(none[none.len() - 1] <= 2.0 && only[0] >= 3.0);
}

#[test]
fn the_mean_and_the_p99_are_those_of_many_draws() {
    let samples = Delay::samples("10\n20\n20\n30\n").expect("samples");
    assert_eq!((samples.mean(), samples.p99()), (ms(20), ms(30)));
    for text in [
        "20ms",
        "100ms..600ms",
        "lognormal:200ms,0.5",
        "exponential:200ms",
        "bimodal:50ms..100ms,400ms..900ms,20%",
        "bimodal:50ms..100ms,60ms..70ms,20%",
        "bimodal:50ms..50ms,400ms..900ms,0.5%",
    ] {
        let (delay, all) = (Delay::read(text).expect(text), drawn(text));
        assert!(near(mean(&all), delay.mean().as_millis_f64()), "{text}: {} {}", delay.mean(), mean(&all));
        let p99 = percentile(&all, 99.0);
        assert!((p99 / delay.p99().as_millis_f64() - 1.0).abs() < 0.03, "{text}: {} {p99}", delay.p99());
    }
}

#[test]
fn samples_are_equally_likely() {
    let (delay, rng) = (Delay::samples("10\n20\n20\n30\n").expect("samples"), SeededRng::new(5, 3));
    let mut counts = [0_u32; 3];
    for k in 0..40_000 {
        counts[(delay.at(&rng, k).as_millis_f64() / 10.0) as usize - 1] += 1;
    }
    assert!(counts.iter().zip([10_000, 20_000, 10_000]).all(|(n, of)| n.abs_diff(of) < 300), "{counts:?}");
}

#[test]
fn delays_of_subsequent_requests_are_not_correlated() {
    let rng = SeededRng::new(1, 3);
    for text in ["0ms..1s", "bimodal:0ms..400ms,600ms..1s,50%", "lognormal:200ms,0.5"] {
        let delay = Delay::read(text).expect(text);
        let all: Vec<f64> = (0..100_000).map(|k| delay.at(&rng, k).as_millis_f64()).collect();
        let mean = mean(&all);
        let product = |lag| all.iter().zip(&all[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
        for lag in 1..4 {
            assert!((product(lag) / product(0)).abs() < 0.015, "{text}, {lag}: {}", product(lag) / product(0));
        }
    }
}

fn delays() -> impl Strategy<Value = Delay> {
    let time = || (0..=Delay::MAX.0).prop_map(Nanos);
    let a_range = move || (time(), time()).prop_map(|(a, b)| DelayRange { low: a.min(b), high: a.max(b) });
    prop_oneof![
        time().prop_map(Delay::Constant),
        a_range().prop_map(Delay::Uniform),
        (time(), 0.0..=10.0).prop_map(|(median, sigma)| Delay::Lognormal { median, sigma }),
        time().prop_map(|mean| Delay::Exponential { mean }),
        (a_range(), a_range(), 0.0..=1.0).prop_map(|(first, second, second_fraction)| Delay::Bimodal {
            first,
            second,
            second_fraction
        }),
        prop::collection::vec(time(), 1..9).prop_map(Delay::Samples),
    ]
}

proptest! {
    #[test]
    fn a_delay_is_within_its_distribution_and_depends_on_its_number_alone(
        delay in delays(), seed: u64, numbers in prop::collection::vec(any::<u64>(), 1..20)
    ) {
        let rng = SeededRng::new(seed, 3);
        let forwards: Vec<Nanos> = numbers.iter().map(|k| delay.at(&rng, *k)).collect();
        let mut backwards: Vec<Nanos> = numbers.iter().rev().map(|k| delay.at(&rng, *k)).collect();
        backwards.reverse();
        prop_assert_eq!(&forwards, &backwards);
        for drawn in forwards {
            let inside = |range: &DelayRange| (range.low..=range.high).contains(&drawn);
            let possible = match &delay {
                Delay::Constant(only) => drawn == *only,
                Delay::Uniform(range) => inside(range),
                Delay::Lognormal { .. } | Delay::Exponential { .. } => drawn <= Delay::MAX,
                Delay::Bimodal { first, second, .. } => inside(first) || inside(second),
                Delay::Samples(all) => all.contains(&drawn),
            };
            prop_assert!(possible, "{}", drawn);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "(constant|uniform|lognormal|exponential|bimodal)?:?[0-9ems.,%=p#\n-]{0,30}") {
        for read in [Delay::read(&text), Delay::samples(&text)].into_iter().flatten() {
            prop_assert!(read.at(&SeededRng::new(1, 3), 7) <= Delay::MAX);
        }
    }
}
