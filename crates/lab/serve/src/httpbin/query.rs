//! Parameters of the query.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Query; the first value of a name counts, and unknown names are ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a>(pub(super) Option<&'a str>);

impl<'a> Query<'a> {
    /// First value of a name.
    pub(super) fn value(self, name: &str) -> Option<Cow<'a, str>> {
        let mut pairs = form_urlencoded::parse(self.0?.as_bytes());
        pairs.find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Whole number of a name, or `default` without one.
    ///
    /// # Errors
    /// Expected range, in one line.
    pub(super) fn number(self, name: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64, String> {
        self.value(name).map_or(Ok(default), |text| number(name, &text, range))
    }
}

/// Parses a whole number in a range.
///
/// # Errors
/// Expected range of `name`, in one line.
pub(super) fn number(name: &str, text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    // parse() would accept a sign, too.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text);
    let number = digits.and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
    number.ok_or_else(|| format!("{name}: expected a whole number from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name_counts_and_others_are_ignored() {
        let query = Query(Some("x=1&b%79tes=2&bytes=3&&=&y"));
        assert_eq!(query.number("bytes", 9, 0..=10), Ok(2));
        assert_eq!(query.number("other", 9, 0..=10), Ok(9));
        assert_eq!(Query(None).number("bytes", 9, 0..=10), Ok(9));
    }

    #[test]
    fn an_invalid_number_is_reported_with_the_expected_range() {
        for wrong in ["", "bytes=11", "bytes=-1", "bytes=%2B1", "bytes=+1", "bytes=1.5", "bytes=1e1", "bytes=x"] {
            let read = Query(Some(wrong)).number("bytes", 0, 1..=10);
            let expected = Err("bytes: expected a whole number from 1 to 10".to_owned());
            assert_eq!(read, if wrong.is_empty() { Ok(0) } else { expected }, "{wrong}");
        }
        assert!(Query(Some("bytes=")).number("bytes", 1, 1..=10).is_err());
        assert!(Query(Some("bytes=18446744073709551616")).number("bytes", 1, 1..=u64::MAX).is_err());
        assert_eq!(Query(Some("bytes=18446744073709551615")).number("bytes", 1, 1..=u64::MAX), Ok(u64::MAX));
    }
}
