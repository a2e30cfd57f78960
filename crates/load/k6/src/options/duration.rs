//! Durations as k6 writes them: `1m30s`, or milliseconds.

use weir_base::Nanos;

/// Units, the longer ones first where one begins another.
const UNITS: [(&str, f64); 8] =
    [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0), ("d", 86_400e9), ("h", 3600e9), ("m", 60e9), ("s", 1e9)];

/// Reads a duration.
pub(crate) fn parse(text: &str) -> Option<Nanos> {
    let mut rest = text.trim();
    if let Ok(ms) = rest.parse::<f64>() {
        return (ms.is_finite() && ms >= 0.0).then_some(Nanos((ms * 1e6) as u64));
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
    (!text.trim().is_empty()).then_some(Nanos(sum as u64))
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
        for wrong in ["", "x", "1x", "m", "1m30", "-1", "1..5s", "NaN"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
