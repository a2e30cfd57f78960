//! Axes of charts and plots: scales, ranges, and ticks with their labels.
//!
//! HTML reports and plots draw the same axes; `script/axis.js` of HTML reports has the same rules.

mod range;
mod scale;

pub(super) use self::range::AxisRange;
pub use self::scale::AxisScale;
pub(super) use self::scale::round_step;
use crate::unit::ValueUnit;

/// Axis of a chart or plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartAxis {
    /// Name, without the unit.
    pub name: String,
    /// Unit of the values.
    pub unit: ValueUnit,
    /// Scale.
    pub scale: AxisScale,
    /// Values with a tick each, ascending; empty for round values.
    pub marked: Vec<f64>,
}

/// Maximum number of values of a parameter that have a tick each; more have round ticks.
const MAX_MARKED_VALUES: usize = 14;

impl ChartAxis {
    /// Axis with a linear scale.
    pub fn new(name: &str, unit: ValueUnit) -> Self {
        Self { name: name.to_owned(), unit, ..Self::default() }
    }

    /// Axis of fractions of responses.
    pub fn of_quantiles(name: &str) -> Self {
        Self::new(name, ValueUnit::Quantile).scaled(AxisScale::Tail)
    }

    /// Axis of a swept parameter, with ticks at its values.
    pub fn of_parameter(name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let mut marked: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        marked.sort_by(f64::total_cmp);
        marked.dedup();
        let scale = AxisScale::of_parameter(&marked);
        if marked.len() > MAX_MARKED_VALUES {
            marked.clear();
        }
        Self { scale, marked, ..Self::new(name, ValueUnit::Count) }
    }

    /// Sets the scale.
    #[must_use]
    pub fn scaled(mut self, scale: AxisScale) -> Self {
        self.scale = scale;
        self
    }

    /// Ticks at these values in place of round ones, if they are not too many.
    #[must_use]
    pub fn marking(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.marked = Self::of_parameter("", values).marked;
        self
    }

    /// Name, with the unit in parentheses if the labels of the ticks are without.
    pub fn title(&self) -> String {
        match self.unit.tick_suffix() {
            "" => self.name.clone(),
            unit => format!("{} ({unit})", self.name),
        }
    }
}
