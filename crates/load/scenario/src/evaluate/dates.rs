//! Dates, in formats as those of strftime.

use std::fmt::Write;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// Date of a text: with a time and an offset, with a time, or alone, by what the format has.
pub(super) fn parsed(text: &str, format: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(date) = DateTime::parse_from_str(text, format) {
        return Ok(date.to_utc());
    }
    if let Ok(date) = NaiveDateTime::parse_from_str(text, format) {
        return Ok(date.and_utc());
    }
    match NaiveDate::parse_from_str(text, format) {
        Ok(date) => Ok(date.and_time(chrono::NaiveTime::MIN).and_utc()),
        Err(_) => Err(format!("'{text}' is not a date of the format '{format}'")),
    }
}

/// Text of a date.
pub(super) fn formatted(date: &DateTime<Utc>, format: &str) -> Result<String, String> {
    let mut text = String::new();
    // An unknown letter in the format is an error of the write.
    write!(text, "{}", date.format(format)).map_err(|_| format!("'{format}' is not a format of dates"))?;
    Ok(text)
}

/// Date of seconds since 1970.
pub(super) fn of_unix(unix_s: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(unix_s, 0).unwrap_or_default()
}

/// Date of a cookie: `Wed, 21 Oct 2026 07:28:00 GMT`, also with dashes.
pub(super) fn of_cookie(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.to_utc());
    }
    NaiveDateTime::parse_from_str(text, "%a, %d-%b-%Y %H:%M:%S%.3f GMT").ok().map(|date| date.and_utc())
}

/// Whole days from now to a date; negative if it is past.
pub(super) fn days_after(date: &DateTime<Utc>, unix_s: i64) -> i64 {
    (date.timestamp() - unix_s) / DAY_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_with_as_much_as_the_format_has() {
        let date = parsed("2026-01-31", "%Y-%m-%d").expect("a date");
        assert_eq!(formatted(&date, "%d.%m.%y %H:%M"), Ok("31.01.26 00:00".to_owned()));
        let zoned = parsed("2026-01-31T12:00:00+01:00", "%+").expect("a date");
        assert_eq!(formatted(&zoned, "%H"), Ok("11".to_owned()));
        assert_eq!(days_after(&date, date.timestamp() + 3 * DAY_S + 5), -3);
        assert!(parsed("2026", "%d").is_err() && formatted(&date, "%!").is_err());
        assert_eq!(of_unix(0).timestamp(), 0);
    }
}
