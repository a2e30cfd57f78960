//! Values beside each other: a bar and its number for each.

use super::{ValueInterval, ValueUnit};

/// Rows of bars that begin at zero, so that their lengths can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Subject of the comparison.
    pub title: String,
    /// Remark for the reader; may be empty.
    pub note: String,
    /// Meaning of the rows, e.g. `variant`, and of the bars, e.g. `requests per second`.
    pub columns: [String; 2],
    /// The unit of all values.
    pub unit: ValueUnit,
    /// A row each, from the top.
    pub bars: Vec<BarRow>,
}

/// Bar with its name, value and interval.
#[derive(Clone, Debug, PartialEq)]
pub struct BarRow {
    /// Name of the row.
    pub name: String,
    /// The length of the bar; >= 0.
    pub value: f64,
    /// The interval in which the value lies, if it is known.
    pub interval: Option<ValueInterval>,
    /// Text after the number, e.g. a fraction; may be empty.
    pub note: String,
    /// The number of its colour.
    pub hue: usize,
    /// Whether it is not to be relied on; it is drawn hollow, and marked.
    pub untrusted: bool,
}

impl BarChart {
    /// The end of the longest bar or interval; above 0.
    pub(super) fn max_value(&self) -> f64 {
        let ends = self.bars.iter().map(|bar| bar.interval.map_or(bar.value, |of| of.high.max(bar.value)));
        let most = ends.fold(0.0, f64::max);
        if most > 0.0 { most } else { 1.0 }
    }
}

impl BarRow {
    /// A bar without an interval or a note.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value, interval: None, note: String::new(), hue: 0, untrusted: false }
    }
}
