//! Time since the start of a run, in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time since the start of a run, or duration, in nanoseconds; up to 584 years.
///
/// Subtraction saturates at zero: clocks of two sources (user space, the kernel's packet stamps) may disagree by
/// some nanoseconds, and a response time is never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any other time; also "no limit".
    pub const NEVER: Self = Self(u64::MAX);
    /// One millisecond.
    pub const MILLI: Self = Self(1_000_000);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);

    /// Whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// Seconds as a float, rounded to the nearest nanosecond; negative or absurd values saturate.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as u64)
    }

    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / Self::MILLI.0
    }

    /// Milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The standard library's type.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// Nanoseconds since 1970 on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallNanos(pub i64);

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// At most three digits and a unit: `1.5s`, `12.3ms`, `45us`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => (ns, "ns"),
            1_000..1_000_000 => (ns / 1e3, "us"),
            1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let decimals = match value {
            v if v >= 100.0 || v.fract() == 0.0 => 0,
            v if v >= 10.0 => 1,
            _ => 2,
        };
        let text = format!("{value:.decimals$}{unit}");
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn a_length_is_shown_with_three_digits_at_most() {
        let shown = |ns| Nanos(ns).to_string();
        assert_eq!(shown(0), "0ns");
        assert_eq!(shown(45_600), "45.6us");
        assert_eq!(shown(1_500_000_000), "1.50s");
        assert_eq!(shown(300_000_000), "300ms");
    }

    #[test]
    fn the_past_of_the_start_is_the_start() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::NEVER + Nanos(1), Nanos::NEVER);
    }
}
