//! Flags of the log: which of its requests are replayed.

use std::path::PathBuf;

use clap::Args;

use weir_replay::RecordFilter;
use weir_replay::load::LogOptions;
use weir_replay::log::LogMoment;

const LOG: &str = "Log";

/// Log, and which of its requests are replayed.
#[derive(Clone, Debug, Args)]
pub(super) struct LogArgs {
    /// access logs in chronological order, also .gz; - is stdin
    #[arg(required = true, value_name = "LOG")]
    pub(super) files: Vec<PathBuf>,
    /// read lines in this named format, or nginx, Apache or Envoy pattern [default: detected from the lines]
    #[arg(long, value_name = "PATTERN", help_heading = LOG)]
    log_pattern: Option<String>,
    /// start at this time, e.g. 2026-11-26T12:00:00Z, or 10m after the first request
    #[arg(long, value_name = "TIME", value_parser = str::parse::<LogMoment>, help_heading = LOG)]
    from: Option<LogMoment>,
    /// stop before this time
    #[arg(long, value_name = "TIME", value_parser = str::parse::<LogMoment>, help_heading = LOG)]
    to: Option<LogMoment>,
    /// send only matching requests, e.g. 'status<500', 'path~^/api/'; repeatable (all must match)
    #[arg(long = "filter", value_name = "CONDITION", value_parser = str::parse::<RecordFilter>, help_heading = LOG)]
    filters: Vec<RecordFilter>,
    /// send methods that may change data, too: POST, PUT, PATCH, DELETE
    #[arg(long = "unsafe", help_heading = LOG)]
    allows_unsafe: bool,
    /// send Host, User-Agent and Referer as recorded
    #[arg(long, help_heading = LOG)]
    pub(super) recorded_headers: bool,
    /// print counts of the log without sending anything
    #[arg(long, help_heading = LOG)]
    pub(super) dry_run: bool,
}

impl LogArgs {
    /// Options of the log.
    pub(super) fn options(&self) -> LogOptions {
        LogOptions {
            files: self.files.clone(),
            pattern: self.log_pattern.clone(),
            from: self.from,
            to: self.to,
            filters: self.filters.clone(),
            allows_unsafe: self.allows_unsafe,
        }
    }
}
