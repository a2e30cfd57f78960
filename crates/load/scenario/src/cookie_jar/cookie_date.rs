//! Dates of the Expires attribute, in the lenient grammar of RFC 6265, section 5.1.1: four tokens in any order, whatever
//! is between them.

use weir_base::calendar::{CivilDate, DAY_S, month_number};

/// Parses a date in UTC to seconds since 1970; none if a part is missing or the date does not exist.
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let (mut time_s, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time_s.is_none()
            && let Some(clock) = clock_of(token)
        {
            time_s = Some(clock);
        } else if day.is_none()
            && let Some(number) = number_of(token, 1, 2)
        {
            day = Some(number);
        } else if month.is_none()
            && let Some(number) = token.get(..3).and_then(month_number)
        {
            month = Some(number);
        } else if year.is_none()
            && let Some(number) = number_of(token, 2, 4)
        {
            year = Some(number);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (hour, minute, second) = time_s?;
    if year < 1601 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = CivilDate::new(year, month?, day?)?.days();
    Some(days * DAY_S + hour * 3600 + minute * 60 + second)
}

fn is_delimiter(b: &u8) -> bool {
    matches!(b, b'\t' | b' '..=b'/' | b';'..=b'@' | b'['..=b'`' | b'{'..=b'~')
}

/// Number of `min` to `max` digits at the beginning of a token, with no digit after them.
fn number_of(token: &[u8], min: usize, max: usize) -> Option<i64> {
    let digits = token.iter().take_while(|b| b.is_ascii_digit()).count();
    (min..=max)
        .contains(&digits)
        .then(|| token[..digits].iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Hour, minute and second of `08:49:37`, with anything but a digit after it.
fn clock_of(token: &[u8]) -> Option<(i64, i64, i64)> {
    let mut fields = token.splitn(3, |b| *b == b':');
    let mut whole = || fields.next().filter(|field| field.iter().all(u8::is_ascii_digit));
    let (hour, minute) = (number_of(whole()?, 1, 2)?, number_of(whole()?, 1, 2)?);
    Some((hour, minute, number_of(fields.next()?, 1, 2)?))
}
