//! How long a service takes: a distribution of delays.
//!
//! The delay of request `k` is a function of the dice and `k` alone, so it does not depend on which requests came
//! before, on which thread, or what they drew. Each request owns two draws, `2k` and `2k + 1`: the first chooses
//! (which hump, which sample), the second places.

use std::f64::consts::TAU;

use super::dice::Dice;
use super::nanos::Nanos;
use super::words;

/// A distribution of delays; no draw is ever longer than [`Delay::LONGEST`].
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Constant(Nanos),
    /// Anything between two delays is as likely.
    Uniform(DelayRange),
    /// What response times often look like: most near the median, and a long tail. Its logarithm is normal.
    Lognormal {
        /// Half of the delays are shorter.
        median: Nanos,
        /// The standard deviation of the logarithm; 0 is constant, 0.5 puts the p99 at 3.2 times the median, 1 at 10.
        sigma: f64,
    },
    /// How much longer it takes does not depend on how long it has taken: what queueing theory reckons with.
    Exponential {
        /// The mean; the p99 is 4.6 times as long.
        mean: Nanos,
    },
    /// A fast way and a slow one, as with a cache.
    Bimodal {
        /// Most delays, by custom.
        first: DelayRange,
        /// The others.
        second: DelayRange,
        /// How many of all are in the second, in [0, 1].
        second_fraction: f64,
    },
    /// One of these, each as likely; never empty ([`Delay::samples`]).
    Samples(Vec<Nanos>),
}

/// Delays between two, each as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRange {
    /// The shortest.
    pub low: Nanos,
    /// The longest; not less than `low`.
    pub high: Nanos,
}

impl DelayRange {
    fn at(self, unit: f64) -> Nanos {
        self.low + Nanos(((self.high - self.low).0 as f64 * unit).round() as u64)
    }

    /// The share of them that is not longer than this.
    fn fraction_below(self, delay: Nanos) -> f64 {
        let length = (self.high - self.low).0;
        if length == 0 {
            return f64::from(u8::from(delay >= self.low));
        }
        ((delay - self.low).0 as f64 / length as f64).min(1.0)
    }
}

impl Delay {
    /// A day. Longer ones are refused; the endless tail of a lognormal is cut here.
    pub const MAX: Nanos = Nanos::from_secs(24 * 3600);

