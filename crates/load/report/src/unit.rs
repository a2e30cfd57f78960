//! Unit of a number, and its text form. `script/units.js` of `weir-page` has the same rules; a test in a browser compares both.

use crate::number_format;
use weir_base::Nanos;
use weir_histogram::percentiles::NOT_MEASURED;
use weir_measure::compare::{ComparisonScale, Metric};

/// Unit of a value in charts and tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ValueUnit {
    /// Count.
    #[default]
    Count,
    /// Count per second.
    PerSecond,
    /// Time in milliseconds.
    Milliseconds,
    /// Time in seconds; from a minute on as `1:30`.
    Seconds,
    /// Fraction in [0, 1], written in percent.
    Fraction,
    /// Bytes, in powers of 1000.
    Bytes,
    /// Quantile in [0, 1], written as a percentile.
    Quantile,
    /// Another unit, by its symbol; may be empty.
    Other(String),
}

impl ValueUnit {
    /// Unit of a metric.
    pub fn of(metric: &Metric) -> Self {
        match (metric.scale, metric.unit.as_str()) {
            (ComparisonScale::Points, _) => Self::Fraction,
            (_, "ms") => Self::Milliseconds,
            (_, "/s") => Self::PerSecond,
            (_, other) => Self::Other(other.to_owned()),
        }
    }

    /// Value with about three digits and its unit; `-` for one that was not measured.
    pub fn format(&self, value: impl Into<Option<f64>>) -> String {
        let Some(value) = value.into() else { return NOT_MEASURED.to_owned() };
        match self {
            Self::Count if value.fract() == 0.0 => number_format::count(value as u64),
            Self::Count => number_format::rate(value),
            Self::PerSecond => number_format::rate(value) + "/s",
            Self::Milliseconds => with_nbsp(&number_format::ms(value)),
            Self::Seconds if value >= 60.0 => clock(value),
            Self::Seconds => with_nbsp(&number_format::ms(value * 1e3)),
            Self::Fraction => number_format::percentage(value),
            Self::Bytes => with_nbsp(&number_format::bytes(value)),
            Self::Quantile => format!("p{}", percentile(value)),
            Self::Other(name) => format!("{}\u{a0}{name}", signed(value)).trim_end().to_owned(),
        }
    }

    /// Label of a round value at an axis, without superfluous digits.
    pub(super) fn tick(&self, value: f64) -> String {
        match self {
            _ if value == 0.0 => "0".to_owned(),
            Self::Milliseconds => with_nbsp(&number_format::round_time(Nanos::from_secs_f64(value / 1e3))),
            Self::Seconds if value >= 60.0 => clock(value),
            Self::Seconds => with_nbsp(&number_format::round_time(Nanos::from_secs_f64(value))),
            Self::Fraction => format!("{}%", round(value * 100.0)),
            Self::Quantile => format!("{}%", percentile(value)),
            Self::Bytes => {
                let power = (value.log10() / 3.0 + 1e-9).floor().clamp(0.0, 4.0);
                let unit = ["B", "kB", "MB", "GB", "TB"].get(power as usize).unwrap_or(&"B");
                format!("{}\u{a0}{unit}", round(value / 1000_f64.powf(power)))
            }
            _ => round(value),
        }
    }

    /// Unit that [`Self::tick`] leaves out; empty for all others.
    pub(super) fn tick_suffix(&self) -> &str {
        match self {
            Self::PerSecond => "/s",
            _ => self.name(),
        }
    }

    /// Name of the unit in `units.js`.
    pub(super) fn script_name(&self) -> &str {
        match self {
            Self::Count => "count",
            Self::PerSecond => "per_s",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Fraction => "fraction",
            Self::Bytes => "bytes",
            Self::Quantile => "quantile",
            Self::Other(_) => "of",
        }
    }

    /// Symbol of [`Self::Other`]; empty for all others.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            _ => "",
        }
    }
}

/// Time of a minute or more: `1:30`, `1:00:02.5`.
fn clock(seconds: f64) -> String {
    let ms = (seconds * 1e3).round() as u64;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, (ms % 60_000) as f64 / 1e3);
    let zero = if seconds < 10.0 { "0" } else { "" };
    let seconds = round_to(seconds, 3);
    match hours {
        0 => format!("{minutes}:{zero}{seconds}"),
        _ => format!("{hours}:{minutes:02}:{zero}{seconds}"),
    }
}

