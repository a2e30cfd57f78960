//! Metrics of a comparison.

use serde::{Deserialize, Serialize};

/// Metric of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name in reports: `rate`, `p99`.
    pub name: String,
    /// Unit: `/s`, `ms`; empty for fractions.
    pub unit: String,
    /// Direction that is better.
    pub better: Better,
    /// Comparison as a ratio, or as a difference in points.
    pub scale: ComparisonScale,
}

/// Direction that is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher is better: throughput.
    Higher,
    /// Lower is better: response time, memory.
    Lower,
}

/// How two values of a metric are compared: by ratio, or by difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonScale {
    /// Ratio of figures above 0.
    Ratio,
    /// Difference of fractions in [0, 1] that may be 0, such as errors.
    Points,
}

impl Metric {
    /// Metric above 0 that is compared as a ratio.
    pub fn ratio(name: &str, unit: &str, better: Better) -> Self {
        Self { name: name.into(), unit: unit.into(), better, scale: ComparisonScale::Ratio }
    }

    /// Fraction in [0, 1] that is compared as a difference.
    pub fn fraction(name: &str, better: Better) -> Self {
        Self { name: name.into(), unit: String::new(), better, scale: ComparisonScale::Points }
    }
}

impl ComparisonScale {
    /// Figure on the linear scale, where differences add up: for ratios the logarithm.
    pub(super) fn to_linear(self, value: f64) -> f64 {
        match self {
            Self::Ratio => value.ln(),
            Self::Points => value,
        }
    }

    /// Effect of a difference on the linear scale: a ratio, or a difference.
    pub(super) fn effect(self, shift: f64) -> f64 {
        match self {
            Self::Ratio => shift.exp(),
            Self::Points => shift,
        }
    }
}
