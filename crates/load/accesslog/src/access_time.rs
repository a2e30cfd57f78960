//! Times of lines: the notations of Apache and nginx, ISO 8601, and numbers since 1970.

use weir_base::Nanos;

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
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// Years that fit into nanoseconds.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2200;

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
        let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
        if parts.next().is_some() {
            return None;
        }
        let (time, zone) = rest.split_once(' ').unwrap_or((rest, "+0000"));
        Self::of_parts((number(year, 4)?, month as i64 + 1, number(day, 2)?), time, zone_s(zone)?)
    }

    /// ISO 8601: `2018-07-02T22:23:00.186641Z`; without a zone it is UTC.
    pub fn parse_iso(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let mut parts = date.split('-');
        let date = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        if parts.next().is_some() {
            return None;
        }
        let rest = rest.strip_prefix(['T', 't', ' ', '_'])?;
        let zone_at = rest.find(['Z', 'z', '+', '-', ' ']).unwrap_or(rest.len());
        let (time, zone) = rest.split_at(zone_at);
        Self::of_parts(date, time, zone_s(zone.trim_start())?)
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
        let (part, part_resolution) = fraction_ns(fraction)?;
        let unix_ns = number.checked_mul(unit)?.checked_add(part * unit / NS)?;
        let resolution = Nanos((part_resolution * unit / NS).max(1).unsigned_abs());
        Some(Self { unix_ns, resolution, moment: StampMoment::End })
    }

    fn of_parts((year, month, day): (i64, i64, i64), time: &str, zone_s: i64) -> Option<Self> {
        let mut parts = time.splitn(3, ':');
        let (hours, minutes) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        let seconds = parts.next()?;
        let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
        let seconds = number(seconds, 2)?;
        // A leap second is the 60th.
        let is_valid = YEARS.contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && hours < 24
            && minutes < 60
            && seconds <= 60;
        if !is_valid {
            return None;
        }
        let (part, resolution) = fraction_ns(fraction)?;
        let unix_s = days(year, month, day) * 86_400 + hours * 3_600 + minutes * 60 + seconds - zone_s;
        let resolution = Nanos(resolution.max(1).unsigned_abs());
        Some(Self { unix_ns: unix_s * NS + part, resolution, moment: StampMoment::End })
    }
}

/// Number of digits alone, at most `most` of them.
fn number(text: &str, most: usize) -> Option<i64> {
    let is_number = (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Digits behind the point as nanoseconds, and the size of their last one.
fn fraction_ns(digits: &str) -> Option<(i64, i64)> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let used = &digits[..digits.len().min(9)];
    let size = 10_i64.pow(9 - u32::try_from(used.len()).unwrap_or(9));
    let value: i64 = if used.is_empty() { 0 } else { used.parse().ok()? };
    Some((value * size, size))
}

/// Offset of a zone from UTC: `Z`, `+0200`, `-07:00`, `+02`, or nothing.
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

fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, from 1970 on.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let whole_years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    whole_years + (1..month).map(|month| days_of(year, month)).sum::<i64>() + day - 1
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
        /// Oracle: days counted one by one.
        #[test]
        fn days_are_those_that_are_counted(year in 1970..=2200_i64, month in 1..=12_i64, day in 1..=28_i64) {
            let months = (1970..=year).flat_map(|y| (1..=12).map(move |m| (y, m)));
            let before = months.take_while(|at| *at != (year, month)).map(|(y, m)| days_of(y, m)).sum::<i64>();
            prop_assert_eq!(days(year, month, day), before + day - 1);
        }

        #[test]
        fn any_text_is_a_time_or_none(text in "\\PC{0,40}") {
            let _ = parsed(&text);
        }
    }
}
