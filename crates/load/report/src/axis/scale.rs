//! Scales of axes and their round values.

/// Mapping of values to positions on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal steps.
    #[default]
    Linear,
    /// Powers of ten are equal steps; for values above 0.
    Log,
    /// For quantiles: 90%, 99% and 99.9% are equal steps, as in plots of HdrHistogram.
    Tail,
}

/// Ratio of the highest to the lowest value above which measured values have a logarithmic scale.
const MEASURED_LOG_RATIO: f64 = 30.0;
/// Ratio of the highest to the lowest value from which a parameter has a logarithmic scale.
const PARAMETER_LOG_RATIO: f64 = 8.0;

impl AxisScale {
    /// Position of a value, in units that have equal lengths on the axis.
    pub(super) fn at(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(f64::MIN_POSITIVE).log10(),
            Self::Tail => -(1.0 - value).max(1e-9).log10(),
        }
    }

    /// Whether a value has a position on the scale.
    pub(crate) fn contains(self, value: f64) -> bool {
        match self {
            Self::Linear => value.is_finite(),
            Self::Log => value.is_finite() && value > 0.0,
            Self::Tail => (0.0..1.0).contains(&value),
        }
    }

    /// Name of the scale in the script of HTML reports.
    pub(crate) fn script_name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
            Self::Tail => "tail",
        }
    }

    /// Scale of measured values: logarithmic if small ones would not be visible otherwise.
    pub fn fitting(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values {
            if value <= 0.0 {
                return Self::Linear;
            }
            (low, high) = (low.min(value), high.max(value));
        }
        if high > MEASURED_LOG_RATIO * low { Self::Log } else { Self::Linear }
    }

    /// Scale of the values of a parameter, in ascending order: logarithmic if they grow by factors.
    pub(super) fn of_parameter(values: &[f64]) -> Self {
        match (values.first(), values.last()) {
            (Some(low), Some(high)) if *low > 0.0 && high / low >= PARAMETER_LOG_RATIO => Self::Log,
            _ => Self::Linear,
        }
    }

    /// Round values from `low` to `high`, about `wanted` of them; seconds in steps that divide minutes, hours or days.
    pub(super) fn ticks(self, low: f64, high: f64, wanted: f64, seconds: bool) -> Vec<f64> {
        match self {
            Self::Linear if seconds && high - low > 8.0 * wanted => clock(low, high, wanted),
            Self::Linear => linear(low, high, wanted),
            Self::Log => {
                let ticks = decades(low, high, wanted);
                if ticks.len() > 2 { ticks } else { linear(low, high, wanted) }
            }
            Self::Tail => {
                let nines = (1..9).map(|n| 1.0 - 0.1_f64.powi(n));
                let all = [0.0, 0.5].into_iter().chain(nines);
                let ticks: Vec<f64> = all.filter(is_within(low, high)).collect();
                if ticks.len() > 2 { ticks } else { linear(low, high, wanted) }
            }
        }
    }
}

fn linear(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    let raw = (high - low) / wanted.max(1.0);
    if raw.is_nan() || raw <= 0.0 || raw.is_infinite() {
        return vec![low];
    }
    multiples(low, high, round_step(raw))
}

/// Round step at or above a raw one: 1, 2 or 5 times a power of ten.
pub(crate) fn round_step(raw: f64) -> f64 {
    let power = 10_f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * power).find(|step| *step >= raw * 0.999).unwrap_or(raw)
}

/// Filter of values from `low` to `high`, in spite of rounding errors.
fn is_within(low: f64, high: f64) -> impl Fn(&f64) -> bool {
    move |value| *value >= low - low.abs() * 1e-9 && *value <= high + high.abs() * 1e-9
}

/// Steps that divide minutes, hours or days.
fn clock(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    const STEPS: [f64; 13] =
        [10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 21_600.0, 43_200.0];
    let raw = (high - low) / wanted.max(1.0);
    let step = STEPS.into_iter().find(|step| *step >= raw * 0.999).unwrap_or((raw / 86_400.0).ceil() * 86_400.0);
    multiples(low, high, step)
}

