//! Histograms of times in constant memory, merged without loss.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::{self, Serializer as _, V2Serializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::percentiles::Percentiles;
use weir_base::Nanos;

/// HDR histogram of times from 1 ns to an hour; longer ones count as an hour.
///
/// The memory is constant from the first time on, 270 kB at 3 digits; an empty one has none, since a run counts in many
/// that stay empty. Values are exact to the given number of significant digits.
#[derive(Clone, Debug)]
pub struct Histogram {
    digits: u8,
    /// None without times, unless the memory was taken before.
    times: Option<Hdr<u64>>,
}

/// Equal with the same digits and times.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.digits == other.digits && self.recorded_times() == other.recorded_times()
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;

impl Histogram {
    /// Empty histogram of three significant digits: every reported figure is within 0.1% of a recorded value.
    pub fn precise() -> Self {
        Self { digits: 3, times: None }
    }

    /// Empty histogram of two significant digits, in an eighth of the memory: for an interval of a series.
    pub fn coarse() -> Self {
        Self { digits: 2, times: None }
    }

    /// Takes the memory now: the first time would otherwise wait 0.1 ms for it.
    pub fn reserve(&mut self) {
        self.reserved();
    }

    #[allow(clippy::expect_used, reason = "fails only for bounds that are out of range, and these are constants")]
    fn reserved(&mut self) -> &mut Hdr<u64> {
        let digits = self.digits;
        self.times.get_or_insert_with(|| Hdr::new_with_bounds(1, HOUR_NS, digits).expect("the bounds are valid"))
    }

    /// Times, if there are any.
    fn recorded_times(&self) -> Option<&Hdr<u64>> {
        self.times.as_ref().filter(|times| !times.is_empty())
    }

    /// Records a time.
    pub fn record(&mut self, time: Nanos) {
        self.reserved().saturating_record(time.0);
    }

    /// Adds all times of another histogram.
    #[allow(clippy::expect_used, reason = "both sides have the same upper bound, so no value is out of range")]
    pub fn add(&mut self, other: &Self) {
        if let Some(times) = other.recorded_times() {
            self.reserved().add(times).expect("the same bounds on both sides");
        }
    }

    /// Number of recorded times.
    pub fn count(&self) -> u64 {
        self.times.as_ref().map_or(0, Hdr::len)
    }

    /// Quantile `q`, in [0, 1]: the smallest value that at least this fraction of values does not exceed; `None`
    /// without any.
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        self.recorded_times().map(|times| Nanos(times.value_at_quantile(q).min(times.max())))
    }

    /// [`Self::quantile`] in milliseconds.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.quantile(q).map(Nanos::as_millis_f64)
    }

    /// Minimum; `None` without values.
    pub fn min(&self) -> Option<Nanos> {
        self.recorded_times().map(|times| Nanos(times.min()))
    }

    /// Maximum; `None` without values.
    pub fn max(&self) -> Option<Nanos> {
        self.recorded_times().map(|times| Nanos(times.max()))
    }

    /// Maximum, in milliseconds; `None` without values.
    pub fn max_ms(&self) -> Option<f64> {
        self.max().map(Nanos::as_millis_f64)
    }

    /// Mean, in nanoseconds; `None` without values.
    pub fn mean_ns(&self) -> Option<f64> {
        self.recorded_times().map(Hdr::mean)
    }

    /// Mean, in milliseconds; `None` without values.
    pub fn mean_ms(&self) -> Option<f64> {
        self.mean_ns().map(|ns| ns / 1e6)
    }

    /// Sum, in nanoseconds.
    pub fn sum_ns(&self) -> f64 {
        self.mean_ns().map_or(0.0, |mean| mean * self.count() as f64)
    }

    /// Standard deviation of the population, in nanoseconds; `None` without values.
    pub fn sd_ns(&self) -> Option<f64> {
        self.recorded_times().map(Hdr::stdev)
    }

    /// Fraction of values at or below `time`, in [0, 1]; 1 without values.
    pub fn fraction_up_to(&self, time: Nanos) -> f64 {
        self.recorded_times().map_or(1.0, |times| times.quantile_below(time.0))
    }

    /// Number of values from `low` to `high`, both included, to the histogram's precision.
    pub fn count_between(&self, low: Nanos, high: Nanos) -> u64 {
        self.recorded_times().map_or(0, |times| times.count_between(low.0, high.0))
    }

    /// Recorded times, to the histogram's precision, in ascending order, with the number of each.
    pub fn recorded(&self) -> impl Iterator<Item = (Nanos, u64)> + use<> {
        let steps = self.recorded_times().into_iter().flat_map(Hdr::iter_recorded);
        let recorded = steps.map(|step| (Nanos(step.value_iterated_to()), step.count_since_last_iteration()));
        // Not as an iterator over the thousands of places for times, which each caller would compile once more, in the
        // profile `dev` without optimisation.
        recorded.collect::<Vec<_>>().into_iter()
    }

    /// Figures for reports.
    pub fn percentiles(&self) -> Percentiles {
        let ms = |q| self.quantile_ms(q);
        Percentiles {
            mean: self.mean_ms(),
            sd: self.sd_ns().map(|ns| ns / 1e6),
            min: self.min().map(Nanos::as_millis_f64),
            p50: ms(0.5),
            p75: ms(0.75),
            p90: ms(0.9),
            p95: ms(0.95),
            p99: ms(0.99),
            p999: ms(0.999),
            max: self.max_ms(),
        }
    }

    /// Histogram in the HdrHistogram V2 format, uncompressed.
    #[allow(clippy::expect_used, reason = "writing to memory fails only on histograms of over 2^31 buckets")]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let empty;
        let times = match &self.times {
            Some(times) => times,
            None => {
                empty = Hdr::new_with_bounds(1, HOUR_NS, self.digits).expect("the bounds are valid");
                &empty
            }
        };
        V2Serializer::new().serialize(times, &mut bytes).expect("memory takes all bytes");
        bytes
    }

    /// Histogram in the HdrHistogram V2 format as base64; empty without values.
    pub fn to_base64(&self) -> String {
        if self.count() == 0 { String::new() } else { BASE64_STANDARD.encode(self.to_bytes()) }
    }

    /// Reads base64 of the HdrHistogram V2 format; `empty` makes the histogram for an empty text.
    ///
    /// # Errors
    /// Invalid base64 or histogram.
    pub fn from_base64(base64: &str, empty: fn() -> Self) -> Result<Self, String> {
        if base64.is_empty() {
            return Ok(empty());
        }
        let bytes = BASE64_STANDARD.decode(base64).map_err(|e| format!("histogram: not base64: {e}"))?;
        Self::from_bytes(&bytes)
    }

    /// Reads the HdrHistogram V2 format, from any library.
    ///
    /// # Errors
    /// An invalid histogram.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, String> {
        let hdr: Hdr<u64> = serialization::Deserializer::new()
            .deserialize(&mut bytes)
            .map_err(|_| "not an HdrHistogram: the text is damaged or cut off".to_owned())?;
        if hdr.high() > HOUR_NS {
            return Err("a histogram that reaches beyond an hour".into());
        }
        let mut own = match hdr.sigfig() {
            2 => Self::coarse(),
            _ => Self::precise(),
        };
        if !hdr.is_empty() {
            own.reserved().add(&hdr).map_err(|e| format!("a histogram that does not fit: {e}"))?;
        }
        Ok(own)
    }
}

