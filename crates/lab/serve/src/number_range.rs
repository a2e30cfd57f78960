//! Ranges of options that are numbers.

use std::ops::RangeInclusive;

/// Checks that the value of an option, by the name of its flag, is in its range.
///
/// # Errors
/// One line with the flag, the value and the range.
pub(crate) fn check_number(flag: &str, value: impl TryInto<u64>, range: RangeInclusive<u64>) -> Result<(), String> {
    let value = value.try_into().unwrap_or(u64::MAX);
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("invalid value '{value}' for '--{flag}': {value} is not in {}..={}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_its_range_is_named_with_it() {
        assert_eq!((check_number("slots", 1_u64, 1..=8), check_number("slots", 8_usize, 1..=8)), (Ok(()), Ok(())));
        let why = "invalid value '9' for '--slots': 9 is not in 1..=8";
        assert_eq!(check_number("slots", 9_u32, 1..=8), Err(why.to_owned()));
    }
}
