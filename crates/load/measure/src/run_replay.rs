//! Log that a run has replayed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Log that a run has replayed: what of it was sent, what was left out, and whether responses are those of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReplay {
    /// Files, in order; `-` is stdin.
    pub files: Vec<String>,
    /// Format of the lines: `combined`, `json` or another name, or the pattern that was given.
    pub format: String,
    /// Speed: the time of the log divided by that of the run.
    pub speed: f64,
    /// Lines that were read, without empty ones and comments.
    pub lines: u64,
    /// Requests of the log that were to be sent.
    pub requests: u64,
    /// Start of the first of these requests by the log, in seconds since 1970; `None` without any.
    pub first_unix_s: Option<f64>,
    /// Start of the last one.
    pub last_unix_s: Option<f64>,
    /// These requests by method.
    pub methods: BTreeMap<String, u64>,
    /// These requests by the status that the log has; `-` without one.
    pub status: BTreeMap<String, u64>,
    /// Lines that were left out by reason: `broken`, `too_long`, `no_request`, `unsafe_method`, `filtered`,
    /// `outside_time`, `out_of_order`, `unsendable`.
    pub left_out: BTreeMap<String, u64>,
    /// First broken line, with its place and problem; `None` if all could be read.
    pub first_broken: Option<String>,
    /// Responses whose status has the same class as in the log, such as 2xx.
    pub same_class: u64,
    /// Responses with another class, by that of the log and that of the response: `2xx to 5xx`.
    pub other_class: BTreeMap<String, u64>,
}

impl RunReplay {
    /// Time from the first to the last request of the log, in seconds.
    pub fn log_s(&self) -> f64 {
        self.last_unix_s.zip(self.first_unix_s).map_or(0.0, |(last, first)| last - first)
    }

    /// Number of lines that were left out.
    pub fn left_out_lines(&self) -> u64 {
        self.left_out.values().sum()
    }
}
