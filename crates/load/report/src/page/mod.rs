//! HTML reports: one file each, which sends no network request.
//!
//! The content is plain data, a [`ReportPage`]: verdict, key figures, and sections of charts, tables and text.
//! [`of_run`] makes that of a run; studies, comparisons and capacity searches have their own functions. [`render()`]
//! makes HTML of all of them and is the only place where text becomes HTML.
//!
//! - [`chart`]: lines over an axis, with bands; [`cells`]: heat map behind them; [`bars`]: bars of values
//! - [`table`]: tables of figures
//! - [`svg`]: static picture of a chart, without the script
//! - [`manifest`]: last section of every report
//! - `html`: text that is HTML; `render`: the page as a file, with the style and the script of `weir-page`

pub mod bars;
pub mod cells;
pub mod chart;
mod html;
pub mod manifest;
mod render;
mod run;
pub mod svg;
pub mod table;
mod value_interval;

pub use self::bars::{BarChart, BarRow};
pub use self::cells::{CellColumn, ChartCells};
pub use self::chart::{Chart, ChartLevel, ChartLine, ChartSpan};
pub use self::manifest::shell_quoted;
pub use self::render::render;
pub(crate) use self::run::verdict as verdict_of_run;
pub use self::run::{date, of_run, percentiles};
pub use self::table::{PageTable, TableCell};
pub use self::value_interval::ValueInterval;
pub use crate::axis::{AxisScale, ChartAxis};
pub use crate::unit::ValueUnit;
use weir_measure::compare::Finding;

/// Content of an HTML report, from top to bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportPage {
    /// Subject, e.g. `GET http://localhost:8080/`.
    pub title: String,
    /// Load and conditions, as short phrases.
    pub about: Vec<String>,
    /// Verdict with its reasons.
    pub verdict: PageVerdict,
    /// Most important figures.
    pub key_figures: Vec<KeyFigure>,
    /// Sections: plots, tables, method and manifest.
    pub sections: Vec<Section>,
}

/// Evaluation of a value, shown by colour and mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// Good.
    Good,
    /// Bad.
    Bad,
    /// Not trusted.
    Doubt,
}

/// Verdict at the top of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageVerdict {
    /// Overall evaluation.
    pub tone: Tone,
    /// Headline, e.g. `All 3 objectives met`.
    pub headline: String,
    /// One or two sentences with the main figures.
    pub sentence: String,
    /// Reasons: trust, objectives, comparisons.
    pub points: Vec<VerdictPoint>,
}

/// Reason of a verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictPoint {
    /// Evaluation of the reason.
    pub tone: Tone,
    /// Reason as a sentence.
    pub text: String,
}

/// Figure at the head of a page: name, value with unit, and evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFigure {
    /// Name, e.g. `p99`.
    pub name: String,
    /// Value in `unit`.
    pub value: f64,
    /// Unit of the value.
    pub unit: ValueUnit,
    /// Note, e.g. `of 500/s offered`; may be empty.
    pub note: String,
    /// Evaluation of the figure.
    pub tone: Tone,
}

/// Section of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Content in order.
    pub blocks: Vec<Block>,
}

/// Block of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Paragraph.
    Text(String),
    /// Lines over an axis; consecutive charts and bars are side by side if there is room.
    Chart(Chart),
    /// Bars of values.
    Bars(BarChart),
    /// Table.
    Table(PageTable),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// Command line to copy.
    Command(String),
}

impl Tone {
    /// Tone of a finding.
    pub fn of(finding: Finding) -> Self {
        match finding {
            Finding::Better => Self::Good,
            Finding::Worse => Self::Bad,
            Finding::Same => Self::Plain,
            Finding::Unclear(_) => Self::Doubt,
        }
    }
}

impl Section {
    /// Section with this heading.
    pub fn new(title: &str, blocks: Vec<Block>) -> Self {
        Self { title: title.to_owned(), blocks }
    }
}

impl VerdictPoint {
    /// Sentence in a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

impl KeyFigure {
    /// Figure without a note.
    pub fn new(name: &str, value: f64, unit: ValueUnit) -> Self {
        Self { name: name.to_owned(), value, unit, note: String::new(), tone: Tone::Plain }
    }

    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Sets the tone.
    #[must_use]
    pub fn in_tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}
