//! wrk's and wrk2's text. Times are from the send (wrk2's corrected ones from the intended start).

use super::{Tool, ToolResult, leading, time_ms};
use weir_measure::LoadModel;

pub(super) fn read(text: &str) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::Wrk);
    reading.plan.model = Some(LoadModel::Closed);
    let mut errors = 0_u64;
    for line in text.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Running", .., "@", url] => reading.plan.path = Some(path(url)),
            [_, "threads", "and", connections, "connections"] => reading.plan.connections = connections.parse().ok(),
            ["Latency", average, _, most, ..] if time_ms(average).is_some() => {
                (reading.mean_ms, reading.max_ms) = (time_ms(average), time_ms(most));
            }
            [share, time] if share.ends_with('%') => {
                reading.percentiles.extend(leading(share).zip(time_ms(time)));
            }
            [requests, "requests", "in", ..] => reading.requests = requests.parse().unwrap_or(0),
            ["Socket", "errors:", ..] => {
                errors = errors.saturating_add(words.iter().filter_map(|word| leading(word)).sum::<f64>() as u64);
            }
            ["Non-2xx", .., count] => reading.failed = count.parse().unwrap_or(0),
            ["Requests/sec:", rate] => reading.rate_per_s = rate.parse().ok(),
            _ => {}
        }
    }
    // wrk counts answers only; what broke comes on top.
    reading.failed = reading.failed.saturating_add(errors);
    reading.requests = reading.requests.saturating_add(errors);
    if reading.rate_per_s.is_none() {
        return Err("wrk's report, but cut off: it has no line Requests/sec".into());
    }
    Ok(reading)
}

/// Path and query of a URL.
pub(super) fn path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or_else(|| "/".to_owned(), |at| rest[at..].to_owned())
}
