//! Times of the calendar as text: ISO 8601, of which RFC 3339 is a part.

use crate::calendar::{CivilDate, DAY_S};
use crate::nanos::Nanos;

/// Nanoseconds per second.
const NS: i64 = 1_000_000_000;

/// A time of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    /// Nanoseconds since 1970.
    pub unix_ns: i128,
    /// Size of the last digit of the seconds: a second for `12:00:05`.
    pub resolution: Nanos,
    /// Whether the text has a zone; without one it is UTC.
    pub has_zone: bool,
}

impl Timestamp {
    /// Time of `2018-07-02T22:23:00.186641Z`; also with a space or `_` before the time, with a comma before the fraction,
    /// with an offset (`+02:00`, `+0200`, `+02`), or without a zone.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let mut parts = date.split('-');
        let date = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let date = CivilDate::new(number(date.0, 4)?, number(date.1, 2)?, number(date.2, 2)?)?;
        let rest = rest.strip_prefix(['T', 't', ' ', '_'])?;
        let zone_at = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
        let (time, zone) = rest.split_at(zone_at);
        Self::of_parts(date, time, zone.trim_start())
    }

    /// Time of a date, a time of day (`13:55:36.5`) and a zone, which may be empty.
    pub fn of_parts(date: CivilDate, time: &str, zone: &str) -> Option<Self> {
        let mut parts = time.splitn(3, ':');
        let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        let seconds = parts.next()?;
        let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
        let seconds = number(seconds, 2)?;
        // A leap second is the 60th.
        if hours >= 24 || minutes >= 60 || seconds > 60 {
            return None;
        }
        let part = second_fraction(fraction)?;
        let unix_s = date.days() * DAY_S + hours * 3_600 + minutes * 60 + seconds - zone_s(zone)?;
        let unix_ns = i128::from(unix_s) * i128::from(NS) + i128::from(part.ns);
        Some(Self { unix_ns, resolution: Nanos(part.resolution_ns.unsigned_abs()), has_zone: !zone.is_empty() })
    }
}

/// Fraction of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondFraction {
    /// The fraction, in nanoseconds.
    pub ns: i64,
    /// Size of its last digit, in nanoseconds.
    pub resolution_ns: i64,
}

/// Fraction of a second from the digits behind the point; those behind the ninth have no effect.
pub fn second_fraction(digits: &str) -> Option<SecondFraction> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let used = &digits[..digits.len().min(9)];
    let size = 10_i64.pow(9 - u32::try_from(used.len()).unwrap_or(9));
    let value: i64 = if used.is_empty() { 0 } else { used.parse().ok()? };
    Some(SecondFraction { ns: value * size, resolution_ns: size })
}

/// Number of digits alone, at most `max_digits` of them.
pub fn number(text: &str, max_digits: usize) -> Option<i64> {
    let is_number = (1..=max_digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Offset of a zone from UTC in seconds: `Z`, `+0200`, `-07:00`, `+02`, or nothing.
fn zone_s(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z" | "UTC" | "GMT") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = &text[1..];
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "0"),
    };
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_with_their_offsets() {
        let at = |text| Timestamp::parse(text).map(|time| (time.unix_ns / 1_000_000, time.resolution.0, time.has_zone));
        for (text, ms, resolution, has_zone) in [
            ("1970-01-01T00:00:00Z", 0, NS, true),
            ("1969-12-31T23:59:59Z", -1000, NS, true),
            ("2000-02-29T12:30:15.250Z", 951_827_415_250, 1_000_000, true),
            ("2000-03-01T00:00:00+01:30", 951_863_400_000, NS, true),
            ("2024-12-31t23:59:59-00:30", 1_735_691_399_000, NS, true),
            ("2018-07-03 00:23:00,5 +0200", 1_530_570_180_500, 100_000_000, true),
            ("2018-07-02_22:23:00", 1_530_570_180_000, NS, false),
        ] {
            assert_eq!(at(text), Some((ms, resolution.unsigned_abs(), has_zone)), "{text}");
        }
        for text in [
            "",
            "T",
            "2024-13-01T00:00:00Z",
            "2024-02-31T00:00:00Z",
            "2024-01-01",
            "2024-01-01T00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:00+24:00",
            "2024-1-001T00:00:00Z",
            "2024-01-01T00:00:NaNZ",
            "2024-01-01T+1:00:00Z",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
