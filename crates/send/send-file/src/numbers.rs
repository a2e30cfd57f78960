//! Numbers in text.

/// Whole number with thousands separated: `27,236`.
pub(super) fn count(n: u64) -> String {
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

/// Rate with three digits, or as a whole number: `12,345`, `498`, `46.8`, `0.25`.
pub(super) fn rate(value: f64) -> String {
    match value {
        v if v >= 999.5 => count(v.round() as u64),
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}").trim_end_matches(".0").to_owned(),
        v if v.fract() == 0.0 => format!("{v}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_separators() {
        assert_eq!([count(0), count(999), count(27_236), count(1_000_000)], ["0", "999", "27,236", "1,000,000"]);
        assert_eq!([rate(46.84), rate(20.0), rate(0.254), rate(5.0), rate(759.7)], ["46.8", "20", "0.25", "5", "760"]);
    }
}
