//! Sessions of a load: those of a recorded trace, or composed ones of clients.

use std::fs;
use std::path::Path;

use super::client_composer::ClientComposer;
use super::trace_options::TraceOptions;
use super::trace_reader::TraceReader;
use super::trace_tally::TraceTally;
use crate::clients::ClientMix;
use crate::trace::{TraceFormat, TraceSession};
use weir_machine::input_file;
use weir_replay::log::{LogLine, LogLines};

/// Sessions with their arrivals, in the order of time.
#[derive(Debug)]
pub(super) enum SessionSource {
    /// Of a recorded trace.
    Recorded(Box<TraceReader>),
    /// Of a composition of clients.
    Composed(Box<ClientComposer>),
}

impl SessionSource {
    /// Opens the file of a trace or of clients.
    ///
    /// # Errors
    /// One line, or all mistakes of a composition, a line each.
    pub(super) fn open(asked: &TraceOptions, seed: u64) -> Result<Self, String> {
        if !is_composition(asked)? {
            return TraceReader::open(asked, seed).map(|reader| Self::Recorded(Box::new(reader)));
        }
        if asked.block_tokens.is_some() {
            return Err("--trace-block is for traces with hashes; clients have none".to_owned());
        }
        let name = asked.name();
        let path = if name == "-" { Path::new("/dev/stdin") } else { asked.file.as_path() };
        let text = input_file::read_to_string(path).map_err(|error| format!("--trace: cannot read {name}: {error}"))?;
        let mix = ClientMix::parse(&name, &text)?;
        ClientComposer::new(mix, seed, asked.sample).map(|composer| Self::Composed(Box::new(composer)))
    }

    /// Name of the format.
    pub(super) fn format(&self) -> &'static str {
        match self {
            Self::Recorded(reader) => reader.format().name(),
            Self::Composed(_) => TraceFormat::Clients.name(),
        }
    }

    /// Names of the clients; none of a recorded trace.
    pub(super) fn clients(&self) -> Vec<String> {
        match self {
            Self::Recorded(_) => Vec::new(),
            Self::Composed(composer) => composer.names().map(str::to_owned).collect(),
        }
    }

    /// Whether it goes on for ever.
    pub(super) fn is_endless(&self) -> bool {
        match self {
            Self::Recorded(_) => false,
            Self::Composed(composer) => composer.is_endless(),
        }
    }

    /// Whether requests may wait for the response to another one, as far as it can be known.
    pub(super) fn has_turns(&self) -> bool {
        match self {
            Self::Recorded(reader) => reader.has_turns(),
            Self::Composed(composer) => composer.has_turns(),
        }
    }

    /// Mean rate of the arrivals as far as they are known, per second.
    pub(super) fn sampled_rate(&self) -> f64 {
        match self {
            Self::Recorded(reader) => reader.sampled_rate(),
            Self::Composed(composer) => composer.mean_rate(),
        }
    }

    /// Counts so far.
    pub(super) fn tally(&self) -> &TraceTally {
        match self {
            Self::Recorded(reader) => reader.tally(),
            Self::Composed(composer) => composer.tally(),
        }
    }

    /// Arrival that times count from, if it is not that of the first session.
    pub(super) fn start(&self) -> Option<i64> {
        match self {
            Self::Recorded(_) => None,
            Self::Composed(_) => Some(0),
        }
    }

    /// Next session; `None` at the end.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<TraceSession>, String> {
        match self {
            Self::Recorded(reader) => reader.next(),
            Self::Composed(composer) => Ok(composer.next()),
        }
    }
}

/// Whether a file has clients, and no trace: by its format, or its first line.
fn is_composition(asked: &TraceOptions) -> Result<bool, String> {
    if asked.format.is_some() {
        return Ok(asked.format == Some(TraceFormat::Clients));
    }
    // What is in a pipe can be read once.
    if !fs::metadata(&asked.file).is_ok_and(|file| file.is_file()) {
        return Ok(false);
    }
    let first = LogLines::new(std::slice::from_ref(&asked.file)).next_line()?;
    Ok(matches!(first, Some(LogLine::Text(line)) if TraceFormat::is_client_table(&line)))
}
