//! Tables of requests, with a heading: BurstGPT's, and Azure's.

use weir_base::Nanos;
use weir_base::timestamp::Timestamp;

use super::json_number::NameHash;
use super::table_fields::fields;
use super::trace_format::TraceFormat;
use super::trace_line_error::TraceLineError;
use super::trace_record::{TracePrompt, TraceRecord, TraceStart, TraceTokens};

/// Nanoseconds of a second.
const S_NS: i64 = 1_000_000_000;

/// Places of a table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenTable {
    format: TraceFormat,
    time: usize,
    input: usize,
    output: usize,
    session: Option<usize>,
    took: Option<usize>,
}

impl TokenTable {
    /// Table of a format with this heading; `None` if a column is missing.
    pub(super) fn of_heading(format: TraceFormat, heading: &str) -> Option<Self> {
        let column = |name: &str| fields(heading).position(|field| field.eq_ignore_ascii_case(name));
        let [time, input, output] = format.fields() else { return None };
        Some(Self {
            format,
            time: column(time)?,
            input: column(input)?,
            output: column(output)?,
            session: column("Session ID"),
            took: column("Elapsed time"),
        })
    }

    /// Request of a row.
    pub(super) fn record(self, row: &str) -> Result<TraceRecord, TraceLineError> {
        let field = |column: usize| fields(row).nth(column).unwrap_or_default();
        let broken =
            |column: usize, expected: &str| TraceLineError::Broken(format!("column {} is not {expected}", column + 1));
        let tokens = |column: usize| {
            // Some exports have 472.0.
            let text = field(column);
            let whole = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|byte| byte == b'0'));
            let text = whole.map_or(text, |(whole, _)| whole);
            text.parse::<u64>().map_err(|_| broken(column, "a number of tokens"))
        };
        let at = match self.format {
            TraceFormat::Azure => {
                let time = Timestamp::parse(field(self.time)).and_then(|time| i64::try_from(time.unix_ns).ok());
                time.ok_or_else(|| broken(self.time, "a time, e.g. 2023-11-16 18:15:46.6805900"))?
            }
            _ => seconds(field(self.time)).ok_or_else(|| broken(self.time, "a number of seconds"))?,
        };
        let session = self.session.map(field).filter(|name| !name.is_empty()).map(|name| NameHash::of(name).0);
        let tokens = TraceTokens { input: tokens(self.input)?, output: tokens(self.output)? };
        let took = self.took.map(field).and_then(seconds).and_then(|ns| u64::try_from(ns).ok());
        let record = TraceRecord::new(TraceStart::At(at), session, tokens, TracePrompt::own())?;
        Ok(TraceRecord { took: Nanos(took.unwrap_or(0)), ..record })
    }
}

/// Seconds with up to nine decimals, in nanoseconds.
fn seconds(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = whole.parse().ok().filter(|seconds| *seconds >= 0)?;
    let nanos = decimals.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = nanos.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    whole.checked_mul(S_NS)?.checked_add(nanos)
}
