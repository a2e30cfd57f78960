//! `weir history` and `weir trend`: saved runs, and how they have changed.
//!
//! - [`HistoryArgs`], `list`: the runs of a store
//! - `trend`: changes of their level

mod list;
mod trend;

pub(crate) use self::list::HistoryArgs;
pub(crate) use self::trend::TrendArgs;
use weir_command::Messages;
use weir_command::exit;

pub(super) fn run(asked: &HistoryArgs, messages: &Messages) -> u8 {
    asked.run(messages).map_or_else(|why| messages.usage_error(&why), |()| exit::OK)
}

pub(super) fn run_trend(asked: &TrendArgs, messages: &Messages) -> u8 {
    asked.run(messages).unwrap_or_else(|why| messages.usage_error(&why))
}
