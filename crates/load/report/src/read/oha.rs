//! oha's text and JSON. Its JSON is in seconds.

use serde_json::Value;

use super::{Tool, ToolResult, leading, number, time_ms};

/// Requests that oha itself cut off at the end of the run.
const CUT_OFF_ERROR: &str = "aborted due to deadline";

pub(super) fn read_json(value: &Value) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::Oha);
    reading.rate_per_s = number(value, &["summary", "requestsPerSec"]);
    let ms = |path: &[&str]| number(value, path).map(|seconds| seconds * 1e3);
    (reading.mean_ms, reading.max_ms) = (ms(&["summary", "average"]), ms(&["summary", "slowest"]));
    let entries = |key: &str| value.get(key).and_then(Value::as_object).into_iter().flatten();
    for (name, time) in entries("latencyPercentiles") {
        let percentile = name.strip_prefix('p').and_then(|digits| digits.parse().ok());
        reading.percentiles.extend(percentile.zip(time.as_f64().map(|seconds| seconds * 1e3)));
    }
    let counts = |key: &str| entries(key).map(|(name, n)| (name.clone(), n.as_u64().unwrap_or(0))).collect::<Vec<_>>();
    add_outcomes(&mut reading, counts("statusCodeDistribution"), counts("errorDistribution"));
    if reading.rate_per_s.is_none() {
        return Err("oha's JSON, but it has no summary.requestsPerSec".into());
    }
    Ok(reading)
}

pub(super) fn read_text(text: &str) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::Oha);
    let (mut statuses, mut errors) = (Vec::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some((name, value)) = line.split_once(':') {
            match name {
                "Requests/sec" => reading.rate_per_s = leading(value),
                "Slowest" => reading.max_ms = time_ms(value),
                "Average" => reading.mean_ms = time_ms(value),
                _ => {}
            }
        }
        if let Some((share, time)) = line.split_once("% in ") {
            reading.percentiles.extend(leading(share).zip(time_ms(time)));
        }
        // [200] 1000 responses, and [5] aborted due to deadline
        if let Some((inside, rest)) = line.strip_prefix('[').and_then(|line| line.split_once("] ")) {
            match rest.strip_suffix(" responses") {
                Some(count) => statuses.push((inside.to_owned(), count.parse().unwrap_or(0))),
                None => errors.push((rest.to_owned(), inside.parse().unwrap_or(0))),
            }
        }
    }
    add_outcomes(&mut reading, statuses, errors);
    match reading.rate_per_s {
        Some(_) => Ok(reading),
        None => Err("oha's report, but it has no line Requests/sec".into()),
    }
}

fn add_outcomes(reading: &mut ToolResult, statuses: Vec<(String, u64)>, errors: Vec<(String, u64)>) {
    let is_ok = |status: &str| status.parse::<u16>().is_ok_and(|status| status < 400);
    let answers = statuses.into_iter().map(|(status, n)| (is_ok(&status), n));
    let failures = errors.into_iter().filter(|(words, _)| words != CUT_OFF_ERROR).map(|(_, n)| (false, n));
    for (ok, n) in answers.chain(failures) {
        reading.requests = reading.requests.saturating_add(n);
        reading.failed = reading.failed.saturating_add(if ok { 0 } else { n });
    }
}