    /// The delay of request `k`.
    pub fn at(&self, dice: &Dice, k: u64) -> Nanos {
        let draw = |n: u64| dice.unit_at(k.wrapping_mul(2).wrapping_add(n));
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform(hump) => hump.at(draw(1)),
            Self::Lognormal { median, sigma } => {
                // Box and Muller. A draw is never 0, so this is at most 8.6 standard deviations.
                let normal = (-2.0 * draw(0).ln()).sqrt() * (TAU * draw(1)).cos();
                Nanos::from_secs_f64(median.as_secs_f64() * (sigma * normal).exp()).min(Self::MAX)
            }
            Self::Exponential { mean } => {
                // A draw is never 0, so this is at most 37 times the mean.
                Nanos::from_secs_f64(mean.as_secs_f64() * -draw(1).ln()).min(Self::MAX)
            }
            Self::Bimodal { first, second, second_fraction: second_share } => {
                if draw(0) <= *second_share {
                    second.at(draw(1))
                } else {
                    first.at(draw(1))
                }
            }
            Self::Samples(all) => {
                let index = (draw(0) * all.len() as f64).ceil() as usize;
                all.get(index.saturating_sub(1)).copied().unwrap_or_default()
            }
        }
    }

    /// The mean; the cut at [`Delay::LONGEST`] aside.
    pub fn mean(&self) -> Nanos {
        let middle = |hump: &DelayRange| (hump.low.as_secs_f64() + hump.high.as_secs_f64()) / 2.0;
        let seconds = match self {
            Self::Constant(delay) => return *delay,
            Self::Uniform(hump) => middle(hump),
            Self::Lognormal { median, sigma } => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
            Self::Exponential { mean } => return *mean,
            Self::Bimodal { first, second, second_fraction: second_share } => {
                (1.0 - second_share) * middle(first) + second_share * middle(second)
            }
            Self::Samples(all) => all.iter().map(|one| one.as_secs_f64()).sum::<f64>() / all.len().max(1) as f64,
        };
        Nanos::from_secs_f64(seconds)
    }

    /// 99 % are not longer; the cut at [`Delay::LONGEST`] aside.
    pub fn p99(&self) -> Nanos {
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform(hump) => hump.at(0.99),
            Self::Lognormal { median, sigma } => {
                Nanos::from_secs_f64(median.as_secs_f64() * (NORMAL_P99 * sigma).exp())
            }
            Self::Exponential { mean } => Nanos::from_secs_f64(mean.as_secs_f64() * 100.0_f64.ln()),
            Self::Bimodal { first, second, second_fraction: second_share } => {
                // Humps may overlap in any way: the least delay that 99 % do not exceed, by halving.
                let below =
                    |at| (1.0 - second_share) * first.fraction_below(at) + second_share * second.fraction_below(at);
                let (mut low, mut high) = (first.low.min(second.low).0, first.high.max(second.high).0);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if below(Nanos(middle)) < 0.99 { low = middle + 1 } else { high = middle }
                }
                Nanos(low)
            }
            Self::Samples(all) => {
                let mut all = all.clone();
                all.sort_unstable();
                all.get((all.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
            }
        }
    }

    /// Reads a delay as people write it:
    ///
    /// | text | |
    /// |---|---|
    /// | `20ms`, `constant:20ms` | always 20 ms |
    /// | `100ms..600ms`, `uniform:100ms..600ms` | anything between, each as likely |
    /// | `lognormal:200ms,p99=900ms` | half are shorter than 200 ms, one in a hundred is longer than 900 ms |
    /// | `lognormal:200ms,0.5` | the same family by its sigma, 0 to 10 |
    /// | `exponential:200ms` | 200 ms on average, and how much longer never depends on how long it has been |
    /// | `bimodal:50ms..100ms,400ms..900ms,20%` | 20 % in the second stretch, the others in the first |
    ///
    /// # Errors
    /// What is expected, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("'{text}' is not a delay; write {SYNTAX_EXAMPLES}");
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind.trim(), rest.trim()),
            None if text.contains("..") => ("uniform", text),
            None => ("constant", text),
        };
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        match (kind, parts.as_slice()) {
            ("constant", [delay]) if !delay.is_empty() => Ok(Self::Constant(parse_delay(delay)?)),
            ("exponential", [mean]) => Ok(Self::Exponential { mean: parse_delay(mean)? }),
            ("uniform", [range]) => Ok(Self::Uniform(parse_range(range)?)),
            ("lognormal", [median, spread]) => {
                let median = parse_delay(median)?;
                if median == Nanos::ZERO {
                    return Err(format!("the median in '{text}' is 0; a lognormal delay needs one above 0"));
                }
                Ok(Self::Lognormal { median, sigma: parse_sigma(median, spread)? })
            }
            ("bimodal", [first, second, share]) => {
                let (first, second) = (parse_range(first)?, parse_range(second)?);
                Ok(Self::Bimodal { first, second, second_fraction: parse_fraction(share)? })
            }
            _ => Err(wrong()),
        }
    }

    /// Reads a file of samples: a delay per line, a plain number of milliseconds (`12.5`) or a time with its unit
    /// (`1.2s`). Empty lines, and what follows a `#`, do not count.
    ///
    /// # Errors
    /// Which line is wrong and what is expected, in words.
    pub fn samples(file: &str) -> Result<Self, String> {
        let mut all = Vec::new();
        for (index, line) in file.lines().enumerate() {
            let text = line.split('#').next().unwrap_or_default().trim();
            if !text.is_empty() {
                all.push(parse_sample(text).map_err(|why| format!("line {}: {why}", index + 1))?);
            }
        }
        if all.is_empty() {
            return Err("no samples; write one delay per line, in milliseconds (12.5) or with a unit (1.2s)".to_owned());
        }
        Ok(Self::Samples(all))
    }
}

