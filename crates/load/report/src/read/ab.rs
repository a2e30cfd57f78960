//! ApacheBench's text. Its percentiles are whole milliseconds.

use super::{Tool, ToolResult, leading};
use weir_measure::LoadModel;

pub(super) fn read(text: &str) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::Ab);
    reading.plan.model = Some(LoadModel::Closed);
    // Answers of another length than the first: a dynamic page, and no failure.
    let mut other_lengths = 0;
    for line in text.lines().map(str::trim) {
        if let Some((name, value)) = line.split_once(':') {
            let value = value.trim();
            let whole = || leading(value).map_or(0, |n| n as u64);
            match name {
                "Document Path" => reading.plan.path = Some(value.to_owned()),
                "Concurrency Level" => reading.plan.connections = Some(whole()),
                "Complete requests" => reading.requests = whole(),
                "Failed requests" | "Non-2xx responses" => reading.failed = reading.failed.saturating_add(whole()),
                "Requests per second" => reading.rate_per_s = leading(value),
                // The second line of this name is the mean across all connections.
                "Time per request" if reading.mean_ms.is_none() => reading.mean_ms = leading(value),
                "(Connect" => other_lengths = length_failures(line),
                _ => {}
            }
        } else if let Some((share, ms)) = line.split_once('%') {
            let pair = share.trim().parse::<f64>().ok().zip(leading(ms));
            match pair {
                Some((100.0, ms)) => reading.max_ms = Some(ms),
                pair => reading.percentiles.extend(pair),
            }
        }
    }
    reading.failed = reading.failed.saturating_sub(other_lengths).min(reading.requests);
    if reading.rate_per_s.is_none() {
        return Err("ab's report, but cut off: it has no line 'Requests per second'".into());
    }
    Ok(reading)
}

/// Of `(Connect: 0, Receive: 0, Length: 3, Exceptions: 0)` the third.
fn length_failures(line: &str) -> u64 {
    line.split_once("Length:").and_then(|(_, rest)| leading(rest)).map_or(0, |n| n as u64)
}