fn multiples(low: f64, high: f64, step: f64) -> Vec<f64> {
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let count = (last - first + 1.0).clamp(0.0, 100.0) as u64;
    (0..count).map(|i| (first + i as f64) * step).collect()
}

fn decades(low: f64, high: f64, wanted: f64) -> Vec<f64> {
    if low.is_nan() || low <= 0.0 || !high.is_finite() {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let all = |steps: &[f64]| -> Vec<f64> {
        (first..=last)
            .flat_map(|p| steps.iter().map(move |m| m * 10_f64.powi(p)))
            .filter(is_within(low, high))
            .collect()
    };
    // From fine to coarse.
    let steps: [&[f64]; 2] = [&[1.0, 2.0, 5.0], &[1.0, 3.0]];
    steps.into_iter().map(all).find(|ticks| ticks.len() as f64 <= wanted * 1.5).unwrap_or_else(|| all(&[1.0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_and_about_as_many_as_wanted() {
        assert_eq!(AxisScale::Linear.ticks(0.0, 103.0, 5.0, false), [0.0, 50.0, 100.0]);
        assert_eq!(AxisScale::Linear.ticks(0.0, 9.0, 5.0, false), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(AxisScale::Log.ticks(1.5, 60.0, 5.0, false), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(AxisScale::Log.ticks(14.0, 6100.0, 5.0, false), [30.0, 100.0, 300.0, 1000.0, 3000.0]);
        assert_eq!(AxisScale::Log.ticks(0.9, 12_000.0, 5.0, false), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(AxisScale::Log.ticks(100.0, 104.0, 5.0, false), [100.0, 101.0, 102.0, 103.0, 104.0]);
        assert_eq!(AxisScale::Linear.ticks(0.0, 10_000.0, 6.0, true), [0.0, 1800.0, 3600.0, 5400.0, 7200.0, 9000.0]);
        assert_eq!(AxisScale::Tail.ticks(0.0, 0.999, 5.0, false).len(), 5);
    }

    #[test]
    fn a_tail_has_equal_steps_per_nine() {
        for (quantile, at) in [(0.0, 0.0), (0.9, 1.0), (0.999, 3.0)] {
            assert!((AxisScale::Tail.at(quantile) - at).abs() < 1e-9);
        }
        assert!(AxisScale::Tail.at(1.0).is_finite() && AxisScale::Log.at(0.0).is_finite());
    }

    #[test]
    fn values_far_apart_have_a_logarithmic_scale_unless_one_is_zero() {
        assert_eq!(AxisScale::fitting([1.0, 20.0]), AxisScale::Linear);
        assert_eq!(AxisScale::fitting([1.0, 200.0]), AxisScale::Log);
        assert_eq!(AxisScale::fitting([0.0, 200.0]), AxisScale::Linear);
        assert_eq!(AxisScale::fitting([]), AxisScale::Linear);
        assert_eq!(AxisScale::of_parameter(&[1.0, 8.0]), AxisScale::Log);
        assert_eq!([&[0.0, 8.0][..], &[1.0, 7.0], &[]].map(AxisScale::of_parameter), [AxisScale::Linear; 3]);
    }

    proptest! {
        #[test]
        fn ticks_lie_within_and_in_order(low in 1e-6..1e6_f64, more in 1e-6..1e9_f64, wanted in 2.0..10.0_f64) {
            let high = low + more;
            for scale in [AxisScale::Linear, AxisScale::Log] {
                let ticks = scale.ticks(low, high, wanted, false);
                prop_assert!(ticks.len() <= 40, "{scale:?}: {ticks:?}");
                prop_assert!(ticks.is_sorted());
                prop_assert!(ticks.iter().all(|t| *t >= low * 0.998 - more * 1e-6 && *t <= high * 1.002));
            }
        }
    }
}
