//! vegeta's report as JSON (`vegeta report -type=json`). Its times are in nanoseconds.

use serde_json::Value;

use super::{Tool, ToolResult, count, number};
use weir_measure::LoadModel;

pub(super) fn read(value: &Value) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::Vegeta);
    reading.plan.model = Some(LoadModel::Open);
    reading.plan.offered_per_s = number(value, &["rate"]);
    reading.requests = count(value, &["requests"]);
    // Its throughput is of successes, from the first send to the last response.
    let success = number(value, &["success"]).unwrap_or(0.0);
    reading.failed = ((1.0 - success) * reading.requests as f64).round() as u64;
    reading.rate_per_s = number(value, &["throughput"]);
    let ms = |key: &str| number(value, &["latencies", key]).map(|ns| ns / 1e6);
    (reading.mean_ms, reading.max_ms) = (ms("mean"), ms("max"));
    for key in ["50th", "90th", "95th", "99th"] {
        reading.percentiles.extend(key.trim_end_matches("th").parse().ok().zip(ms(key)));
    }
    match reading.rate_per_s {
        Some(_) => Ok(reading),
        None => Err("vegeta's report, but it has no throughput".into()),
    }
}
