//! Times of lines: the notations of Apache and nginx, ISO 8601, and numbers since 1970.

use weir_base::Nanos;
use weir_base::calendar::{CivilDate, month_number};
use weir_base::timestamp::{Timestamp, number, second_fraction};

/// Moment of a request that a time stamp marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMoment {
    /// Arrival of the request.
    Start,
    /// End of the response.
    End,
}

/// Time of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTime {
    /// Start of the interval that the stamp stands for, in nanoseconds since 1970.
    pub unix_ns: i64,
    /// Length of that interval: a second for `12:00:05`; > 0.
    pub resolution: Nanos,
    /// Moment of the request that the time stamp marks.
    pub moment: StampMoment,
}

/// Nanoseconds per second.
const NS: i64 = 1_000_000_000;
/// End of the years that are read, in seconds since 1970: 2201, which fits into nanoseconds.
const END_S: i64 = 7_289_654_400;

impl AccessTime {
    /// Whether it marks the end of the response.
    pub fn is_end(&self) -> bool {
        self.moment == StampMoment::End
    }

    /// Stamp that marks another moment.
    pub fn marking(self, moment: StampMoment) -> Self {
        Self { moment, ..self }
    }

    /// Time in any of the notations; it marks an end.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_number(text).or_else(|| Self::parse_iso(text)).or_else(|| Self::parse_clf(text))
    }

    /// `10/Oct/2000:13:55:36 -0700`, the notation of the Common Log Format.
    pub fn parse_clf(text: &str) -> Option<Self> {
        let (date, rest) = text.split_once(':')?;
        let mut parts = date.split('/');
        let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let (time, zone) = rest.split_once(' ').unwrap_or((rest, "+0000"));
        let date = CivilDate::new(number(year, 4)?, month_number(month.as_bytes())?, number(day, 2)?)?;
        Timestamp::of_parts(date, time, zone).and_then(Self::of)
    }

    /// ISO 8601: `2018-07-02T22:23:00.186641Z`; without a zone it is UTC.
    pub fn parse_iso(text: &str) -> Option<Self> {
        Timestamp::parse(text).and_then(Self::of)
    }

    /// Number since 1970: with a fraction in seconds, without one in seconds, ms, us or ns by its size.
    pub fn parse_number(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 19 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let number: i64 = whole.parse().ok()?;
        // 10^11 s are in the year 5138, and 10^11 ms in 1973.
        let unit = match number {
            0..100_000_000_000 => NS,
            100_000_000_000..100_000_000_000_000 => 1_000_000,
            100_000_000_000_000..100_000_000_000_000_000 => 1_000,
            _ => 1,
        };
        let part = second_fraction(fraction)?;
        let unix_ns = number.checked_mul(unit)?.checked_add(part.ns * unit / NS)?;
        let resolution = Nanos((part.resolution_ns * unit / NS).max(1).unsigned_abs());
        Some(Self { unix_ns, resolution, moment: StampMoment::End })
    }

    fn of(time: Timestamp) -> Option<Self> {
        let unix_ns = i64::try_from(time.unix_ns).ok().filter(|ns| (0..END_S * NS).contains(ns))?;
        Some(Self { unix_ns, resolution: time.resolution, moment: StampMoment::End })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Option<(i64, u64)> {
        AccessTime::parse(text).map(|time| (time.unix_ns, time.resolution.0))
    }

    #[test]
    fn times_are_read_in_each_notation() {
        for (text, unix_ns, resolution) in [
            ("10/Oct/2000:13:55:36 -0700", 971_211_336 * NS, 1_000_000_000),
            ("29/Feb/2024:23:59:60 +0000", 1_709_251_200 * NS, 1_000_000_000),
            ("2018-07-02T22:23:00.186641Z", 1_530_570_180_186_641_000, 1_000),
            ("2018-07-03T00:23:00+02:00", 1_530_570_180 * NS, 1_000_000_000),
            ("2018-07-03 00:23:00,5 +0200", 1_530_570_180_500_000_000, 100_000_000),
            ("2018-07-02T22:23:00", 1_530_570_180 * NS, 1_000_000_000),
            ("1646861401.5241024", 1_646_861_401_524_102_400, 100),
            ("1646861401", 1_646_861_401 * NS, 1_000_000_000),
            ("1646861401524", 1_646_861_401_524_000_000, 1_000_000),
            ("1646861401524102", 1_646_861_401_524_102_000, 1_000),
            ("1646861401524102400", 1_646_861_401_524_102_400, 1),
        ] {
            assert_eq!(parsed(text), Some((unix_ns, resolution)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "-", "10/Foo/2000:13:55:36 -0700", "31/Feb/2000:13:55:36 -0700", "10/Oct/2000:24:00:00 +0000"]
            .into_iter()
            .chain(["2018-07-02", "2018-13-02T00:00:00Z", "9999-01-01T00:00:00Z", "1.2.3", "12a", "2018-07-02T22:23Z"])
        {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}") {
            let _ = parsed(&text);
        }
    }
}
