//! Notation of times, counts, rates and percentages, on the command line, in files and in Python.

use std::time::Duration;

/// Parses `300ms`, `1.5s`, `2m`, `1h`, `50us`, and several of them together, the largest unit first: `1m30s`.
///
/// # Errors
/// The invalid text, and what to write instead.
pub fn time(text: &str) -> Result<Duration, String> {
    seconds_of(text)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("invalid time '{text}'; write e.g. 300ms, 1.5s, 1m30s or 1h"))
}

/// Parses a time as [`time`] does; a bare number is seconds, as in wrk, ab and JMeter.
///
/// # Errors
/// The invalid text, and what to write instead.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let is_bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let bare = is_bare.then(|| format!("{text}s"));
    time(bare.as_deref().unwrap_or(text))
        .map_err(|_| format!("invalid time '{text}'; write e.g. 10 (seconds), 300ms, 1.5s, 1m30s or 1h"))
}

fn seconds_of(text: &str) -> Option<f64> {
    let (mut rest, mut sum, mut before) = (text, 0.0, f64::INFINITY);
    while !rest.is_empty() || before.is_infinite() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |end| digits + end);
        let per_unit = match &rest[digits..unit] {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let value: f64 = rest[..digits].parse().ok()?;
        // Twice the same unit, or a larger one behind a smaller, is a typing error; so is a sign in the middle.
        if per_unit >= before || value.is_sign_negative() || rest.starts_with('+') {
            return None;
        }
        (sum, before, rest) = (sum + value * per_unit, per_unit, &rest[unit..]);
    }
    // A century is beyond any run, and within every clock.
    (0.0..=3e9).contains(&sum).then_some(sum)
}

/// Parses `2000`, `10k`, `1.5M` as a whole number.
///
/// # Errors
/// The invalid text, and what to write instead.
pub fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("invalid number '{text}'; write e.g. 2000, 10k or 1M");
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let number = scaled(text).ok_or_else(wrong)?;
    // Beyond, a float is not exact.
    let is_whole = number.fract() == 0.0 && (0.0..=(1_u64 << 53) as f64).contains(&number);
    if is_whole { Ok(number as u64) } else { Err(wrong()) }
}

/// Parses `500`, `500/s`, `500rps`, `6000/m`, `10k/h` as a number per second.
///
/// # Errors
/// The invalid text, and what to write instead.
pub fn rate(text: &str) -> Result<f64, String> {
    let wrong = || format!("invalid rate '{text}'; write e.g. 500, 0.5, 10k, 500/s or 6000/m");
    let (number, per_s) = match text.split_once('/') {
        None => (text.strip_suffix("rps").unwrap_or(text), 1.0),
        Some((number, "s")) => (number, 1.0),
        Some((number, "m" | "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return Err(wrong()),
    };
    scaled(number).map(|number| number / per_s).ok_or_else(wrong)
}

/// A number with `k`, `M` or `G` behind it, or without.
fn scaled(text: &str) -> Option<f64> {
    let units = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let scaled = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)));
    let (digits, scale) = scaled.unwrap_or((text, 1.0));
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * scale)
}

/// Parses `3%` or `0.03`, as 0.03.
///
/// # Errors
/// The invalid text, and what to write instead.
pub fn fraction(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| (0.0..=100.0).contains(share))
        .ok_or_else(|| format!("invalid percentage '{text}'; write e.g. 3%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        assert_eq!(time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h0.5m250ms"), Ok(Duration::from_millis(3_630_250)));
        for wrong in
            ["", "10", "s", "-1s", "1d", "1 s", "infs", "nans", "1e99h", "1s1m", "1s1s", "1m-3s", "1m30", "1m+3s"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_is_seconds_where_wrk_and_ab_have_it_so() {
        assert_eq!((seconds("10"), seconds("0.5")), (Ok(Duration::from_secs(10)), Ok(Duration::from_millis(500))));
        assert_eq!(seconds("1m30s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "-1", "1m30", "ten", "1d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_and_rates_are_parsed() {
        assert_eq!([count("2000"), count("10k"), count("1.5M")], [Ok(2000), Ok(10_000), Ok(1_500_000)]);
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "k", "-1", "1.5", "1e99", "nan", "10 k", "1kk", "99999999999G"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        let read = ["500", "0.5", "500/s", "500rps", "6000/m", "6000/min", "3.6k/h", "10k"].map(rate);
        assert_eq!(read, [Ok(500.0), Ok(0.5), Ok(500.0), Ok(500.0), Ok(100.0), Ok(100.0), Ok(1.0), Ok(10_000.0)]);
        for wrong in ["", "/s", "500/", "500/d", "s", "inf", "1//s", "rps", "5rps/s", "5 rps"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fractions_and_percentages() {
        assert_eq!((fraction("3%"), fraction("0.03"), fraction("2.5 %")), (Ok(0.03), Ok(0.03), Ok(0.025)));
        for wrong in ["", "%", "-1%", "a", "nan", "inf", "1e9%%"] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }
}
