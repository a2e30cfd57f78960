//! Limits of metrics: `{ http_req_duration: ['p(95)<300', { threshold: 'avg<100', abortOnFail: true }] }`.

use serde_json::Value;
use weir_base::Nanos;

use super::reader::OptionReader;
use crate::metrics::registry::ScriptMetricKind;
use crate::metrics::selector::TagSelector;
use crate::metrics::sink::Sink;

/// A limit of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    pub(crate) selector: TagSelector,
    /// As it is written.
    pub(crate) text: String,
    pub(crate) statistic: Statistic,
    pub(crate) comparison: LimitSign,
    pub(crate) limit: f64,
    /// Time from which on the run ends as soon as it is not met; `None`: it does not.
    pub(crate) aborts_after: Option<Nanos>,
}

/// What of a metric is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Statistic {
    /// Sum of a counter, or number of values of a trend.
    Count,
    /// A counter's sum per second, or the share of a rate.
    Rate,
    /// Last value of a gauge.
    Value,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Mean.
    Avg,
    /// Percentile.
    Percentile(f64),
}

/// How it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitSign {
    /// `<`.
    Below,
    /// `<=`.
    AtMost,
    /// `>`.
    Above,
    /// `>=`.
    AtLeast,
    /// `==` or `===`.
    Equal,
    /// `!=`.
    NotEqual,
}

/// Signs of comparisons; the longer ones first where one begins another.
const SIGNS: [(&str, LimitSign); 7] = [
    ("===", LimitSign::Equal),
    ("==", LimitSign::Equal),
    ("!=", LimitSign::NotEqual),
    ("<=", LimitSign::AtMost),
    (">=", LimitSign::AtLeast),
    ("<", LimitSign::Below),
    (">", LimitSign::Above),
];

/// Reads the object of thresholds.
///
/// # Errors
/// One line that names the metric.
pub(super) fn read_thresholds(value: &Value) -> Result<Vec<Threshold>, String> {
    let metrics = value.as_object().ok_or("options.thresholds is not an object")?;
    let mut thresholds = Vec::new();
    for (metric, limits) in metrics {
        let selector = TagSelector::parse(metric).map_err(|why| format!("options.thresholds: {why}"))?;
        let one = [limits.clone()];
        let limits = limits.as_array().map_or(&one[..], Vec::as_slice);
        for limit in limits {
            thresholds.push(read_limit(&selector, limit).map_err(|why| format!("options.thresholds.{metric}: {why}"))?);
        }
    }
    Ok(thresholds)
}

fn read_limit(selector: &TagSelector, value: &Value) -> Result<Threshold, String> {
    let (text, aborts_after) = match value {
        Value::String(text) => (text.clone(), None),
        Value::Object(_) => {
            let mut reader = OptionReader::new(value, "threshold")?;
            let text = reader.text("threshold")?.ok_or("it has no threshold; add e.g. 'p(95)<300'")?;
            let aborts = reader.flag("abortOnFail")?;
            let delay = reader.duration("delayAbortEval")?.unwrap_or(Nanos::ZERO);
            reader.finish()?;
            (text, aborts.then_some(delay))
        }
        other => return Err(format!("invalid threshold {other}; write e.g. 'p(95)<300'")),
    };
    let invalid = || format!("invalid threshold '{text}'; write e.g. 'p(95)<300', 'rate>0.99' or 'count<10'");
    let (at, (sign, comparison)) = SIGNS
        .iter()
        .filter_map(|sign| Some((text.find(sign.0)?, sign)))
        .min_by_key(|(at, _)| *at)
        .ok_or_else(invalid)?;
    let statistic = statistic(text[..at].trim()).ok_or_else(invalid)?;
    let limit = text[at + sign.len()..].trim().parse::<f64>().ok().filter(|limit| limit.is_finite());
    Ok(Threshold {
        selector: selector.clone(),
        text: text.clone(),
        statistic,
        comparison: *comparison,
        limit: limit.ok_or_else(invalid)?,
        aborts_after,
    })
}