const SYNTAX_EXAMPLES: &str =
    "e.g. 20ms, 100ms..600ms, lognormal:200ms,p99=900ms or bimodal:50ms..100ms,400ms..900ms,20%";

/// Where the 99th percentile of a normal distribution is, in standard deviations.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

fn parse_delay(text: &str) -> Result<Nanos, String> {
    within_a_day(Nanos::from(words::time(text)?), text)
}

fn within_a_day(delay: Nanos, text: &str) -> Result<Nanos, String> {
    if delay > Delay::MAX {
        return Err(format!("'{text}' is too long for a delay; a day (24h) is the most"));
    }
    Ok(delay)
}

fn parse_range(text: &str) -> Result<DelayRange, String> {
    let Some((low, high)) = text.split_once("..") else {
        return Err(format!("'{text}' is not a range of delays; write e.g. 100ms..600ms"));
    };
    let hump = DelayRange { low: parse_delay(low.trim())?, high: parse_delay(high.trim())? };
    if hump.low > hump.high {
        return Err(format!("'{text}' goes backwards; write the shorter delay first"));
    }
    Ok(hump)
}

fn parse_sigma(median: Nanos, text: &str) -> Result<f64, String> {
    if let Some(p99) = text.strip_prefix("p99=") {
        let p99 = parse_delay(p99.trim())?;
        if p99 < median {
            return Err(format!("'{text}' is below the median {median}; half of the delays are above that"));
        }
        return Ok((p99.as_secs_f64() / median.as_secs_f64()).ln() / NORMAL_P99);
    }
    let wrong = || format!("invalid spread of a lognormal delay '{text}'; write p99=TIME, or sigma from 0 to 10");
    text.parse().ok().filter(|sigma| (0.0..=10.0).contains(sigma)).ok_or_else(wrong)
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    let wrong = || format!("invalid fraction of the second range '{text}'; write e.g. 20%");
    let percent: f64 = text.strip_suffix('%').and_then(|number| number.trim().parse().ok()).ok_or_else(wrong)?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(wrong()) }
}

