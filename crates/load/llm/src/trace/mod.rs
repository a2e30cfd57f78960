//! Traces of language models: when requests arrived, and how many tokens they had.
//!
//! - [`TraceFormat`]: format of a trace, detected from its first line
//! - [`TraceLines`]: reader of lines; a line has a [`TraceRecord`], several, or none, for the reason of a
//!   [`TraceLineError`]
//! - `mooncake`, `agentic`, `dynamo`, `otel`, `share_gpt`: lines of JSON; `token_table`, `table_fields`: CSV of BurstGPT and Azure
//! - `json_number`: times, sessions and identifiers of blocks as they stand in JSON
//! - [`RecordedSession`]: requests that belong together; [`TraceTurn`], [`TraceSession`]: requests as they are sent;
//!   [`SessionPlay`]: when; [`BlockText`]: text of their prompts
//!
//! A trace is what others wrote: each line is read for itself, and one that cannot be read is an error of that line.

mod agentic;
mod block_text;
mod dynamo;
mod json_number;
mod mooncake;
mod otel;
mod recorded_session;
mod session_play;
mod share_gpt;
mod table_fields;
mod token_table;
mod trace_format;
mod trace_line_error;
mod trace_lines;
mod trace_record;
mod trace_session;

#[cfg(test)]
mod tests;

pub(crate) use self::json_number::name_hash;

pub use self::block_text::BlockText;
pub use self::recorded_session::{AssembledSession, RecordedSession, TurnRule};
pub use self::session_play::{PlayStep, SessionPlay};
pub use self::trace_format::TraceFormat;
pub use self::trace_line_error::TraceLineError;
pub use self::trace_lines::TraceLines;
pub use self::trace_record::{PromptPiece, TraceDependency, TracePrompt, TraceRecord, TraceStart, TurnTrigger};
pub use self::trace_session::{TraceSession, TraceTurn, TurnDependency};
