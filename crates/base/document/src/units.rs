//! Syntax of times, statuses and sizes in a document.

use std::ops::RangeInclusive;

use weir_base::Nanos;
use weir_base::units;

/// Parses `300ms`.
pub fn time(text: &str) -> Option<Nanos> {
    units::time(text).ok().map(Nanos::from)
}

/// Parses `200-299,304` or `5xx`.
pub fn statuses(text: &str) -> Option<Vec<RangeInclusive<u16>>> {
    text.split(',').map(|part| range(part.trim())).collect()
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let status = |text: &str| {
        let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|status| digits && (100..=599).contains(status))
    };
    if let Some(class) = text.strip_suffix("xx") {
        let from = status(&format!("{class}00"))?;
        return Some(from..=from + 99);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to) = (status(from.trim())?, status(to.trim())?);
    (from <= to).then_some(from..=to)
}

const SIZE_UNITS: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Parses `512B`, `64KiB`, `1MB`: a whole number and a unit.
pub fn size(text: &str) -> Option<usize> {
    let (digits, per_unit) = SIZE_UNITS.into_iter().find_map(|(unit, per)| Some((text.strip_suffix(unit)?, per)))?;
    let digits = digits.trim_end();
    let number = Some(digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    number.parse::<usize>().ok()?.checked_mul(per_unit)
}

/// Formats a size, with the largest unit that divides it.
pub fn format_size(bytes: usize) -> String {
    let fits = |(_, per): &(&str, usize)| bytes > 0 && bytes.is_multiple_of(*per);
    let (unit, per) = SIZE_UNITS[..3].iter().rev().find(|unit| fits(unit)).copied().unwrap_or(("B", 1));
    format!("{}{unit}", bytes / per)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_parsed() {
        assert_eq!(statuses("200-299, 304"), Some(vec![200..=299, 304..=304]));
        assert_eq!(statuses("5xx"), Some(vec![500..=599]));
        for wrong in ["", "20", "600", "0200", "299-200", "200-", "-200", "6xx", "xx", "+200", "200,", "2xx-3xx"] {
            assert_eq!(statuses(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(size("512B"), Some(512));
        assert_eq!(size("64KiB"), Some(65536));
        assert_eq!(size("64 KB"), Some(64000));
        assert_eq!(size("1MiB"), Some(1 << 20));
        for wrong in ["", "B", "1", "1.5MiB", "-1B", "1kb", "99999999999999999999B", "99999999999999999MiB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        for bytes in [0, 1, 1000, 1024, 1 << 20, 5 << 30] {
            assert_eq!(size(&format_size(bytes)), Some(bytes));
        }
    }
}
