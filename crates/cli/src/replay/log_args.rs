//! Flags of the log: which of its requests are replayed.

use std::path::PathBuf;

use clap::Args;

use super::super::access_log::{LogMoment, LogRequest, check_files, log_format};
use weir_accesslog::{RecordFilter, RecordSelection};

const LOG: &str = "Log";

/// Log, and which of its requests are replayed.
#[derive(Clone, Debug, Args)]
pub(super) struct LogArgs {
    /// access logs, in order of time; also .gz; - is stdin
    #[arg(required = true, value_name = "LOG")]
    files: Vec<PathBuf>,
    /// format of lines: a name, or a pattern of nginx, Apache, Envoy [default: told from the lines]
    #[arg(long, value_name = "PATTERN", help_heading = LOG)]
    log_pattern: Option<String>,
    /// first moment, e.g. 2026-11-26T12:00:00Z, or 10m after the first request
    #[arg(long, value_name = "TIME", value_parser = str::parse::<LogMoment>, help_heading = LOG)]
    from: Option<LogMoment>,
    /// moment before which it ends
    #[arg(long, value_name = "TIME", value_parser = str::parse::<LogMoment>, help_heading = LOG)]
    to: Option<LogMoment>,
    /// requests to send, e.g. 'status<500', 'path~^/api/'; repeatable, all hold
    #[arg(long = "filter", value_name = "CONDITION", value_parser = str::parse::<RecordFilter>, help_heading = LOG)]
    filters: Vec<RecordFilter>,
    /// methods that may change data, too: POST, PUT, PATCH, DELETE
    #[arg(long = "unsafe", help_heading = LOG)]
    allows_unsafe: bool,
    /// Host, User-Agent and Referer as recorded
    #[arg(long, help_heading = LOG)]
    pub(super) recorded_headers: bool,
    /// counts of the log, without sending anything
    #[arg(long, help_heading = LOG)]
    pub(super) dry_run: bool,
}

impl LogArgs {
    /// Log to read, with its selection and period.
    ///
    /// # Errors
    /// One line with the invalid flag.
    pub(super) fn request(&self, seed: u64) -> Result<LogRequest, String> {
        check_files(&self.files)?;
        if let (Some(LogMoment::At(from)), Some(LogMoment::At(to))) = (self.from, self.to)
            && from >= to
        {
            return Err("--from is not before --to".to_owned());
        }
        Ok(LogRequest {
            files: self.files.clone(),
            format: log_format(self.log_pattern.as_deref())?,
            selection: RecordSelection { filters: self.filters.clone(), allows_unsafe: self.allows_unsafe },
            from: self.from,
            to: self.to,
            seed,
        })
    }

    /// Whether stdin is one of the logs.
    pub(super) fn reads_stdin(&self) -> bool {
        self.files.iter().any(|file| file.as_os_str() == "-")
    }

    /// Names of the files.
    pub(super) fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.display().to_string()).collect()
    }
}
