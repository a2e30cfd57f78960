//! Number of tokens of a prompt or response, as a distribution.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_base::rng::SeededRng;
use weir_base::units;

/// 95% quantile of the normal distribution with mean 0 and variance 1.
const NORMAL_P95: f64 = 1.644_853_626_951_472_2;

/// Number of tokens: one value, or drawn from a distribution, >= 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenCount {
    /// Always the same; >= 1.
    Constant(u64),
    /// Normal with this mean and standard deviation, and at least 1.
    Normal {
        /// Mean.
        mean: u64,
        /// Standard deviation.
        deviation: u64,
    },
    /// Uniform, both ends included; 1 <= `min` <= `max`.
    Uniform {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Exponential, as responses are: short ones are the most frequent.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Lognormal, as prompts are: half are below the median, a few are many times as long.
    Lognormal {
        /// Median.
        median: u64,
        /// 95th percentile, at least the median.
        p95: u64,
    },
    /// Pareto, the tail of long prompts: none is shorter than the smallest.
    Pareto {
        /// Smallest.
        min: u64,
        /// 95th percentile, above the smallest.
        p95: u64,
    },
}

impl TokenCount {
    /// Maximum of a number: a prompt of 100 MB.
    const MAX: u64 = 20_000_000;

    /// Number of one prompt.
    pub fn draw(self, rng: &mut SeededRng) -> u64 {
        // A conversion of a float saturates.
        let whole = |drawn: f64| (drawn.round() as u64).clamp(1, Self::MAX);
        match self {
            Self::Constant(count) => count,
            Self::Normal { mean, deviation } => whole(mean as f64 + deviation as f64 * rng.normal()),
            Self::Exponential { mean } => whole(mean as f64 * rng.exponential()),
            Self::Lognormal { median, p95 } => {
                let sigma = (p95 as f64 / median as f64).ln() / NORMAL_P95;
                whole(median as f64 * (sigma * rng.normal()).exp())
            }
            Self::Pareto { min, p95 } => {
                let per_decade = (p95 as f64 / min as f64).ln() / 20.0_f64.ln();
                whole(min as f64 * (per_decade * rng.exponential()).exp())
            }
            Self::Uniform { min, max } => min + rng.below(usize::try_from(max - min + 1).unwrap_or(usize::MAX)) as u64,
        }
    }
}

impl FromStr for TokenCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("invalid number of tokens '{text}'; write e.g. 550, 550+-150, 400..700 or lognormal 500 2000");
        let count = |part: &str| units::count(part.trim()).ok().filter(|n| *n <= Self::MAX).ok_or_else(wrong);
        let at_least_one = |n: u64| if n == 0 { Err(wrong()) } else { Ok(n) };
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [name, numbers @ ..] = words.as_slice()
            && name.starts_with(char::is_alphabetic)
        {
            let numbers = numbers.iter().map(|part| at_least_one(count(part)?)).collect::<Result<Vec<u64>, _>>()?;
            return match (*name, numbers.as_slice()) {
                ("exponential", [mean]) => Ok(Self::Exponential { mean: *mean }),
                ("lognormal", [median, p95]) if median <= p95 => Ok(Self::Lognormal { median: *median, p95: *p95 }),
                ("pareto", [min, p95]) if min < p95 => Ok(Self::Pareto { min: *min, p95: *p95 }),
                _ => Err(wrong()),
            };
        }
        if let Some((mean, deviation)) = text.split_once("+-").or_else(|| text.split_once('±')) {
            let (mean, deviation) = (at_least_one(count(mean)?)?, count(deviation)?);
            return Ok(if deviation == 0 { Self::Constant(mean) } else { Self::Normal { mean, deviation } });
        }
        if let Some((min, max)) = text.split_once("..") {
            let (min, max) = (at_least_one(count(min)?)?, count(max)?);
            return if min <= max { Ok(Self::Uniform { min, max }) } else { Err(wrong()) };
        }
        Ok(Self::Constant(at_least_one(count(text)?)?))
    }
}

impl fmt::Display for TokenCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(count) => count.fmt(f),
            Self::Normal { mean, deviation } => write!(f, "{mean}±{deviation}"),
            Self::Uniform { min, max } => write!(f, "{min}..{max}"),
            Self::Exponential { mean } => write!(f, "exponential {mean}"),
            Self::Lognormal { median, p95 } => write!(f, "lognormal {median} {p95}"),
            Self::Pareto { min, p95 } => write!(f, "pareto {min} {p95}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Oracle: the part of the drawn numbers that is at most a quantile, whose formula is closed.
        #[test]
        fn numbers_have_the_quantiles_of_their_distribution(low in 1_000..5_000_u64, factor in 2..20_u64, seed: u64) {
            let high = low * factor;
            let pareto = |q: f64| low as f64 * (factor as f64).powf(-(1.0 - q).ln() / 20.0_f64.ln());
            let cases: [(TokenCount, [(f64, f64); 2]); 4] = [
                (TokenCount::Exponential { mean: low }, [(0.5, low as f64 * 2.0_f64.ln()), (0.95, low as f64 * 20.0_f64.ln())]),
                (TokenCount::Lognormal { median: low, p95: high }, [(0.5, low as f64), (0.95, high as f64)]),
                (TokenCount::Pareto { min: low, p95: high }, [(0.5, pareto(0.5)), (0.95, high as f64)]),
                (TokenCount::Uniform { min: low, max: high }, [(0.5, (low + high) as f64 / 2.0), (0.95, low as f64 * 0.05 + high as f64 * 0.95)]),
            ];
            for (count, quantiles) in cases {
                let mut rng = SeededRng::new(seed, 1);
                let drawn: Vec<u64> = (0..20_000).map(|_| count.draw(&mut rng)).collect();
                for (q, value) in quantiles {
                    let below = drawn.iter().filter(|n| **n as f64 <= value).count() as f64 / drawn.len() as f64;
                    // Six standard errors of 20,000 draws, and the rounding of whole numbers.
                    prop_assert!((below - q).abs() < 0.025, "{}: {} of {}", count, below, q);
                }
                let smallest = if matches!(count, TokenCount::Pareto { .. } | TokenCount::Uniform { .. }) { low } else { 1 };
                prop_assert!(drawn.iter().all(|n| *n >= smallest));
            }
        }

        #[test]
        fn numbers_are_written_as_they_are_read(low in 1..1_000_000_u64, more in 1..1_000_000_u64) {
            for count in [
                TokenCount::Constant(low),
                TokenCount::Normal { mean: low, deviation: more },
                TokenCount::Uniform { min: low, max: low + more },
                TokenCount::Exponential { mean: low },
                TokenCount::Lognormal { median: low, p95: low + more },
                TokenCount::Pareto { min: low, p95: low + more },
            ] {
                prop_assert_eq!(count.to_string().parse(), Ok(count));
            }
        }
    }

    #[test]
    fn what_is_no_distribution_is_an_error() {
        for wrong in [
            "",
            "0",
            "exponential",
            "exponential 0",
            "exponential 1 2",
            "lognormal 5",
            "lognormal 5 4",
            "pareto 5 5",
            "pareto 0 5",
            "normal 5 4",
            "5 4",
        ] {
            let why = wrong.parse::<TokenCount>().expect_err(wrong);
            assert!(why.starts_with(&format!("invalid number of tokens '{wrong}'")), "{why}");
        }
    }
}
