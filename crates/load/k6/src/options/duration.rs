//! Durations as k6 writes them: `1m30s`, or milliseconds.

use weir_base::Nanos;

/// Units, the longer ones first where one begins another.
const UNITS: [(&str, f64); 8] =
    [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0), ("d", 86_400e9), ("h", 3600e9), ("m", 60e9), ("s", 1e9)];

/// Longest duration, as in k6.
const MAX_NS: f64 = i64::MAX as f64;

/// Duration of nanoseconds; `None` if they are too many, or none.
pub(crate) fn of_nanos(ns: f64) -> Option<Nanos> {
    (0.0..MAX_NS).contains(&ns).then_some(Nanos(ns as u64))
}

/// Reads a duration.
pub(crate) fn parse(text: &str) -> Option<Nanos> {
    let mut rest = text.trim();
    if let Ok(ms) = rest.parse::<f64>() {
        return of_nanos(ms * 1e6);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let (unit, scale) = UNITS.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        sum += number * scale;
        rest = &rest[unit.len()..];
    }
    of_nanos(sum).filter(|_| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_their_parts() {
        for (text, ms) in
            [("1m30s", 90_000), ("250ms", 250), ("1.5h", 5_400_000), ("10", 10), ("1d1s", 86_401_000), ("0", 0)]
        {
            assert_eq!(parse(text), Some(Nanos(ms * 1_000_000)), "{text}");
        }
        for wrong in ["", "x", "1x", "m", "1m30", "-1", "1..5s", "NaN", "inf", "1e30", "99999999999h"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
