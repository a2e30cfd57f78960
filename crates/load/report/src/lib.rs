//! Reports: of a run, a comparison and a capacity search, as text, HTML, JSON and in the formats of other tools.
//!
//! Reports of a run are made from a [`Run`] alone, so a run read from its JSON gives the same reports as one that has
//! just ended.
//!
//! - [`text`]: weir's own report
//! - [`ab`], [`wrk`], [`jmeter`]: the reports of these tools, field by field
//! - [`csv`]: time series
//! - [`llm`]: runs to language models: text, the table of vLLM, sweeps
//! - [`replay`]: logs that were replayed
//! - [`summary`], [`junit`]: for continuous integration: Markdown, and objectives as test cases
//! - [`axis`]: axes of charts and plots
//! - [`page`]: HTML reports
//! - [`plot`]: plots as SVG
//! - [`read`]: parsers of saved results, also of other tools
//! - [`capacity`]: capacity search
//! - [`comparison`]: comparison of sides of runs
//! - [`unit`](mod@unit): units of numbers in charts, plots and tables
//! - `number_format`, `bars`, `times_table`, `ansi`: numbers, histograms, tables of times and colours in text reports

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

pub use self::number_format::{sanitize, wrap};
use weir_measure::Run;

pub mod ab;
mod agents;
mod ansi;
mod asked_load;
pub mod axis;
mod bars;
pub mod capacity;
pub mod comparison;
pub mod csv;
mod http2;
pub mod jmeter;
pub mod junit;
pub mod k6;
pub mod llm;
mod number_format;
pub mod page;
pub mod plot;
pub mod read;
pub mod replay;
mod script;
mod steps;
mod streams;
pub mod summary;
pub mod text;
mod times_table;
mod trace;
pub mod unit;
mod websocket;
pub mod wrk;

/// Format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// weir's own report
    #[default]
    Text,
    /// report of ab
    Ab,
    /// report of wrk --latency
    Wrk,
    /// Summary Report of JMeter
    Jmeter,
    /// summary of k6, of a k6 script
    K6,
    /// whole run as one JSON object
    Json,
}

impl ReportFormat {
    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Ab => "ab",
            Self::Wrk => "wrk",
            Self::Jmeter => "jmeter",
            Self::K6 => "k6",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = Self::value_variants();
        let names = || all.iter().map(|f| f.name()).collect::<Vec<_>>().join(", ");
        all.iter()
            .find(|f| f.name() == text)
            .copied()
            .ok_or_else(|| format!("unknown format '{text}'; choose {}", names()))
    }
}

/// Report of a run with a final newline. Only [`ReportFormat::Text`] has colours, if `color`.
pub fn render(run: &Run, format: ReportFormat, color: bool) -> String {
    match format {
        ReportFormat::Text => text::render(run, color),
        ReportFormat::Ab => ab::render(run),
        ReportFormat::Wrk => wrk::render(run),
        ReportFormat::Jmeter => jmeter::render(run),
        ReportFormat::K6 => k6::render(run),
        ReportFormat::Json => run.to_json(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
