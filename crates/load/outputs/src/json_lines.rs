//! A run as JSON lines: its start, a line for each interval, and the summary; `docs/schema/outputs.schema.json`.

use serde_json::{Map, Value, json};
use weir_base::grpc_status::status_text;

use super::interval_sample::IntervalSample;
use super::output_subject::OutputSubject;
use super::time_counts::TimeCounts;
use weir_pace::live_load::LevelKind;

/// Version of the lines.
const SCHEMA: u32 = 1;

/// Line at the start of a run.
pub(crate) fn start(subject: &OutputSubject, started_unix_s: f64) -> String {
    let labels: Map<String, Value> =
        subject.labels.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    line(&json!({
        "type": "start",
        "weir": env!("CARGO_PKG_VERSION"),
        "schema": SCHEMA,
        "started_unix_s": started_unix_s,
        "method": subject.method,
        "url": subject.url,
        "interval_s": subject.interval.as_secs_f64(),
        "warmup_s": subject.warmup.as_secs_f64(),
        "objectives": subject.objectives,
        "labels": labels,
    }))
}

/// Line of an interval.
pub(crate) fn interval(sample: &IntervalSample) -> String {
    let statuses: Map<String, Value> =
        sample.statuses.iter().map(|(status, n)| (status_text(*status).into_owned(), (*n).into())).collect();
    let failures: Map<String, Value> =
        sample.failures.iter().map(|(kind, n)| ((*kind).to_owned(), (*n).into())).collect();
    let mut value = json!({
        "type": "interval",
        "number": sample.frame.number,
        "t_s": sample.frame.start.as_secs_f64(),
        "width_s": sample.width_s(),
        "end_unix_s": sample.frame.end_unix_ns as f64 / 1e9,
        "ok": sample.ok,
        "failed": sample.failed,
        "rate_per_s": sample.rate_per_s(),
        "bytes_in": sample.bytes_in,
        "in_flight": sample.in_flight,
        "backlog": sample.backlog,
        "response_ms": times_ms(&sample.times),
        "failed_ms": times_ms(&sample.failed_times),
        "status": statuses,
        "failures": failures,
    });
    if sample.frame.is_rest {
        value["partial"] = true.into();
    }
    if let Some((kind, level)) = sample.frame.level {
        value[match kind {
            LevelKind::Rate => "target_rate",
            LevelKind::Users => "target_users",
        }] = level.into();
    }
    if !sample.steps.is_empty() {
        value["iterations"] = sample.iterations.into();
        let steps = sample.named_steps().filter(|(_, step)| step.requests > 0).map(|(name, step)| {
            json!({
                "scenario": name.scenario,
                "step": name.step,
                "requests": step.requests,
                "failed": step.failed,
                "failed_checks": step.failed_checks,
                "response_ms": times_ms(&step.times),
            })
        });
        value["steps"] = steps.collect();
    }
    if let Some(streams) = &sample.streams {
        value["streams"] = json!({
            "events": streams.events,
            "first_event_ms": times_ms(&streams.first),
            "gap_ms": times_ms(&streams.gaps),
        });
    }
    if !sample.script.is_empty() {
        let metrics = sample.script.iter();
        let metrics =
            metrics.map(|it| json!({ "name": it.name, "kind": it.kind, "unit": it.unit, "values": it.values }));
        value["script"] = metrics.collect();
    }
    line(&value)
}

/// Line at the end: the result as JSON, without the parts that are long, as the member of this name.
pub(crate) fn summary(name: &str, result: &str) -> String {
    let mut result: Value = serde_json::from_str(result).unwrap_or_default();
    without_histograms(&mut result);
    line(&json!({ "type": "summary", name: result }))
}

/// Line at the end of a run that has failed.
pub(crate) fn error(message: &str) -> String {
    line(&json!({ "type": "error", "message": message }))
}

/// Mean, percentiles and maximum, in milliseconds; null without any time.
fn times_ms(times: &TimeCounts) -> Value {
    let object = |figures: Vec<(&str, f64)>| figures.into_iter().map(|(name, ms)| (name, Value::from(ms))).collect();
    times.figures_ms().map_or(Value::Null, object)
}

/// Removes histograms and series at any depth.
fn without_histograms(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.ends_with("histogram") && key != "series");
            map.values_mut().for_each(without_histograms);
        }
        Value::Array(items) => items.iter_mut().for_each(without_histograms),
        _ => {}
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::samples::{sample, subject};

    #[test]
    fn lines_are_as_the_schema_has_them() {
        let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/outputs.schema.json")).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut rest = sample(1);
        (rest.frame.is_rest, rest.frame.level) = (true, Some((LevelKind::Users, 3.0)));
        (rest.streams, rest.times) = (None, TimeCounts::default());
        let lines = [
            start(&subject(), 1.7e9),
            interval(&sample(0)),
            interval(&rest),
            summary("capacity", r#"{"weir":"0.1.0","steps":[{"load":1.0}]}"#),
            summary("run", r#"{"weir":"0.1.0","requests":{"total":1},"series":[1],"steps":[{"histogram":"AA=="}]}"#),
            error("no connection"),
        ];
        for line in lines {
            assert!(line.ends_with("}\n") && line.matches('\n').count() == 1, "{line}");
            let value: Value = serde_json::from_str(&line).unwrap();
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{line}: {errors:?}");
        }
    }

    #[test]
    fn an_interval_has_its_counts_and_times() {
        let value: Value = serde_json::from_str(&interval(&sample(2))).unwrap();
        assert_eq!((&value["number"], &value["t_s"], &value["ok"]), (&json!(2), &json!(2.0), &json!(10)));
        assert_eq!(value["status"], json!({ "200": 10 }));
        assert_eq!(value["failures"], json!({ "timeout": 2 }));
        assert_eq!((&value["steps"][0]["step"], &value["steps"][1]["step"]), (&json!("log \"in\""), &json!("step 2")));
        let p50 = value["response_ms"]["p50"].as_f64().unwrap();
        assert!((p50 - 5.0).abs() < 0.06, "{p50}");
        let trend = &value["script"][1];
        assert_eq!((&trend["name"], &trend["values"]["p(95)"]), (&json!("pay{step:a b}"), &json!(12.5)));
    }
}
