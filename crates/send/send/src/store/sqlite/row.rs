//! Conversion between jobs and rows.

use rusqlite::Row;
use rusqlite::types::{FromSqlError, Type, ValueRef};

use crate::job::{Job, JobEntry, JobEvent, JobRequest, JobStatus, StoredAttempt, UnixMs};
use crate::state::State;
use crate::template_parts::TemplateParts;

/// Query of the columns that [`entry`] reads.
pub(super) const SELECT_ENTRY: &str = "SELECT j.number, j.id, j.state, j.reason, j.changed_ms, j.attempts, \
     j.maybe_sent, j.code, j.last_key, j.sent_ms, j.retry_at_ms, j.created_ms, j.expires_ms, j.priority, j.weight, j.pinned_key, j.bytes, \
     r.method, r.url, r.headers, r.idempotency_key, r.body, r.templates FROM job j JOIN request r ON r.number = j.number";

/// Job of a row of [`SELECT_ENTRY`], with its size in the tally.
pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<(JobEntry, u64)> {
    let (url, headers): (String, _) = (row.get(18)?, headers(row, 19)?);
    let templates = TemplateParts::read(row.get_ref(22)?.as_str().map_err(|error| conversion_error(22, error))?);
    let request = JobRequest { method: row.get(17)?, url, headers, body: bytes(row, 21)?, templates };
    let job = Job {
        id: row.get(1)?,
        request,
        created_at: UnixMs(row.get(11)?),
        expires_at: row.get::<_, Option<i64>>(12)?.map(UnixMs),
        priority: row.get(13)?,
        weight: row.get(14)?,
        key_hint: Some(row.get(15)?).filter(|hint: &String| !hint.is_empty()),
        idempotency_key: row.get(20)?,
    };
    let status = JobStatus {
        state: state(row, 2)?,
        changed_at: UnixMs(row.get(4)?),
        reason: row.get(3)?,
        attempts: row.get(5)?,
        maybe_sent: row.get(6)?,
        retry_at: row.get::<_, Option<i64>>(10)?.map(UnixMs),
        last_attempt: attempt(row, 8, 9, 7)?,
    };
    Ok((JobEntry { number: number(row, 0)?, job, status }, number(row, 16)?))
}

/// Event of a row of `at_ms, state, reason, last_key, sent_ms, code`.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<JobEvent> {
    let (at, reason) = (UnixMs(row.get(0)?), row.get(2)?);
    Ok(JobEvent { at, state: state(row, 1)?, reason, attempt: attempt(row, 3, 4, 5)? })
}

fn attempt(row: &Row<'_>, key: usize, sent: usize, code: usize) -> rusqlite::Result<Option<StoredAttempt>> {
    let Some(sent) = row.get::<_, Option<i64>>(sent)? else { return Ok(None) };
    Ok(Some(StoredAttempt { key: row.get(key)?, sent_at: UnixMs(sent), status: row.get(code)? }))
}

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let word = row.get_ref(column)?.as_str()?;
    word.parse().map_err(|why: String| conversion_error(column, why))
}

/// Unsigned number; negative only in a file that was edited by hand.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

pub(super) fn headers(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<(String, String)>> {
    let text = row.get_ref(column)?.as_str()?;
    if text == "[]" {
        return Ok(Vec::new());
    }
    serde_json::from_str(text).map_err(|error| conversion_error(column, error))
}

pub(super) fn headers_text(headers: &[(String, String)]) -> String {
    // Pairs of strings always serialize.
    serde_json::to_string(headers).unwrap_or_default()
}

pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(Vec::new()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes.to_owned()),
        _ => Err(conversion_error(column, FromSqlError::InvalidType)),
    }
}

/// TEXT if it is valid UTF-8, so that it is readable in `sqlite3`.
pub(super) fn text_or_blob(bytes: &[u8]) -> ValueRef<'_> {
    if std::str::from_utf8(bytes).is_ok() { ValueRef::Text(bytes) } else { ValueRef::Blob(bytes) }
}

fn conversion_error(column: usize, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}

/// Number as SQLite stores it; larger ones do not occur.
pub(super) fn to_signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
