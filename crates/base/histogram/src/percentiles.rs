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
#[serde(from = "SavedPercentiles")]
pub struct Percentiles {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation of the population.
    pub sd: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// 50th percentile, the median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Percentiles in a file.
#[derive(Deserialize)]
struct SavedPercentiles {
    #[serde(deserialize_with = "null_or_ms")]
    mean: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    sd: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    min: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p50: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p75: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p90: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p95: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p99: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    p999: Option<f64>,
    #[serde(deserialize_with = "null_or_ms")]
    max: Option<f64>,
}

impl SavedPercentiles {
    fn exact(self) -> Percentiles {
        let Self { mean, sd, min, p50, p75, p90, p95, p99, p999, max } = self;
        Percentiles { mean, sd, min, p50, p75, p90, p95, p99, p999, max }
    }
}

/// Zeros stand for no value: a response takes time, and earlier versions wrote 0 where nothing was measured.
impl From<SavedPercentiles> for Percentiles {
    fn from(saved: SavedPercentiles) -> Self {
        if measured(saved.max).is_some() { saved.exact() } else { Self::default() }
    }
}

/// Deserialises percentiles of times that may all be 0, such as the lateness of a closed loop.
pub fn deserialize_with_zeros<'de, D: Deserializer<'de>>(from: D) -> Result<Percentiles, D::Error> {
    SavedPercentiles::deserialize(from).map(SavedPercentiles::exact)
}

/// Time in milliseconds, or null; it has to be there.
pub fn null_or_ms<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Option::deserialize(from)
}

fn measured(ms: Option<f64>) -> Option<f64> {
    ms.filter(|ms| *ms != 0.0)
}

/// Deserialises a percentile or a maximum of response times in milliseconds: null, and the 0 that earlier versions wrote
/// where nothing was measured, are none.
///
/// # Errors
/// Anything else.
pub fn deserialize_measured<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    null_or_ms(from).map(measured)
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
    fn nothing_measured_is_null_and_the_zeros_of_earlier_versions_are_read_as_such() {
        let nothing = written(&Percentiles::default());
        assert_eq!(nothing.matches("null").count(), 10, "{nothing}");
        for text in [nothing.clone(), nothing.replace("null", "0.0"), nothing.replace("null", "0")] {
            assert_eq!(read(&text), Ok(Percentiles::default()), "{text}");
        }
        assert!(read(&nothing.replace("\"p99\":null,", "")).expect_err("damaged").contains("p99"));
        assert!(read(&nothing.replace("\"p99\":null", "\"p99\":\"fast\"")).is_err());
    }

    #[test]
    fn lateness_of_zero_is_a_value_that_survives_a_round_trip() {
        let mut histogram = Histogram::precise();
        histogram.record(Nanos::ZERO);
        let percentiles = histogram.percentiles();
        assert_eq!((percentiles.p50, percentiles.sd), (Some(0.0), Some(0.0)));
        let text = written(&percentiles);
        let read = deserialize_with_zeros(&mut serde_json::Deserializer::from_str(&text));
        assert_eq!(read.map_err(|e| e.to_string()), Ok(percentiles));
    }
}
