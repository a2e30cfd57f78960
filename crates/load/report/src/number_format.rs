//! Text of numbers with their units, with no more digits than were measured.

use weir_base::Nanos;
pub(super) use weir_base::number_text::{count, rate};
use weir_base::terminal_text::is_steering;
use weir_histogram::percentiles::NOT_MEASURED;

/// Maximum width of text reports, in columns: that of a terminal as it opens.
pub(super) const TERMINAL_COLUMNS: usize = 80;

/// Bytes with three digits, in powers of 1000: `1.53 MB`.
pub(super) fn bytes(value: f64) -> String {
    let mut value = value;
    let mut units = ["B", "kB", "MB", "GB", "TB"].into_iter();
    let mut unit = units.next().unwrap_or("B");
    while value >= 999.5 {
        let Some(next) = units.next() else { break };
        (value, unit) = (value / 1000.0, next);
    }
    let decimals = match value {
        v if unit == "B" || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

/// Fraction in [0, 1] as a percentage; `0%` and `100%` are exact.
pub(super) fn percentage(value: f64) -> String {
    let percent = value * 100.0;
    match percent {
        p if p <= 0.0 => "0%".into(),
        p if p >= 100.0 => "100%".into(),
        p if p < 0.001 => "<0.001%".into(),
        p if p > 99.9 => ">99.9%".into(),
        p if p < 0.0995 => format!("{p:.3}%"),
        p if p < 9.995 => format!("{p:.2}%"),
        p => format!("{p:.1}%"),
    }
}

/// Fraction in [0, 1] as a percentage with one decimal, for aligned columns.
pub(super) fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        p if p > 0.0 && p < 0.05 => "<0.1%".into(),
        p => format!("{p:.1}%"),
    }
}

/// Time in milliseconds, in the format of [`Nanos`]; `-` if it was not measured.
pub(super) fn ms(value: impl Into<Option<f64>>) -> String {
    value.into().map_or_else(|| NOT_MEASURED.to_owned(), |ms| Nanos::from_secs_f64(ms / 1e3).to_string())
}

/// Time as other tools print it, which have 0 for one that was not measured.
pub(super) fn zero_if_not_measured(value: Option<f64>) -> f64 {
    value.unwrap_or(0.0)
}

/// Time in milliseconds in the unit of `like`, its neighbour in a table, if that was measured; in its own unit if it is
/// too small for that.
pub(super) fn ms_like(value: Option<f64>, like: Option<f64>) -> String {
    let Some(value) = value else { return NOT_MEASURED.to_owned() };
    let like = like.unwrap_or(value);
    let (scale, unit) = match like {
        v if v >= 999.5 => (1e-3, "s"),
        v if v >= 0.9995 => (1.0, "ms"),
        _ => (1e3, "us"),
    };
    match value * scale {
        0.0 => format!("0{unit}"),
        v if v < 0.1 || (v < 1.0 && unit == "us") => ms(value),
        v if v >= 99.95 => format!("{v:.0}{unit}"),
        v if v >= 9.995 => format!("{v:.1}{unit}"),
        v => format!("{v:.2}{unit}"),
    }
}

