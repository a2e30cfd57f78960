//! Bounds of the part of a log that is replayed.

use std::str::FromStr;

use crate::AccessTime;
use weir_base::Nanos;
use weir_base::units;

/// Bound of `--from` and `--to`: a time, or an offset from the log's first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogMoment {
    /// Time, in nanoseconds since 1970.
    At(i64),
    /// Time after the first request of the log.
    After(Nanos),
}

impl LogMoment {
    /// Time in nanoseconds since 1970, in a log whose first request is at `first_ns`.
    pub fn unix_ns(self, first_ns: i64) -> i64 {
        match self {
            Self::At(unix_ns) => unix_ns,
            Self::After(time) => first_ns.saturating_add_unsigned(time.0),
        }
    }
}

impl FromStr for LogMoment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = units::time(text) {
            return Ok(Self::After(time.into()));
        }
        let time = AccessTime::parse(text).ok_or_else(|| {
            format!("invalid time '{text}'; write e.g. 2026-11-26T12:00:00Z, or 10m after the first request")
        })?;
        Ok(Self::At(time.unix_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_or_after_the_first_request() {
        let of = |text: &str| text.parse::<LogMoment>().map(|moment| moment.unix_ns(5_000_000_000));
        assert_eq!(of("2s"), Ok(7_000_000_000));
        assert_eq!(of("1970-01-01T00:01:00Z"), Ok(60_000_000_000));
        assert_eq!(of("01/Jan/1970:00:01:00 +0000"), Ok(60_000_000_000));
        assert!(of("noon").is_err());
    }
}
