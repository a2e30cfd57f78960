//! Reports: of a run, a comparison and a capacity search, as text, HTML, JSON and in the formats of other tools.
//!
//! Reports of a run are made from a [`Run`] alone, so a run read from its JSON gives the same reports as one that has
//! just ended; only the log of all requests ([`jtl`]) is written during the run.
//!
//! - [`text`]: weir's own report
//! - [`ab`], [`wrk`], [`jmeter`]: the reports of these tools, field by field
//! - [`csv`]: time series
//! - [`jtl`]: JMeter log, one line per request
//! - [`page`]: HTML reports
//! - [`plot`]: plots as SVG and PNG
//! - [`read`]: parsers of saved results, also of other tools
//! - [`capacity`]: capacity search
//! - [`comparison`]: comparison of sides of runs
//! - `figure`, `bars`, `paint`: numbers, histograms and colours in text reports

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;

pub(crate) use self::figure::{sanitize, wrap};
use crate::measure::Run;

pub mod ab;
mod agents;
mod bars;
pub mod capacity;
pub mod comparison;
pub mod csv;
mod figure;
pub mod jmeter;
pub mod jtl;
pub mod page;
mod paint;
pub mod plot;
pub mod read;
#[cfg(test)]
mod sample;
pub mod text;
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
        ReportFormat::Json => run.to_json(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_known_by_its_name_here_and_to_clap() {
        for format in ReportFormat::value_variants() {
            assert_eq!(format.to_string().parse(), Ok(*format));
            assert_eq!(<ReportFormat as ValueEnum>::from_str(format.name(), false), Ok(*format));
        }
        assert_eq!(
            "hey".parse::<ReportFormat>(),
            Err("unknown format 'hey'; choose text, ab, wrk, jmeter, json".into())
        );
    }

    #[test]
    fn a_run_read_back_from_its_json_gives_the_same_reports() {
        for run in sample::all() {
            let back = Run::from_json(&render(&run, ReportFormat::Json, false)).expect("own JSON");
            for format in ReportFormat::value_variants() {
                assert_eq!(render(&back, *format, true), render(&run, *format, true), "{format}");
            }
            assert_eq!(csv::series(&back), csv::series(&run));
        }
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_and_every_report_ends_with_one_newline() {
        for run in sample::all() {
            for format in ReportFormat::value_variants() {
                let report = render(&run, *format, false);
                assert!(report.ends_with('\n') && !report.ends_with("\n\n"), "{format}");
            }
            let text = render(&run, ReportFormat::Text, false);
            for line in text.lines() {
                assert!(line.chars().count() <= figure::TERMINAL_COLUMNS, "{line}");
                assert!(!line.ends_with(' '), "{line:?}");
            }
        }
    }

    #[test]
    fn texts_of_a_service_cannot_steer_the_terminal() {
        let mut run = sample::open();
        let evil = "\u{1b}[2J\rgood\n";
        run.target.server = Some(evil.into());
        run.target.url = evil.into();
        run.target.path = evil.into();
        run.target.failure_details.values_mut().for_each(|words| *words = evil.into());
        for format in ReportFormat::value_variants() {
            let report = render(&run, *format, false);
            assert!(!report.contains('\u{1b}') && !report.contains('\r'), "{format}");
        }
    }
}