/// Round time without superfluous digits: `2ms`, `1.5ms`.
pub(super) fn round_time(time: Nanos) -> String {
    let (value, unit) = match time.0 {
        0..1_000 => (time.0 as f64, "ns"),
        1_000..1_000_000 => (time.0 as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (time.0 as f64 / 1e6, "ms"),
        _ => (time.0 as f64 / 1e9, "s"),
    };
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Text of external origin with control characters, which could steer a terminal, replaced by `?`.
pub fn sanitize(words: &str) -> String {
    words.chars().map(|c| if is_steering(c) { '?' } else { c }).collect()
}

/// Sanitized text, cut to `width` columns.
pub(super) fn truncate(words: &str, width: usize) -> String {
    let words = sanitize(words);
    if words.chars().count() <= width {
        return words;
    }
    words.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Phrases in one text with line breaks where a line behind a label of `indent` columns would exceed `TERMINAL_COLUMNS`.
pub(super) fn joined(phrases: &[String], indent: usize) -> String {
    let mut text = String::new();
    let mut used = indent;
    for (at, phrase) in phrases.iter().enumerate() {
        let length = columns(phrase);
        if at > 0 && used + columns(SEPARATOR) + length > TERMINAL_COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            text.push_str(SEPARATOR);
            used += columns(SEPARATOR);
        }
        text.push_str(phrase);
        used += length;
    }
    text
}

/// Between two phrases of a line.
const SEPARATOR: &str = " · ";

/// Columns of a text on a terminal, which shows no colour sequences.
fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut in_sequence = false;
    for c in text.chars() {
        match (in_sequence, c) {
            (false, '\u{1b}') => in_sequence = true,
            (false, _) => count += 1,
            (true, c) => in_sequence = !c.is_ascii_alphabetic(),
        }
    }
    count
}

/// Sanitized text on lines of at most `TERMINAL_COLUMNS`; the first begins with `first`, all others are indented by
/// its width.
pub fn wrap(first: &str, words: &str) -> Vec<String> {
    let indent = first.chars().count();
    let mut lines = vec![first.to_owned()];
    let mut used = indent;
    for word in sanitize(words).split_whitespace() {
        let length = word.chars().count();
        if used > indent && used + 1 + length > TERMINAL_COLUMNS {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        if let Some(line) = lines.last_mut() {
            if used > indent {
                line.push(' ');
                used += 1;
            }
            line.push_str(&truncate(word, TERMINAL_COLUMNS.saturating_sub(indent)));
            used += length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_digits_that_a_person_reads() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 0.254, 9.99, 49.84, 498.2, 999.7, 12_345.6].map(rate),
            ["0", "0.25", "9.99", "49.8", "498", "1,000", "12,346"]
        );
        assert_eq!(
            [0.0, 999.0, 999.7, 1_530_000.0, 5e15].map(bytes),
            ["0 B", "999 B", "1.00 kB", "1.53 MB", "5000 TB"]
        );
    }

    #[test]
    fn a_little_is_not_nothing_and_nearly_all_is_not_all() {
        assert_eq!(
            [0.0, 1e-6, 0.000_61, 0.012_34, 0.5, 0.999_99, 1.0].map(percentage),
            ["0%", "<0.001%", "0.061%", "1.23%", "50.0%", ">99.9%", "100%"]
        );
    }

    #[test]
    fn times_in_one_column_have_one_unit_while_that_leaves_something_of_them() {
        assert_eq!(ms_like(Some(4.912), Some(5.0)), "4.91ms");
        assert_eq!(ms_like(Some(0.25), Some(5.0)), "0.25ms");
        assert_eq!(ms_like(Some(0.0012), Some(5.0)), "1.20us");
        assert_eq!(ms_like(Some(27.0), Some(1080.0)), "27ms");
        assert_eq!(ms_like(Some(1234.0), Some(30_000.0)), "1.23s");
        assert_eq!(ms_like(Some(0.0), Some(30_000.0)), "0s");
        assert_eq!(ms_like(Some(999.7), Some(999.7)), "1.00s");
        assert_eq!([ms(None), ms_like(None, Some(5.0)), ms_like(Some(0.25), None)], ["-", "-", "250us"]);
        assert_eq!([1_500_000, 2_000_000, 470].map(|ns| round_time(Nanos(ns))), ["1.5ms", "2ms", "470ns"]);
    }

    #[test]
    fn long_words_are_wrapped_and_endless_ones_cut() {
        let phrases = ["\u{1b}[31m30 characters in red, in total\u{1b}[0m".to_owned(), "x".repeat(34), "y".repeat(20)];
        let lines = joined(&phrases, 13);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!((lines.len(), lines[1]), (2, &*format!("{}{}", " ".repeat(13), "y".repeat(20))), "{lines:?}");
        let lines = wrap("  - ", &"seven letters ".repeat(12));
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.chars().count() <= TERMINAL_COLUMNS));
        assert!(lines[0].starts_with("  - seven") && lines[1].starts_with("    letters"));
        assert_eq!(wrap("", &"x".repeat(300))[0].chars().count(), TERMINAL_COLUMNS);
        assert_eq!(truncate("a\u{1b}[31mb", 4), "a?[…");
    }
}