/// Three significant digits.
impl Default for Histogram {
    fn default() -> Self {
        Self::precise()
    }
}

/// As [`Histogram::to_base64`].
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.to_base64())
    }
}

/// An empty text is a histogram of three digits.
impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize_or(from, Self::precise)
    }
}

/// Deserialises a histogram; an empty text is one of two digits.
pub fn deserialize_coarse<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
    deserialize_or(from, Histogram::coarse)
}

fn deserialize_or<'de, D: Deserializer<'de>>(from: D, empty: fn() -> Histogram) -> Result<Histogram, D::Error> {
    Histogram::from_base64(&String::deserialize(from)?, empty).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        for mut histogram in [Histogram::precise(), Histogram::coarse()] {
            let empty = |histogram: &Histogram| {
                assert_eq!(histogram.percentiles(), Percentiles::default());
                assert_eq!((histogram.quantile(0.5), histogram.min(), histogram.max()), (None, None, None));
                assert_eq!((histogram.mean_ns(), histogram.sd_ns()), (None, None));
                assert_eq!(histogram.fraction_up_to(Nanos(1)), 1.0);
                assert_eq!((histogram.count(), histogram.recorded().count()), (0, 0));
                let read = Histogram::from_bytes(&histogram.to_bytes()).expect("own bytes");
                assert_eq!((read.digits, read.count()), (histogram.digits, 0));
            };
            empty(&histogram);
            histogram.add(&Histogram::precise());
            assert_eq!(histogram.times, None, "nothing was added");
            histogram.reserve();
            empty(&histogram);
        }
    }

    proptest! {
        /// Reference: the value of rank ceil(q n) after sorting.
        #[test]
        fn every_quantile_is_within_a_thousandth(mut values in prop::collection::vec(1..HOUR_NS, 1..400), q in 0.0..1.0_f64) {
            let mut histogram = Histogram::precise();
            values.iter().for_each(|v| histogram.record(Nanos(*v)));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let (got, exact) = (histogram.quantile(q).expect("values").0 as f64, values[rank - 1] as f64);
            // Tolerance of rank: q n may be a whole number, where rounding decides.
            let above = values[rank.min(values.len() - 1)] as f64;
            let close = |truth: f64| (got - truth).abs() <= truth * 1e-3 + 1.0;
            prop_assert!(close(exact) || close(above), "{got} against {exact}");
        }

        #[test]
        fn merging_loses_nothing(a in prop::collection::vec(0..HOUR_NS, 0..200), b in prop::collection::vec(0..HOUR_NS, 0..200)) {
            let fill = |values: &[u64]| {
                let mut h = Histogram::precise();
                values.iter().for_each(|v| h.record(Nanos(*v)));
                h
            };
            let mut merged = fill(&a);
            merged.add(&fill(&b));
            let whole = fill(&[a, b].concat());
            prop_assert_eq!(merged.percentiles(), whole.percentiles());
            prop_assert_eq!(merged.count(), whole.count());
        }

        #[test]
        fn bytes_come_back_as_they_were(values in prop::collection::vec(0..HOUR_NS, 0..200), coarse: bool) {
            let mut h = if coarse { Histogram::coarse() } else { Histogram::precise() };
            values.iter().for_each(|v| h.record(Nanos(*v)));
            let back = Histogram::from_bytes(&h.to_bytes()).expect("own bytes");
            prop_assert_eq!(back.count(), h.count());
            prop_assert_eq!(back.quantile(0.9), h.quantile(0.9));
        }

        #[test]
        fn garbage_is_an_error_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Histogram::from_bytes(&bytes);
        }
    }
}
