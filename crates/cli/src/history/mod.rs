//! `weir history` and `weir trend`: saved runs, and how they have changed.
//!
//! - [`HistoryArgs`], `list`: the runs of a store
//! - `trend`, `trend_report`, `trend_text`, `trend_page`: changes of their level

mod list;
mod trend;
#[cfg(feature = "web")]
mod trend_page;
mod trend_report;
mod trend_text;

pub(crate) use self::list::HistoryArgs;
#[cfg(feature = "web")]
pub(crate) use self::list::run_row;
pub(crate) use self::trend::TrendArgs;
#[cfg(feature = "web")]
pub(crate) use self::trend_page::trend_reports;
use super::exit;
use weir_session::messages::Messages;

pub(super) fn run(asked: &HistoryArgs, messages: &Messages) -> u8 {
    asked.run(messages).map_or_else(|why| messages.usage_error(&why), |()| exit::OK)
}

pub(super) fn run_trend(asked: &TrendArgs, messages: &Messages) -> u8 {
    asked.run(messages).unwrap_or_else(|why| messages.usage_error(&why))
}

/// Day and time of a start, in UTC.
fn started(unix_s: f64) -> String {
    let time = chrono::DateTime::from_timestamp(unix_s as i64, 0);
    time.map_or_else(|| "?".to_owned(), |time| time.format("%Y-%m-%d %H:%M").to_string())
}
