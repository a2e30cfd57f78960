//! Numbers as text, with no more digits than were measured.

/// Whole number with thousands separated: `98,760`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rate or average with three digits, or as a whole number: `12,345`, `498`, `49.8`, `0.25`.
pub fn rate(value: f64) -> String {
    match value {
        v if v >= 999.5 => count(v.round() as u64),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        0.0 => "0".into(),
        v => format!("{v:.2}"),
    }
}

/// Rate as [`rate`] has it, a whole one without a fraction: `20`, `49.8`.
pub fn short_rate(value: f64) -> String {
    let text = rate(value);
    let whole = text.strip_suffix(".00").or_else(|| text.strip_suffix(".0"));
    whole.map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_separators() {
        assert_eq!([0, 999, 27_236, 1_000_000].map(count), ["0", "999", "27,236", "1,000,000"]);
        assert_eq!([46.84, 20.0, 0.254, 5.0, 0.0, 759.7].map(rate), ["46.8", "20.0", "0.25", "5.00", "0", "760"]);
        let short = [46.84, 20.0, 0.254, 5.0, 0.0, 12_345.0].map(short_rate);
        assert_eq!(short, ["46.8", "20", "0.25", "5", "0", "12,345"]);
    }
}