/// Number that may be negative (a difference) or very small (a probability).
fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "\u{2212}" } else { "" };
    match value.abs() {
        m if m > 0.0 && m < 0.0995 => {
            let decimals = (2.0 - m.log10().floor()).min(9.0);
            format!("{sign}{}", round_to(m, decimals as usize))
        }
        m => format!("{sign}{}", number_format::rate(m)),
    }
}

/// `4.91ms` with a no-break space before the unit.
fn with_nbsp(text: &str) -> String {
    match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => format!("{}\u{a0}{}", text[..at].trim_end(), &text[at..]),
        None => text.to_owned(),
    }
}

/// Percentile of a quantile, with one more decimal for each nine: `50`, `99.9`, `99.999`.
fn percentile(quantile: f64) -> String {
    let nines = -(1.0 - quantile).max(1e-9).log10();
    round_to(quantile * 100.0, (nines + 1e-9).floor().max(0.0) as usize)
}

/// Number at an axis: thousands separated, up to six decimals.
fn round(value: f64) -> String {
    let sign = if value < 0.0 { "\u{2212}" } else { "" };
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        return format!("{sign}{}", number_format::count(magnitude.round() as u64));
    }
    format!("{sign}{}", round_to(magnitude, 6))
}

fn round_to(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(unit: &ValueUnit, values: &[f64]) -> String {
        values.iter().map(|v| unit.format(*v)).collect::<Vec<_>>().join(", ").replace('\u{a0}', " ")
    }

    fn ticks(unit: &ValueUnit, values: &[f64]) -> String {
        values.iter().map(|v| unit.tick(*v)).collect::<Vec<_>>().join(", ").replace('\u{a0}', " ")
    }

    #[test]
    fn a_value_has_its_unit_and_three_digits() {
        assert_eq!(shown(&ValueUnit::Milliseconds, &[0.0453, 4.912, 1500.0]), "45.3 us, 4.91 ms, 1.50 s");
        assert_eq!(shown(&ValueUnit::Seconds, &[3.0, 0.25, 125.0, 3602.5]), "3 s, 250 ms, 2:05, 1:00:02.5");
        assert_eq!(shown(&ValueUnit::Quantile, &[0.0, 0.5, 0.9, 0.995, 0.9996]), "p0, p50, p90, p99.5, p99.96");
        assert_eq!(shown(&ValueUnit::Fraction, &[0.0, 0.000_001, 0.104]), "0%, <0.001%, 10.4%");
        assert_eq!(shown(&ValueUnit::Bytes, &[1_530_000.0]), "1.53 MB");
        assert_eq!(shown(&ValueUnit::Other("points".into()), &[-12.34, 3.0]), "\u{2212}12.3 points, 3.00 points");
        assert_eq!(
            shown(&ValueUnit::Other(String::new()), &[2.0, 0.0, 0.004, -0.012_345]),
            "2.00, 0, 0.004, \u{2212}0.0123"
        );
        assert_eq!(shown(&ValueUnit::Count, &[1234.0, 2.5]), "1,234, 2.50");
    }

    #[test]
    fn a_round_value_has_no_digit_too_many() {
        assert_eq!(ticks(&ValueUnit::Milliseconds, &[0.0, 0.5, 20.0, 1500.0]), "0, 500 us, 20 ms, 1.5 s");
        assert_eq!(ticks(&ValueUnit::Quantile, &[0.5, 0.9, 0.999_99]), "50%, 90%, 99.999%");
        assert_eq!(ticks(&ValueUnit::Bytes, &[0.0, 1000.0, 2_500_000.0]), "0, 1 kB, 2.5 MB");
        assert_eq!(ticks(&ValueUnit::Count, &[0.0, 0.2, 12_000.0]), "0, 0.2, 12,000");
        assert_eq!(
            ticks(&ValueUnit::Seconds, &[0.5, 30.0, 60.0, 119.9999, 7200.0]),
            "500 ms, 30 s, 1:00, 2:00, 2:00:00"
        );
        assert_eq!(ticks(&ValueUnit::Fraction, &[0.05]), "5%");
    }
}
