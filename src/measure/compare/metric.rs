//! What is compared.

use serde::{Deserialize, Serialize};

/// A figure that each run has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name, as reports write it: `rate`, `p99`.
    pub name: String,
    /// Its unit: `/s`, `ms`; empty if it has none.
    pub unit: String,
    /// Which way is the good one.
    pub better: Better,
    /// How two of them are compared.
    pub scale: ComparisonScale,
}

/// Which way is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better: throughput.
    Higher,
    /// Less is better: response time, memory.
    Lower,
}

/// How two figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonScale {
    /// As a ratio; figures are above 0.
    Ratio,
    /// As a difference: shares in [0, 1] that may well be 0, such as that of failed requests.
    Points,
}

impl Metric {
    /// A figure above 0 that is compared as a ratio.
    pub fn ratio(name: &str, unit: &str, better: Better) -> Self {
        Self { name: name.into(), unit: unit.into(), better, scale: ComparisonScale::Ratio }
    }

    /// A share in [0, 1] that is compared as a difference.
    pub fn fraction(name: &str, better: Better) -> Self {
        Self { name: name.into(), unit: String::new(), better, scale: ComparisonScale::Points }
    }
}

impl ComparisonScale {
    /// The figure where differences of it add up: effects are multiples of the figure, so its logarithm.
    pub(super) fn to_linear(self, value: f64) -> f64 {
        match self {
            Self::Ratio => value.ln(),
            Self::Points => value,
        }
    }

    /// A difference on the flat scale as people read it: a ratio, or a difference.
    pub(super) fn effect(self, shift: f64) -> f64 {
        match self {
            Self::Ratio => shift.exp(),
            Self::Points => shift,
        }
    }
}
