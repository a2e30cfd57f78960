//! Distributions of delays, for services that are simulated or played by `weir serve`.
//!
//! The delay of request `k` is a function of the random stream and `k` alone, independent of earlier requests and of
//! threads. Each request owns two draws, `2k` and `2k + 1`: the first selects (the range, the sample), the second is
//! the place in it.

use std::f64::consts::TAU;

use weir_base::nanos::Nanos;
use weir_base::rng::SeededRng;
use weir_base::units;

/// Distribution of delays; no draw is longer than [`Delay::MAX`].
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Constant delay.
    Constant(Nanos),
    /// Uniform between two delays.
    Uniform(DelayRange),
    /// Lognormal, as response times often are: most near the median, and a long tail.
    Lognormal {
        /// Median, above 0.
        median: Nanos,
        /// Standard deviation of the logarithm, 0 to 10; 0 is constant, 0.5 puts the p99 at 3.2 times the median, 1 at
        /// 10.
        sigma: f64,
    },
    /// Exponential: the remaining time is independent of the elapsed time, as in queueing theory.
    Exponential {
        /// Mean; the p99 is 4.6 times as long.
        mean: Nanos,
    },
    /// A fast and a slow range, as with a cache.
    Bimodal {
        /// Range of the other delays, usually the fast ones.
        first: DelayRange,
        /// Range of a fraction of the delays, usually the slow ones.
        second: DelayRange,
        /// Fraction of delays in the second range, 0 to 1.
        second_fraction: f64,
    },
    /// One of these delays, equally likely; never empty ([`Delay::samples`]).
    Samples(Vec<Nanos>),
}

/// Uniform range of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRange {
    /// Shortest delay.
    pub low: Nanos,
    /// Longest delay; not less than `low`.
    pub high: Nanos,
}

impl DelayRange {
    fn at(self, unit: f64) -> Nanos {
        self.low + Nanos(((self.high - self.low).0 as f64 * unit).round() as u64)
    }

    /// Fraction of the range up to this delay, 0 to 1.
    fn fraction_below(self, delay: Nanos) -> f64 {
        let length = (self.high - self.low).0;
        if length == 0 {
            return f64::from(u8::from(delay >= self.low));
        }
        ((delay - self.low).0 as f64 / length as f64).min(1.0)
    }
}

impl Delay {
    /// Longest delay, a day: longer ones are invalid, and unbounded distributions are cut here.
    pub const MAX: Nanos = Nanos::from_secs(24 * 3600);

    /// Delay of request `k`.
    pub fn at(&self, rng: &SeededRng, k: u64) -> Nanos {
        let draw = |n: u64| rng.unit_at(k.wrapping_mul(2).wrapping_add(n));
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform(range) => range.at(draw(1)),
            Self::Lognormal { median, sigma } => {
                // Box and Muller. A draw is never 0, so this is at most 8.6 standard deviations.
                let normal = (-2.0 * draw(0).ln()).sqrt() * (TAU * draw(1)).cos();
                Nanos::from_secs_f64(median.as_secs_f64() * (sigma * normal).exp()).min(Self::MAX)
            }
            Self::Exponential { mean } => {
                // A draw is never 0, so this is at most 37 times the mean.
                Nanos::from_secs_f64(mean.as_secs_f64() * -draw(1).ln()).min(Self::MAX)
            }
            Self::Bimodal { first, second, second_fraction } => {
                if draw(0) <= *second_fraction {
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

    /// Mean, without the cut at [`Delay::MAX`].
    pub fn mean(&self) -> Nanos {
        let middle = |range: &DelayRange| (range.low.as_secs_f64() + range.high.as_secs_f64()) / 2.0;
        let seconds = match self {
            Self::Constant(delay) => return *delay,
            Self::Uniform(range) => middle(range),
            Self::Lognormal { median, sigma } => median.as_secs_f64() * (sigma * sigma / 2.0).exp(),
            Self::Exponential { mean } => return *mean,
            Self::Bimodal { first, second, second_fraction } => {
                (1.0 - second_fraction) * middle(first) + second_fraction * middle(second)
            }
            Self::Samples(all) => all.iter().map(|one| one.as_secs_f64()).sum::<f64>() / all.len().max(1) as f64,
        };
        Nanos::from_secs_f64(seconds)
    }

    /// 99th percentile, without the cut at [`Delay::MAX`].
    pub fn p99(&self) -> Nanos {
        match self {
            Self::Constant(delay) => *delay,
            Self::Uniform(range) => range.at(0.99),
            Self::Lognormal { median, sigma } => {
                Nanos::from_secs_f64(median.as_secs_f64() * (NORMAL_P99 * sigma).exp())
            }
            Self::Exponential { mean } => Nanos::from_secs_f64(mean.as_secs_f64() * 100.0_f64.ln()),
            Self::Bimodal { first, second, second_fraction } => {
                // The ranges may overlap: bisection for the least delay that 99% do not exceed.
                let below = |at| {
                    (1.0 - second_fraction) * first.fraction_below(at) + second_fraction * second.fraction_below(at)
                };
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

    /// Parses a delay:
    ///
    /// | notation | delay |
    /// |---|---|
    /// | `20ms`, `constant:20ms` | 20 ms, constant |
    /// | `100ms..600ms`, `uniform:100ms..600ms` | uniform between the two |
    /// | `lognormal:200ms,p99=900ms` | lognormal with a median of 200 ms and a p99 of 900 ms |
    /// | `lognormal:200ms,0.5` | the same with sigma, 0 to 10 |
    /// | `exponential:200ms` | exponential with a mean of 200 ms |
    /// | `bimodal:50ms..100ms,400ms..900ms,20%` | 20% in the second range, the others in the first |
    ///
    /// # Errors
    /// Invalid notation, with what to write instead.
    pub fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = || format!("invalid delay '{text}'; write {SYNTAX_EXAMPLES}");
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
            ("bimodal", [first, second, fraction]) => {
                let (first, second) = (parse_range(first)?, parse_range(second)?);
                Ok(Self::Bimodal { first, second, second_fraction: parse_fraction(fraction)? })
            }
            _ => Err(wrong()),
        }
    }

    /// Parses a file of samples: a delay per line, in milliseconds (`12.5`) or with its unit (`1.2s`). Empty lines and
    /// comments (`#`) are skipped.
    ///
    /// # Errors
    /// Number of the first invalid line, with what to write instead.
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

/// 99th percentile of the normal distribution, in standard deviations.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

fn parse_delay(text: &str) -> Result<Nanos, String> {
    within_a_day(Nanos::from(units::time(text)?), text)
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
    let range = DelayRange { low: parse_delay(low.trim())?, high: parse_delay(high.trim())? };
    if range.low > range.high {
        return Err(format!("'{text}' goes backwards; write the shorter delay first"));
    }
    Ok(range)
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
        return Err(format!("invalid delay '{text}'; write milliseconds (12.5) or a time with its unit (1.2s)"));
    }
    within_a_day(Nanos::from_secs_f64(ms / 1e3), text)
}

#[cfg(test)]
mod tests;
