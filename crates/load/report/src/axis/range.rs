//! Range of the values that an axis shows, and its ticks.

use super::{AxisScale, ChartAxis};
use crate::unit::ValueUnit;

/// Axis with the range of values that it shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisRange<'a> {
    axis: &'a ChartAxis,
    low: f64,
    high: f64,
}

/// Position and label of a tick on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    /// Place in [0, 1].
    pub(crate) at: f64,
    /// Value in the unit of the axis.
    pub(crate) label: String,
}

impl<'a> AxisRange<'a> {
    /// Range of an x axis: from the lowest to the highest value.
    pub(crate) fn across(axis: &'a ChartAxis, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = match (extent(values, axis.scale), axis.scale) {
            (Some((low, high)), _) if high > low => (low, high),
            (Some((low, _)), AxisScale::Linear) => (low, low + 1.0),
            (Some((low, _)), AxisScale::Log) => (low, low * 10.0),
            (_, AxisScale::Tail | AxisScale::Linear) => (0.0, 0.9),
            (None, AxisScale::Log) => (1.0, 10.0),
        };
        Self { axis, low, high }
    }

    /// Range of a y axis: from 0 on a linear scale, and beyond the highest value.
    pub(crate) fn upwards(axis: &'a ChartAxis, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = match (extent(values, axis.scale), axis.scale) {
            (Some((low, high)), AxisScale::Linear) => {
                let base = low.min(0.0);
                (base * 1.05, if high > base { high + (high - base) * 0.05 } else { base + 1.0 })
            }
            (Some((low, high)), AxisScale::Log) => (low / 1.15, high * 1.15),
            (Some((low, high)), AxisScale::Tail) if high > low => (low, high),
            (None, AxisScale::Log) => (1.0, 10.0),
            (_, AxisScale::Tail | AxisScale::Linear) => (0.0, 0.9),
        };
        Self { axis, low, high }
    }

    /// Place of a value in [0, 1]; at the edge if the value is outside of the range.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [value, low, high] = [value, self.low, self.high].map(|value| self.axis.scale.at(value));
        let at = ((value - low) / (high - low)).clamp(0.0, 1.0);
        if at.is_finite() { at } else { 0.0 }
    }

    /// Whether a value has a position on the scale.
    pub(crate) fn contains(&self, value: f64) -> bool {
        self.axis.scale.contains(value)
    }

    /// Ticks: the marked values of the axis, or about `wanted` round ones.
    pub(crate) fn ticks(&self, wanted: f64) -> Vec<AxisTick> {
        let Self { axis, low, high } = self;
        let mut values: Vec<f64> = axis.marked.iter().copied().filter(|value| (*low..=*high).contains(value)).collect();
        if values.len() < 2 {
            values = axis.scale.ticks(*low, *high, wanted, axis.unit == ValueUnit::Seconds);
            // Counts are whole.
            if axis.unit == ValueUnit::Count && high - low >= 1.0 {
                values.retain(|value| value.fract() == 0.0);
            }
        }
        values.into_iter().map(|value| AxisTick { at: self.at(value), label: axis.unit.tick(value) }).collect()
    }

    /// Ticks whose labels do not overlap on an axis that is as wide as this number of characters.
    pub(crate) fn ticks_across(&self, wanted: f64, width_characters: f64) -> Vec<AxisTick> {
        let mut free = f64::NEG_INFINITY;
        let mut ticks = self.ticks(wanted);
        ticks.retain(|tick| {
            let (at, half) = (tick.at * width_characters, tick.label.chars().count() as f64 / 2.0);
            let fits = at - half >= free;
            if fits {
                free = at + half + 1.0;
            }
            fits
        });
        ticks
    }
}

fn extent(values: impl Iterator<Item = f64>, scale: AxisScale) -> Option<(f64, f64)> {
    let placed = values.filter(|v| scale.contains(*v));
    placed.fold(None, |known, v| Some(known.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[AxisTick]) -> Vec<String> {
        ticks.iter().map(|tick| tick.label.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn values_of_a_parameter_have_a_tick_each_and_factors_are_evenly_apart() {
        let values = [4.0, 1.0, 2.0, 8.0, 2.0];
        let axis = ChartAxis::of_parameter("connections", values);
        let ticks = AxisRange::across(&axis, values.into_iter()).ticks(3.0);
        assert_eq!(labels(&ticks), ["1", "2", "4", "8"]);
        assert!(ticks.windows(2).all(|pair| (pair[1].at - pair[0].at - 1.0 / 3.0).abs() < 1e-9), "{ticks:?}");
        let many: Vec<f64> = (0..=40).map(f64::from).collect();
        let axis = ChartAxis::of_parameter("connections", many.iter().copied());
        assert_eq!(labels(&AxisRange::across(&axis, many.into_iter()).ticks(5.0)), ["0", "10", "20", "30", "40"]);
    }

    #[test]
    fn counts_have_whole_ticks_and_other_values_a_unit() {
        let range = |unit| labels(&AxisRange::upwards(&ChartAxis::new("", unit), [0.0, 2.0].into_iter()).ticks(5.0));
        assert_eq!(range(ValueUnit::Count), ["0", "1", "2"]);
        assert_eq!(range(ValueUnit::Milliseconds), ["0", "500 us", "1 ms", "1.5 ms", "2 ms"]);
    }

    #[test]
    fn each_nine_of_a_quantile_has_as_much_space() {
        let axis = ChartAxis::of_quantiles("percentile");
        let range = AxisRange::across(&axis, [0.0, 0.5, 0.999].into_iter());
        let at = [0.9, 0.99, 0.999].map(|quantile| range.at(quantile));
        assert!(((at[1] - at[0]) - (at[2] - at[1])).abs() < 1e-6, "{at:?}");
        assert_eq!(labels(&range.ticks(6.0)), ["0", "50%", "90%", "99%", "99.9%"]);
    }

    #[test]
    fn labels_do_not_overlap() {
        let values = [100.0, 101.0, 102.0, 800.0];
        let axis = ChartAxis::of_parameter("rate", values);
        let range = AxisRange::across(&axis, values.into_iter());
        assert_eq!(labels(&range.ticks_across(6.0, 80.0)), ["100", "800"]);
    }
}