fn parse_sample(text: &str) -> Result<Nanos, String> {
    let Ok(ms) = text.parse::<f64>() else {
        return parse_delay(text).map_err(|why| format!("{why}, or a plain number of milliseconds"));
    };
    if !(ms >= 0.0 && ms.is_finite()) {
        return Err(format!("'{text}' is not a delay; write milliseconds (12.5) or a time with its unit (1.2s)"));
    }
    within_a_day(Nanos::from_secs_f64(ms / 1e3), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn range(low: u64, high: u64) -> DelayRange {
        DelayRange { low: ms(low), high: ms(high) }
    }

    /// Many draws, the shortest first, in milliseconds.
    fn drawn(text: &str) -> Vec<f64> {
        let (delay, dice) = (Delay::read(text).expect(text), Dice::new(5, 3));
        let mut all: Vec<f64> = (0..100_000).map(|k| delay.at(&dice, k).as_millis_f64()).collect();
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
    fn delays_as_people_write_them() {
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
    fn what_is_no_delay_is_named_with_what_to_write() {
        for (text, named) in [
            ("", "write e.g. 20ms"),
            ("constant:", "write e.g. 20ms"),
            ("soon", "'soon' is not a time"),
            ("20", "'20' is not a time"),
            ("-1ms", "'-1ms' is not a time"),
            ("constant:1ms,2ms", "write e.g. 20ms"),
            ("normal:1ms,2", "'normal:1ms,2' is not a delay"),
            ("600ms..100ms", "goes backwards"),
            ("uniform:1ms", "not a range"),
            ("25h", "a day (24h) is the most"),
            ("1ms..25h", "a day (24h) is the most"),
            ("lognormal:200ms", "write e.g."),
            ("exponential:", "'' is not a time"),
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
            ("1\n2\nthree\n", "line 3: 'three'"),
            ("1\n-2\n", "line 2: '-2'"),
            ("inf", "line 1: 'inf'"),
            ("NaN", "line 1: 'NaN'"),
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
    fn lognormal_delays_have_the_median_and_the_p99_that_were_asked_for() {
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
    fn two_humps_hold_their_shares_and_nothing_lies_between() {
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
    fn each_sample_is_as_likely() {
        let (delay, dice) = (Delay::samples("10\n20\n20\n30\n").expect("samples"), Dice::new(5, 3));
        let mut counts = [0_u32; 3];
        for k in 0..40_000 {
            counts[(delay.at(&dice, k).as_millis_f64() / 10.0) as usize - 1] += 1;
        }
        assert!(counts.iter().zip([10_000, 20_000, 10_000]).all(|(n, of)| n.abs_diff(of) < 300), "{counts:?}");
    }

    #[test]
    fn the_delays_of_neighbours_are_not_correlated() {
        let dice = Dice::new(1, 3);
        for text in ["0ms..1s", "bimodal:0ms..400ms,600ms..1s,50%", "lognormal:200ms,0.5"] {
            let delay = Delay::read(text).expect(text);
            let all: Vec<f64> = (0..100_000).map(|k| delay.at(&dice, k).as_millis_f64()).collect();
            let mean = mean(&all);
            let product = |lag| all.iter().zip(&all[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
            for lag in 1..4 {
                assert!((product(lag) / product(0)).abs() < 0.015, "{text}, {lag}: {}", product(lag) / product(0));
            }
        }
    }

    fn delays() -> impl Strategy<Value = Delay> {
        let time = || (0..=Delay::MAX.0).prop_map(Nanos);
        let hump = move || (time(), time()).prop_map(|(a, b)| DelayRange { low: a.min(b), high: a.max(b) });
        prop_oneof![
            time().prop_map(Delay::Constant),
            hump().prop_map(Delay::Uniform),
            (time(), 0.0..=10.0).prop_map(|(median, sigma)| Delay::Lognormal { median, sigma }),
            time().prop_map(|mean| Delay::Exponential { mean }),
            (hump(), hump(), 0.0..=1.0).prop_map(|(first, second, second_share)| Delay::Bimodal {
                first,
                second,
                second_fraction: second_share
            }),
            prop::collection::vec(time(), 1..9).prop_map(Delay::Samples),
        ]
    }

    proptest! {
        #[test]
        fn a_delay_is_within_its_distribution_and_depends_on_its_number_alone(
            delay in delays(), seed: u64, numbers in prop::collection::vec(any::<u64>(), 1..20)
        ) {
            let dice = Dice::new(seed, 3);
            let forwards: Vec<Nanos> = numbers.iter().map(|k| delay.at(&dice, *k)).collect();
            let mut backwards: Vec<Nanos> = numbers.iter().rev().map(|k| delay.at(&dice, *k)).collect();
            backwards.reverse();
            prop_assert_eq!(&forwards, &backwards);
            for drawn in forwards {
                let inside = |hump: &DelayRange| (hump.low..=hump.high).contains(&drawn);
                let possible = match &delay {
                    Delay::Constant(only) => drawn == *only,
                    Delay::Uniform(hump) => inside(hump),
                    Delay::Lognormal { .. } | Delay::Exponential { .. } => drawn <= Delay::MAX,
                    Delay::Bimodal { first, second, .. } => inside(first) || inside(second),
                    Delay::Samples(all) => all.contains(&drawn),
                };
                prop_assert!(possible, "{}", drawn);
            }
        }

        #[test]
        fn no_text_upsets_the_reading(text in "(constant|uniform|lognormal|exponential|bimodal)?:?[0-9ems.,%=p#\n-]{0,30}") {
            for read in [Delay::read(&text), Delay::samples(&text)].into_iter().flatten() {
                prop_assert!(read.at(&Dice::new(1, 3), 7) <= Delay::MAX);
            }
        }
    }
}
