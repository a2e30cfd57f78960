//! Options of the service.

use std::path::PathBuf;
use std::str::FromStr;

use crate::number_range::check_number;
use weir_base::Nanos;
use weir_workload::delay::Delay;

/// Line end of server-sent events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    /// LF.
    #[default]
    Lf,
    /// CR LF.
    Crlf,
    /// CR.
    Cr,
    /// One of these for each line, at random.
    Mixed,
}

impl LineEnd {
    /// Names of all.
    pub const NAMES: [&str; 4] = ["lf", "crlf", "cr", "mixed"];
}

/// By its name; an error names what to write instead.
impl FromStr for LineEnd {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "lf" => Ok(Self::Lf),
            "crlf" => Ok(Self::Crlf),
            "cr" => Ok(Self::Cr),
            "mixed" => Ok(Self::Mixed),
            _ => Err(format!("choose from {}", Self::NAMES.join(", "))),
        }
    }
}

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random choices.
    pub seed: u64,
    /// Events of a response.
    pub events: u64,
    /// Time from the request's arrival to the first event.
    pub first_delay: Delay,
    /// Time between events, or between packets of several.
    pub gap: Delay,
    /// Least length of an event's data, in bytes.
    pub event_bytes: usize,
    /// Events written at once.
    pub pack: u64,
    /// Packets that each event is split into.
    pub split: u64,
    /// Time between these packets.
    pub split_gap: Nanos,
    /// Appearance of server-sent events.
    pub sse: SseOptions,
    /// Faults.
    pub faults: StreamFaults,
    /// File of records.
    pub record: Option<PathBuf>,
}

/// Appearance of server-sent events.
#[derive(Clone, Debug)]
pub struct SseOptions {
    /// Line end.
    pub line_end: LineEnd,
    /// Whether a response begins with a byte order mark.
    pub has_bom: bool,
    /// Fraction of events behind a comment, 0 to 1.
    pub comments: f64,
    /// Type of the events.
    pub event_name: Option<String>,
    /// Whether events have IDs.
    pub has_ids: bool,
    /// Field `retry` before the first event, in whole milliseconds.
    pub retry: Option<Nanos>,
    /// Lines of an event's data, from 1.
    pub data_lines: u64,
}

/// Faults of responses, as fractions of all, 0 to 1. A response has one at most: the first of these that is drawn.
#[derive(Clone, Debug)]
pub struct StreamFaults {
    /// Responses that break off within an event.
    pub cut: f64,
    /// Responses that end within an event as if they were whole.
    pub half: f64,
    /// Responses that pause before an event.
    pub stall: f64,
    /// Length of the pause.
    pub stall_time: Delay,
}

impl Options {
    /// Default number of events.
    pub const DEFAULT_EVENTS: u64 = 20;
    /// Default length of an event's data, in bytes.
    pub const DEFAULT_EVENT_BYTES: usize = 32;
    /// Maximum number of events of a response.
    pub const MAX_EVENTS: u64 = 1_000_000;
    /// Maximum length of an event's data, in bytes.
    pub const MAX_EVENT_BYTES: usize = 1 << 20;

    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("events", self.events, 0..=Self::MAX_EVENTS)?;
        check_number("event-bytes", self.event_bytes, 0..=Self::MAX_EVENT_BYTES as u64)?;
        check_number("pack", self.pack, 1..=100_000)?;
        check_number("split", self.split, 1..=1000)?;
        check_number("data-lines", self.sse.data_lines, 1..=1000)?;
        // The rest of a line.
        let is_name = |name: &str| !name.is_empty() && !name.starts_with(' ') && !name.contains(['\r', '\n', '\0']);
        match &self.sse.event_name {
            Some(name) if !is_name(name) => {
                Err(format!("--event-name: invalid type of events '{}'; write e.g. tick", name.escape_debug()))
            }
            _ => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            events: Self::DEFAULT_EVENTS,
            first_delay: Delay::Constant(Nanos::from_millis(20)),
            gap: Delay::Constant(Nanos::from_millis(20)),
            event_bytes: Self::DEFAULT_EVENT_BYTES,
            pack: 1,
            split: 1,
            split_gap: Nanos::MILLI,
            sse: SseOptions::default(),
            faults: StreamFaults::default(),
            record: None,
        }
    }
}

impl Default for SseOptions {
    fn default() -> Self {
        Self {
            line_end: LineEnd::Lf,
            has_bom: false,
            comments: 0.0,
            event_name: None,
            has_ids: false,
            retry: None,
            data_lines: 1,
        }
    }
}

impl Default for StreamFaults {
    fn default() -> Self {
        Self { cut: 0.0, half: 0.0, stall: 0.0, stall_time: Delay::Constant(Nanos::from_secs(5)) }
    }
}
