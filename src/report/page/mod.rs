//! A page to look at: one HTML file that holds all it needs and asks no network for anything.
//!
//! What it shows is plain data, a [`ReportPage`]: a verdict, the figures that matter, and sections of charts, tables and words.
//! [`of_run`] makes one of a run; whoever has something else to show (a study, a comparison) fills in their own.
//! [`render`] is one function for all of them, so that every page looks and works the same, and the only place where
//! text becomes HTML.
//!
//! - [`chart`]: lines over an axis, with bands, for the eye to zoom into; [`bars`]: values beside each other, to compare
//! - [`table`]: what has to be read digit by digit
//! - [`unit`](mod@unit): how a number of a kind is written, the same in charts, tables and the script
//! - [`svg`]: a chart as a picture, for places where no script runs
//! - [`manifest`]: what every page says in the end
//! - `html`, `scale`: how it becomes a file; `page.js`, `page.css` and `chart.css` go into it as they are

pub mod bars;
pub mod chart;
mod html;
pub mod manifest;
mod run;
mod scale;
pub mod svg;
pub mod table;
pub mod unit;

pub use self::bars::{BarChart, BarRow};
pub use self::chart::{Chart, ChartAxis, ChartLevel, ChartLine, ChartSpan};
pub use self::html::render;
pub use self::run::{date, of_run, percentiles};
pub use self::scale::AxisScale;
pub use self::table::{PageTable, TableCell};
pub use self::unit::ValueUnit;
use crate::measure::compare::Finding;

/// What a page shows, from the top to the bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportPage {
    /// What was measured, e.g. `GET http://localhost:8080/`.
    pub title: String,
    /// How, in a few short facts.
    pub about: Vec<String>,
    /// What to think of it.
    pub verdict: PageVerdict,
    /// The handful of figures that matter most.
    pub key_figures: Vec<KeyFigure>,
    /// Plots first, then tables, then method and manifest.
    pub sections: Vec<Section>,
}

/// What a reader should think of something; it decides colour and mark, never the words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Not to be relied on.
    Doubt,
}

/// The conclusion, before anything else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageVerdict {
    /// What it comes to.
    pub tone: Tone,
    /// In a few words, e.g. `All 3 objectives held`.
    pub headline: String,
    /// In one or two sentences, with the figures that carry it.
    pub sentence: String,
    /// What it rests on: trust, objectives, comparisons.
    pub points: Vec<VerdictPoint>,
}

/// One thing that a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictPoint {
    /// Whether it speaks for or against.
    pub tone: Tone,
    /// A sentence.
    pub text: String,
}

/// A figure to be seen at a glance.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFigure {
    /// What it is, e.g. `p99`.
    pub name: String,
    /// The value, in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: ValueUnit,
    /// What it has to be seen beside, e.g. `of 500/s offered`; may be empty.
    pub note: String,
    /// Whether it is good.
    pub tone: Tone,
}

/// A part of a page under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What is below it, in this order.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Lines over an axis; charts and bars that follow each other stand side by side where there is room.
    Chart(Chart),
    /// Values beside each other.
    Bars(BarChart),
    /// Rows and columns.
    Table(PageTable),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
    /// A command line, to be copied.
    Command(String),
}

impl Tone {
    /// That of what was found about a side.
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
    /// A section with this heading.
    pub fn new(title: &str, blocks: Vec<Block>) -> Self {
        Self { title: title.to_owned(), blocks }
    }
}

impl VerdictPoint {
    /// A sentence in a tone.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

impl KeyFigure {
    /// A figure without a note.
    pub fn new(name: &str, value: f64, unit: ValueUnit) -> Self {
        Self { name: name.to_owned(), value, unit, note: String::new(), tone: Tone::Plain }
    }

    /// What it has to be seen beside.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether it is good.
    #[must_use]
    pub fn in_tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}
