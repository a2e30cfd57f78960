//! Options of a replay.

use std::path::PathBuf;

use crate::log::{LogMoment, LogRequest, check_files, log_format};
use crate::{RecordFilter, RecordSelection};
use weir_base::Nanos;
use weir_load::Options;

/// Log, and which of its requests are replayed.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Files, in order of time; `-` is stdin.
    pub files: Vec<PathBuf>,
    /// Format of lines: a name, or a pattern; told from the lines without one.
    pub pattern: Option<String>,
    /// First moment.
    pub from: Option<LogMoment>,
    /// Moment before which it ends.
    pub to: Option<LogMoment>,
    /// Conditions of the requests that are sent; all hold.
    pub filters: Vec<RecordFilter>,
    /// Whether methods that may change data are sent, too.
    pub allows_unsafe: bool,
}

/// Options of a replay, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// Log.
    pub log: LogOptions,
    /// Whether Host, User-Agent and Referer are those of the log.
    pub has_recorded_headers: bool,
    /// Time of the log divided by that of the load; by default 1.
    pub speed: Option<f64>,
    /// Whether the log begins again at its end, until the duration or the number of requests.
    pub repeats: bool,
    /// Service, headers, connections, and the bounds of the load; its rate is that of the log.
    pub load: Options,
}

impl LogOptions {
    /// The log as it is asked for.
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
            format: log_format(self.pattern.as_deref())?,
            selection: RecordSelection { filters: self.filters.clone(), allows_unsafe: self.allows_unsafe },
            from: self.from,
            to: self.to,
            seed,
        })
    }

    /// Whether stdin is one of the logs.
    fn reads_stdin(&self) -> bool {
        self.files.iter().any(|file| file.as_os_str() == "-")
    }

    /// Names of the files.
    pub(super) fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.display().to_string()).collect()
    }
}

impl ReplayOptions {
    /// Time of the log divided by that of the load.
    pub(super) fn speed(&self) -> f64 {
        self.speed.unwrap_or(1.0)
    }

    /// Seed of times within a second.
    pub(super) fn seed(&self) -> u64 {
        self.load.seed.unwrap_or(0)
    }

    /// Checks what does not go together; `sends` is whether requests are sent, and the log is not read only.
    ///
    /// # Errors
    /// One line with the flag.
    pub(super) fn check(&self, sends: bool) -> Result<(), String> {
        if self.repeats && self.load.duration.is_none() && self.load.requests.is_none() && sends {
            return Err("--loop has no end; give one with -d or -n".to_owned());
        }
        if self.repeats && self.log.reads_stdin() {
            return Err("--loop needs a file; stdin can be read once".to_owned());
        }
        let warmup = Nanos::from(self.load.warmup.unwrap_or_default());
        if self.load.duration.is_some_and(|duration| warmup >= duration.into()) {
            return Err(format!("--warmup: {warmup} is not shorter than the run"));
        }
        Ok(())
    }
}