/// Statistic by its name, as thresholds and summaries write it.
pub(crate) fn statistic(text: &str) -> Option<Statistic> {
    Some(match text {
        "count" => Statistic::Count,
        "rate" => Statistic::Rate,
        "value" => Statistic::Value,
        "min" => Statistic::Min,
        "max" => Statistic::Max,
        "avg" => Statistic::Avg,
        "med" => Statistic::Percentile(0.5),
        _ => {
            let inner = text.strip_prefix("p(")?.strip_suffix(')')?.trim();
            let percent: f64 = inner.parse().ok()?;
            Statistic::Percentile((0.0..=100.0).contains(&percent).then_some(percent / 100.0)?)
        }
    })
}

impl Statistic {
    /// Its value for a metric over `seconds`; `None` if the metric has none of this kind.
    pub(crate) fn of(self, sink: &Sink, seconds: f64) -> Option<f64> {
        Some(match (self, sink) {
            (Self::Count, Sink::Counter(sum)) => *sum,
            (Self::Count, Sink::Trend(values)) => values.count as f64,
            (Self::Rate, Sink::Counter(sum)) => sum / seconds.max(1e-9),
            (Self::Rate, Sink::Rate { all: 0, .. }) => 0.0,
            (Self::Rate, Sink::Rate { passed, all }) => *passed as f64 / *all as f64,
            (Self::Value, Sink::Gauge(values)) => values.map_or(0.0, |values| values.last),
            (Self::Min, Sink::Gauge(values)) => values.map_or(0.0, |values| values.min),
            (Self::Max, Sink::Gauge(values)) => values.map_or(0.0, |values| values.max),
            (Self::Min | Self::Max, Sink::Trend(values)) if values.count == 0 => 0.0,
            (Self::Min, Sink::Trend(values)) => values.min,
            (Self::Max, Sink::Trend(values)) => values.max,
            (Self::Avg, Sink::Trend(values)) => values.mean(),
            (Self::Percentile(q), Sink::Trend(values)) => values.quantile(q),
            _ => return None,
        })
    }
}

impl Threshold {
    /// Checks that the metric has what is compared.
    ///
    /// # Errors
    /// One line with what it has.
    pub(crate) fn check(&self, kind: ScriptMetricKind) -> Result<(), String> {
        let has = match kind {
            ScriptMetricKind::Counter => "count, rate",
            ScriptMetricKind::Gauge => "value",
            ScriptMetricKind::Rate => "rate",
            ScriptMetricKind::Trend => "avg, min, max, med, count, p(N)",
        };
        match self.statistic.of(&Sink::of(kind), 1.0) {
            Some(_) => Ok(()),
            None => Err(format!("'{}' does not fit {}; compare one of {has}", self.text, self.selector.metric)),
        }
    }

    /// Whether the values of a metric meet it. Without a value it is met, as in k6.
    pub(crate) fn is_met(&self, sink: &Sink, seconds: f64) -> bool {
        let Some(value) =
            self.statistic.of(sink, seconds).filter(|_| !sink.is_empty() || matches!(sink, Sink::Counter(_)))
        else {
            return true;
        };
        match self.comparison {
            LimitSign::Below => value < self.limit,
            LimitSign::AtMost => value <= self.limit,
            LimitSign::Above => value > self.limit,
            LimitSign::AtLeast => value >= self.limit,
            LimitSign::Equal => value == self.limit,
            LimitSign::NotEqual => value != self.limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn thresholds_have_a_statistic_a_comparison_and_a_limit() {
        let read = read_thresholds(&json!({
            "http_req_duration{scenario:a}": ["p(99.9) < 300", { "threshold": "avg<=100", "abortOnFail": true, "delayAbortEval": "10s" }],
            "checks": "rate===1",
        }));
        let read = read.expect("valid");
        assert_eq!(read[1].statistic, Statistic::Percentile(99.9 / 100.0));
        assert_eq!((read[2].comparison, read[2].aborts_after), (LimitSign::AtMost, Some(Nanos(10_000_000_000))));
        assert_eq!((read[0].statistic, read[0].limit), (Statistic::Rate, 1.0));
        for wrong in ["p(95)", "p(x)<3", "<3", "avg<x", "p(101)<1", "foo<1"] {
            assert!(
                read_thresholds(&json!({ "a": [wrong] })).is_err_and(|why| why.contains("options.thresholds.a")),
                "{wrong}"
            );
        }
        assert!(read_thresholds(&json!({ "a": [3] })).is_err());
    }
}
