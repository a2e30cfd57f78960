//! What a script has measured itself, for the result of the run.

use std::collections::BTreeMap;

use weir_base::Nanos;
use weir_measure::Run;
use weir_measure::run::SloResult;
use weir_measure::run_script::{RunScript, ScriptCheck, ScriptException, ScriptMetric};

use crate::metrics::registry::{BUILT_IN_COUNT, BuiltIn, MetricFacts, MetricUnit, ScriptMetricKind};
use crate::metrics::sink::Sink;
use crate::metrics::{MetricPlan, MetricSums};
use crate::notes::ScriptNotes;
use crate::options::K6Options;
use crate::options::thresholds::{Statistic, Threshold, statistic};

/// Adds to the values of a load those that the run itself has counted.
pub(crate) fn add_counts(sums: &mut MetricSums, run: &Run, dropped: u64) {
    let mut put = |metric: BuiltIn, values: &[f64]| {
        if let Some(sink) = sums.sinks.get_mut(metric as usize).and_then(|sinks| sinks.first_mut()) {
            values.iter().for_each(|value| sink.add(*value));
        }
    };
    let of_run = run.iterations.as_ref().map_or(0, |iterations| iterations.dropped);
    put(BuiltIn::DroppedIterations, &[(dropped + of_run) as f64]);
    let users = run.connections.max as f64;
    put(BuiltIn::Vus, &[users]);
    put(BuiltIn::VusMax, &[users]);
    add_bytes(sums, run);
}

/// Adds to values the bytes of a run.
pub(crate) fn add_bytes(sums: &mut MetricSums, run: &Run) {
    let bytes = [(BuiltIn::DataReceived, run.bytes.read), (BuiltIn::DataSent, run.bytes.written)];
    for (metric, bytes) in bytes {
        if let Some(sink) = sums.sinks.get_mut(metric as usize).and_then(|sinks| sinks.first_mut()) {
            sink.add(bytes as f64);
        }
    }
}

/// Results of a script.
pub(crate) fn results(
    (plan, sums): (&MetricPlan, &MetricSums),
    options: &K6Options,
    notes: &ScriptNotes,
    seconds: f64,
) -> RunScript {
    let checks = sums.checks.results().iter().map(|check| ScriptCheck {
        group: check.group.clone(),
        name: check.name.clone(),
        passed: check.counts.passed,
        failed: check.counts.failed,
    });
    let others = Some(("others, each with a message of its own".to_owned(), notes.other_exceptions()));
    let others = others.filter(|(_, count)| *count > 0);
    let exceptions = notes.exceptions.iter().chain(&others);
    RunScript {
        checks: checks.collect(),
        metrics: metrics(plan, sums, options, seconds),
        exceptions: exceptions
            .map(|(message, count)| ScriptException { message: message.clone(), count: *count })
            .collect(),
        interrupted: notes.cuts,
        interrupted_at: notes.cut_places.clone(),
        failure: None,
    }
}

fn metrics(plan: &MetricPlan, sums: &MetricSums, options: &K6Options, seconds: f64) -> Vec<ScriptMetric> {
    let mut metrics = Vec::new();
    for (number, facts) in plan.facts.iter().enumerate() {
        let names = std::iter::once(facts.name.clone()).chain(plan.selectors[number].iter().map(|it| it.text.clone()));
        for (name, sink) in names.zip(&sums.sinks[number]) {
            if sink.is_empty() && number < BUILT_IN_COUNT {
                continue;
            }
            let is_own = number >= BUILT_IN_COUNT;
            metrics.push(metric(name, facts, is_own, values(sink, options, seconds)));
        }
    }
    metrics.sort_by(|one, other| one.name.cmp(&other.name));
    metrics
}

