//! Think time: how long a user waits before its next step.

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_base::units;

/// 95 % quantile of the normal distribution with mean 0 and variance 1.
const NORMAL_P95: f64 = 1.644_853_626_951_472_2;

/// Distribution of the time between the steps of a user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum ThinkTime {
    /// No wait.
    #[default]
    None,
    /// Always the same time.
    Constant(Nanos),
    /// Any time between two, equally likely.
    Uniform {
        /// Shortest time.
        min: Nanos,
        /// Longest time, at least `min`.
        max: Nanos,
    },
    /// Exponential: short waits are the most frequent.
    Exponential {
        /// Mean.
        mean: Nanos,
    },
    /// Lognormal, as the times of people are: half are below the median, a few are many times as long.
    Lognormal {
        /// Median, > 0.
        median: Nanos,
        /// Standard deviation of the logarithm, >= 0.
        sigma: f64,
    },
}

impl ThinkTime {
    /// Parses `1s`, `constant 1s`, `1s..3s`, `exponential 2s` (mean) and `lognormal 2s 8s` (median and 95th
    /// percentile). Bare numbers are seconds.
    ///
    /// # Errors
    /// The reason, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = |reason: &str| {
            format!("invalid think time '{text}': {reason}; write e.g. 1s, 1s..3s, exponential 2s or lognormal 2s 8s")
        };
        let time = |part: &str| {
            let time = units::seconds(part.trim()).map_err(|_| invalid(&format!("'{}' is not a time", part.trim())))?;
            Ok::<Nanos, String>(Nanos::from(time))
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [] => Err(invalid("it is empty")),
            ["constant", value] => Ok(Self::constant(time(value)?)),
            ["constant", ..] => Err(invalid("constant has one time")),
            ["exponential", mean] => match time(mean)? {
                Nanos::ZERO => Ok(Self::None),
                mean => Ok(Self::Exponential { mean }),
            },
            ["exponential", ..] => Err(invalid("exponential has one time, the mean")),
            ["lognormal", median, p95] => {
                let (median, p95) = (time(median)?, time(p95)?);
                if median == Nanos::ZERO {
                    return Err(invalid("the median is 0"));
                }
                if p95 < median {
                    return Err(invalid("the 95th percentile is below the median"));
                }
                let sigma = (p95.as_secs_f64() / median.as_secs_f64()).ln() / NORMAL_P95;
                Ok(Self::Lognormal { median, sigma })
            }
            ["lognormal", ..] => Err(invalid("lognormal has two times, the median and the 95th percentile")),
            [word, _, ..] if word.starts_with(char::is_alphabetic) => {
                Err(invalid(&format!("unknown distribution '{word}'; choose constant, exponential or lognormal")))
            }
            _ => match text.split_once("..") {
                Some((min, max)) => {
                    let (min, max) = (time(min)?, time(max)?);
                    match min.cmp(&max) {
                        std::cmp::Ordering::Less => Ok(Self::Uniform { min, max }),
                        std::cmp::Ordering::Equal => Ok(Self::constant(min)),
                        std::cmp::Ordering::Greater => Err(invalid("the second time is below the first")),
                    }
                }
                None => Ok(Self::constant(time(text)?)),
            },
        }
    }

    fn constant(time: Nanos) -> Self {
        if time == Nanos::ZERO { Self::None } else { Self::Constant(time) }
    }

    /// Next wait. A distribution without randomness draws no number.
    pub fn sample(&self, rng: &mut SeededRng) -> Nanos {
        match self {
            Self::None => Nanos::ZERO,
            Self::Constant(time) => *time,
            Self::Uniform { min, max } => *min + scaled(*max - *min, rng.unit()),
            Self::Exponential { mean } => scaled(*mean, rng.exponential()),
            Self::Lognormal { median, sigma } => scaled(*median, (sigma * rng.normal()).exp()),
        }
    }
}

/// A time by a factor; a cast of a float saturates.
fn scaled(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor) as u64)
}
