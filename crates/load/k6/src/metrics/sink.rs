//! What is kept of the values of a metric.

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_histogram::histogram::deserialize_coarse;

use super::registry::ScriptMetricKind;

/// Values of one are kept in millionths.
const PARTS_PER_ONE: f64 = 1e6;
/// Values from this one on are kept in thousands.
const MIN_LARGE: f64 = 3e6;
const LARGE_PARTS_PER_ONE: f64 = 1e-3;

/// What is kept of the values of a metric.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// Their sum.
    Counter(f64),
    /// The last one, the smallest and the largest; none yet.
    Gauge(Option<GaugeValues>),
    /// How many are not 0, of how many.
    Rate { passed: u64, all: u64 },
    /// Their distribution.
    Trend(Box<TrendValues>),
}

/// Values of a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GaugeValues {
    pub(crate) last: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Distribution of values, with three significant digits; the smallest and the largest are exact.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrendValues {
    #[serde(deserialize_with = "deserialize_coarse")]
    above: Histogram,
    /// Those that are too large for it, in thousands.
    #[serde(with = "optional")]
    large: Option<Histogram>,
    /// Absolute values of those below 0.
    #[serde(with = "optional")]
    below: Option<Histogram>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// Text of a histogram that may be none.
mod optional {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use weir_histogram::Histogram;

    pub(super) fn serialize<S: Serializer>(histogram: &Option<Histogram>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&histogram.as_ref().map(Histogram::to_base64).unwrap_or_default())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Histogram>, D::Error> {
        let text = String::deserialize(from)?;
        let read = || Histogram::from_base64(&text, Histogram::coarse).map_err(serde::de::Error::custom);
        (!text.is_empty()).then(read).transpose()
    }
}

impl Default for TrendValues {
    fn default() -> Self {
        let above = Histogram::coarse();
        Self { above, large: None, below: None, count: 0, sum: 0.0, min: f64::MAX, max: f64::MIN }
    }
}

impl TrendValues {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let parts = |per_one: f64| Nanos((value.abs() * per_one).round() as u64);
        match value {
            value if value < 0.0 => self.below.get_or_insert_with(Histogram::coarse).record(parts(PARTS_PER_ONE)),
            value if value < MIN_LARGE => self.above.record(parts(PARTS_PER_ONE)),
            _ => self.large.get_or_insert_with(Histogram::coarse).record(parts(LARGE_PARTS_PER_ONE)),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.above.add(&other.above);
        if let Some(large) = &other.large {
            self.large.get_or_insert_with(Histogram::coarse).add(large);
        }
        if let Some(below) = &other.below {
            self.below.get_or_insert_with(Histogram::coarse).add(below);
        }
    }

    /// Quantile from 0 to 1; 0 without a value.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let below = self.below.as_ref().map_or(0, Histogram::count);
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let above = self.above.count();
        // In the middle between two, so that rounding does not choose its neighbour.
        let nth = |histogram: &Histogram, n: u64| {
            let q = (n as f64 - 0.5) / histogram.count().max(1) as f64;
            histogram.quantile(q).map(|parts| parts.0 as f64)
        };
        let parts = match (&self.below, &self.large) {
            // The largest absolute value is the smallest.
            (Some(histogram), _) if rank <= below => {
                nth(histogram, below - rank + 1).map(|parts| -parts / PARTS_PER_ONE)
            }
            (_, Some(histogram)) if rank > below + above => {
                nth(histogram, rank - below - above).map(|parts| parts / LARGE_PARTS_PER_ONE)
            }
            _ => nth(&self.above, rank - below).map(|parts| parts / PARTS_PER_ONE),
        };
        parts.unwrap_or(0.0).clamp(self.min, self.max)
    }

    /// Mean; 0 without a value.
    pub(crate) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }
}

impl Sink {
    /// Sink without a value.
    pub(crate) fn of(kind: ScriptMetricKind) -> Self {
        match kind {
            ScriptMetricKind::Counter => Self::Counter(0.0),
            ScriptMetricKind::Gauge => Self::Gauge(None),
            ScriptMetricKind::Rate => Self::Rate { passed: 0, all: 0 },
            ScriptMetricKind::Trend => Self::Trend(Box::default()),
        }
    }

    /// Takes a value; one that is not finite is left out.
    pub(crate) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        match self {
            Self::Counter(sum) => *sum += value,
            Self::Gauge(values) => {
                let (min, max) = values.map_or((value, value), |values| (values.min, values.max));
                *values = Some(GaugeValues { last: value, min: min.min(value), max: max.max(value) });
            }
            Self::Rate { passed, all } => {
                *passed += u64::from(value != 0.0);
                *all += 1;
            }
            Self::Trend(values) => values.add(value),
        }
    }

    /// Adds the values of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Counter(sum), Self::Counter(more)) => *sum += more,
            (Self::Gauge(values), Self::Gauge(Some(more))) => {
                let (min, max) =
                    values.map_or((more.min, more.max), |own| (own.min.min(more.min), own.max.max(more.max)));
                *values = Some(GaugeValues { last: more.last, min, max });
            }
            (Self::Rate { passed, all }, Self::Rate { passed: more_passed, all: more }) => {
                *passed += more_passed;
                *all += more;
            }
            (Self::Trend(values), Self::Trend(more)) => values.merge(more),
            _ => {}
        }
    }

    /// Whether it has no value.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Counter(sum) => *sum == 0.0,
            Self::Gauge(values) => values.is_none(),
            Self::Rate { all, .. } => *all == 0,
            Self::Trend(values) => values.count == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_near_those_of_the_sorted_values(
            values in prop::collection::vec(prop_oneof![-1000.0..1000.0_f64, 1e6..1e10_f64], 1..200), q in 0.0..=1.0_f64, cut in 0..200_usize
        ) {
            let mut halves = [Sink::of(ScriptMetricKind::Trend), Sink::of(ScriptMetricKind::Trend)];
            for (index, value) in values.iter().enumerate() {
                halves[usize::from(index < cut)].add(*value);
            }
            let [mut all, other] = halves;
            all.merge(&other);
            let Sink::Trend(trend) = all else { unreachable!() };
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
            let exact = sorted[rank - 1];
            let found = trend.quantile(q);
            prop_assert!((found - exact).abs() <= exact.abs() * 0.01 + 1e-5, "{found} beside {exact}");
            prop_assert_eq!(trend.min, sorted[0]);
        }
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut sink = Sink::of(ScriptMetricKind::Trend);
        sink.add(f64::NAN);
        sink.add(f64::INFINITY);
        assert!(sink.is_empty());
        let mut gauge = Sink::of(ScriptMetricKind::Gauge);
        [3.0, 1.0, 2.0].into_iter().for_each(|value| gauge.add(value));
        assert!(matches!(gauge, Sink::Gauge(Some(values)) if values == GaugeValues { last: 2.0, min: 1.0, max: 3.0 }));
    }
}