fn metric(name: String, facts: &MetricFacts, is_own: bool, values: BTreeMap<String, f64>) -> ScriptMetric {
    let kind = match facts.kind {
        ScriptMetricKind::Counter => "counter",
        ScriptMetricKind::Gauge => "gauge",
        ScriptMetricKind::Rate => "rate",
        ScriptMetricKind::Trend => "trend",
    };
    let unit = match facts.unit {
        MetricUnit::Number => "number",
        MetricUnit::Time => "milliseconds",
        MetricUnit::Data => "bytes",
    };
    ScriptMetric { name, kind: kind.to_owned(), unit: unit.to_owned(), custom: is_own, values }
}

/// Statistics of the values of a metric, by their names.
fn values(sink: &Sink, options: &K6Options, seconds: f64) -> BTreeMap<String, f64> {
    let named: Vec<&str> = match sink {
        Sink::Counter(_) => vec!["count", "rate"],
        Sink::Gauge(_) => vec!["value", "min", "max"],
        Sink::Rate { .. } => vec!["rate"],
        Sink::Trend(_) => options.trend_stats.iter().map(String::as_str).collect(),
    };
    // JSON has no infinite numbers, as sums of very large ones are.
    let value = |name: &str| Some((name.to_owned(), statistic(name)?.of(sink, seconds)?.clamp(f64::MIN, f64::MAX)));
    let mut values: BTreeMap<String, f64> = named.into_iter().filter_map(value).collect();
    if let Sink::Rate { passed, all } = sink {
        values.insert("passes".to_owned(), *passed as f64);
        values.insert("fails".to_owned(), (all - passed) as f64);
    }
    values
}

/// Sink that a threshold is about.
pub(crate) fn sink_of<'s>(threshold: &Threshold, plan: &MetricPlan, sums: &'s MetricSums) -> Option<&'s Sink> {
    let metric = plan.facts.iter().position(|facts| facts.name == threshold.selector.metric)?;
    let selectors = plan.selectors.get(metric)?;
    let place = match threshold.selector.tags.is_empty() {
        true => 0,
        false => 1 + selectors.iter().position(|selector| *selector == threshold.selector)?,
    };
    sums.sinks.get(metric)?.get(place)
}

/// Outcomes of thresholds as objectives.
pub(crate) fn judged(options: &K6Options, plan: &MetricPlan, sums: &MetricSums, seconds: f64) -> Vec<SloResult> {
    let outcome = |threshold: &Threshold| {
        let sink = sink_of(threshold, plan, sums);
        let facts = plan.facts.iter().find(|facts| facts.name == threshold.selector.metric);
        let value = sink.filter(|sink| !sink.is_empty()).and_then(|sink| threshold.statistic.of(sink, seconds));
        SloResult {
            objective: format!("{}: {}", threshold.selector.text, threshold.text),
            ok: sink.is_none_or(|sink| threshold.is_met(sink, seconds)),
            measured: match (value, facts) {
                (Some(value), Some(facts)) => shown(value, facts, threshold.statistic),
                _ => "no value".to_owned(),
            },
        }
    };
    options.thresholds.iter().map(outcome).collect()
}

/// A value of a metric with its unit.
pub(crate) fn shown(value: f64, facts: &MetricFacts, statistic: Statistic) -> String {
    let is_share = facts.kind == ScriptMetricKind::Rate;
    let is_time =
        facts.unit == MetricUnit::Time && facts.kind == ScriptMetricKind::Trend && statistic != Statistic::Count;
    match (is_share, is_time) {
        (true, _) => format!("{:.2}%", value * 100.0),
        (_, true) if value >= 0.0 => Nanos((value * 1e6) as u64).to_string(),
        _ if statistic == Statistic::Rate => format!("{}/s", rounded(value)),
        _ => rounded(value),
    }
}

/// Number with at most three digits after the point.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_without_bounds_stay_numbers_of_json() {
        let values = values(&Sink::Counter(f64::INFINITY), &K6Options::none(), 1.0);
        assert_eq!((values["count"], values["rate"]), (f64::MAX, f64::MAX));
    }
}
