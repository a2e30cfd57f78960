//! Percentiles of times, as reports have them.

use serde::{Deserialize, Deserializer, Serialize};

use weir_base::Nanos;

/// Text of a time that was not measured.
pub const NOT_MEASURED: &str = "-";

/// Text of a time, if it was measured.
pub fn time_text(time: Option<Nanos>) -> String {
    time.map_or_else(|| NOT_MEASURED.to_owned(), |time| time.to_string())
}

/// Distribution of times, in milliseconds. Without a value it has none of these figures, so that nothing measured is
/// never read as a fast response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Arithmetic mean.
    #[serde(deserialize_with = "null_or_ms")]
    pub mean: Option<f64>,
    /// Standard deviation of the population.
    #[serde(deserialize_with = "null_or_ms")]
    pub sd: Option<f64>,
    /// Minimum.
    #[serde(deserialize_with = "null_or_ms")]
    pub min: Option<f64>,
    /// 50th percentile, the median.
    #[serde(deserialize_with = "null_or_ms")]
    pub p50: Option<f64>,
    /// 75th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p75: Option<f64>,
    /// 90th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p90: Option<f64>,
    /// 95th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p95: Option<f64>,
    /// 99th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(deserialize_with = "null_or_ms")]
    pub p999: Option<f64>,
    /// Maximum.
    #[serde(deserialize_with = "null_or_ms")]
    pub max: Option<f64>,
}

/// Deserialises a time in milliseconds, or null; the field must be present.
///
/// # Errors
/// Anything else.
pub fn null_or_ms<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    fn read(text: &str) -> Result<Percentiles, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    fn written(percentiles: &Percentiles) -> String {
        serde_json::to_string(percentiles).expect("JSON")
    }

    #[test]
    fn nothing_measured_is_null_and_no_field_may_be_missing() {
        let nothing = written(&Percentiles::default());
        assert_eq!(nothing.matches("null").count(), 10, "{nothing}");
        assert_eq!(read(&nothing), Ok(Percentiles::default()));
        assert!(read(&nothing.replace("\"p99\":null,", "")).expect_err("damaged").contains("p99"));
        assert!(read(&nothing.replace("\"p99\":null", "\"p99\":\"fast\"")).is_err());
    }

    #[test]
    fn lateness_of_zero_is_a_value_that_survives_a_round_trip() {
        let mut histogram = Histogram::precise();
        histogram.record(Nanos::ZERO);
        let percentiles = histogram.percentiles();
        assert_eq!((percentiles.p50, percentiles.sd), (Some(0.0), Some(0.0)));
        assert_eq!(read(&written(&percentiles)), Ok(percentiles));
    }
}
