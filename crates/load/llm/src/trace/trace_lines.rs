//! Reader of a trace's lines.

use super::token_table::TokenTable;
use super::trace_format::{TraceFormat, column_names, missing};
use super::trace_line_error::TraceLineError;
use super::trace_record::TraceRecord;
use super::{agentic, dynamo, mooncake, otel, share_gpt};

/// Reader of a trace's lines: each for itself, in constant memory.
#[derive(Clone, Debug)]
pub struct TraceLines {
    format: TraceFormat,
    /// Columns of a table.
    table: Option<TokenTable>,
    /// Tokens of a block, in place of the format's.
    block_tokens: Option<u64>,
}

impl TraceLines {
    /// Reader of a trace that begins with this line, in a given format or in the one that the line has; `block_tokens`
    /// are the tokens of a block, >= 1, in place of the format's.
    ///
    /// # Errors
    /// One line: an unknown format, or a heading without its columns.
    pub fn new(format: Option<TraceFormat>, first: &str, block_tokens: Option<u64>) -> Result<Self, String> {
        let format = match format {
            Some(format) => format,
            None => TraceFormat::detect(first)?,
        };
        if format.is_table() && first.trim_start().starts_with('{') {
            return Err(format!("lines of JSON, and not a table of {}", format.name()));
        }
        let table = match format.is_table() {
            true => Some(TokenTable::of_heading(format, first).ok_or_else(|| {
                format!("a heading without the columns of its format; {}", missing(&column_names(first), &[format]))
            })?),
            false => None,
        };
        let block_tokens = match format {
            TraceFormat::Agentic => Some(block_tokens.unwrap_or(agentic::block_tokens(first)?)),
            _ => block_tokens,
        };
        Ok(Self { format, table, block_tokens })
    }

    /// Format.
    pub fn format(&self) -> TraceFormat {
        self.format
    }

    /// Whether the first line is about the others, and no request.
    pub fn has_heading(&self) -> bool {
        self.format.has_header()
    }

    /// Whether requests may wait for the response to another one.
    pub fn may_have_turns(&self) -> bool {
        matches!(self.format, TraceFormat::Mooncake | TraceFormat::Agentic)
    }

    /// Appends the requests of a line: one, or several of a batch of spans.
    ///
    /// # Errors
    /// Why it has none, or could be read in part alone.
    pub fn push_records(&self, line: &str, records: &mut Vec<TraceRecord>) -> Result<(), TraceLineError> {
        let blocks = self.block_tokens;
        let record = match (self.format, &self.table) {
            (_, Some(table)) => table.record(line),
            (TraceFormat::Otel, _) => return otel::push_records(line, records),
            (TraceFormat::Mooncake, _) => mooncake::record(line, blocks.unwrap_or(mooncake::BLOCK_TOKENS)),
            (TraceFormat::Agentic, _) => agentic::record(line, blocks.unwrap_or(mooncake::BLOCK_TOKENS)),
            (TraceFormat::Bailian, _) => mooncake::bailian_record(line, blocks.unwrap_or(mooncake::BAILIAN_TOKENS)),
            (TraceFormat::Dynamo, _) => dynamo::record(line, blocks),
            (TraceFormat::Clients, _) => return Err(TraceLineError::NoRequest),
            (TraceFormat::ShareGpt | TraceFormat::BurstGpt | TraceFormat::Azure, _) => share_gpt::record(line),
        };
        records.push(record?);
        Ok(())
    }
}
