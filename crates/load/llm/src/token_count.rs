//! Number of tokens of a prompt or response, as a distribution.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_base::rng::SeededRng;
use weir_base::units;

/// Number of tokens: one value, normal around a mean, or uniform between two.
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
}

impl TokenCount {
    /// Maximum of a number: a prompt of 100 MB.
    const MAX: u64 = 20_000_000;

    /// Number of one prompt.
    pub fn draw(self, rng: &mut SeededRng) -> u64 {
        match self {
            Self::Constant(count) => count,
            Self::Normal { mean, deviation } => {
                let drawn = mean as f64 + deviation as f64 * rng.normal();
                // A conversion of a float saturates.
                (drawn.round() as u64).clamp(1, Self::MAX)
            }
            Self::Uniform { min, max } => min + rng.below(usize::try_from(max - min + 1).unwrap_or(usize::MAX)) as u64,
        }
    }
}

impl FromStr for TokenCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid number of tokens '{text}'; write e.g. 550, 550+-150 or 400..700");
        let count = |part: &str| units::count(part.trim()).ok().filter(|n| *n <= Self::MAX).ok_or_else(wrong);
        let at_least_one = |n: u64| if n == 0 { Err(wrong()) } else { Ok(n) };
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
        }
    }
}
