//! Start of a run, for a person.

/// Day and time of a start, in UTC.
pub(super) fn started(unix_s: f64) -> String {
    let time = chrono::DateTime::from_timestamp(unix_s as i64, 0);
    time.map_or_else(|| "?".to_owned(), |time| time.format("%Y-%m-%d %H:%M").to_string())
}
