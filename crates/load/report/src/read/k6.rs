//! k6's summary (`--summary-export`, or what `handleSummary` is given, as JSON) and its points (`--out json`).

use serde_json::Value;

use super::{Tool, ToolResult, count, number};
use weir_base::Nanos;
use weir_base::timestamp::Timestamp;
use weir_histogram::Histogram;

/// Of the percentiles that k6 can be configured to write (`--summary-trend-stats`), `med` has a name of its own.
const MEDIAN: &str = "med";

pub(super) fn read_summary(value: &Value) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::K6);
    // handleSummary has each metric's figures under `values`, --summary-export has them in the metric itself.
    let figures = |metric: &str| {
        let metric = value.get("metrics")?.get(metric)?;
        Some(metric.get("values").unwrap_or(metric))
    };
    let (Some(requests), Some(times)) = (figures("http_reqs"), figures("http_req_duration")) else {
        return Err("k6's summary, but without http_reqs and http_req_duration: no HTTP was in that test".into());
    };
    reading.requests = count(requests, &["count"]);
    reading.rate_per_s = number(requests, &["rate"]);
    (reading.mean_ms, reading.max_ms) = (number(times, &["avg"]), number(times, &["max"]));
    for (name, time) in times.as_object().into_iter().flatten() {
        let inside = name.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        let percentile = if name == MEDIAN { Some(50.0) } else { inside.and_then(|digits| digits.parse().ok()) };
        reading.percentiles.extend(percentile.zip(time.as_f64()));
    }
    if let Some(failed) = figures("http_req_failed") {
        let share = number(failed, &["rate"]).or_else(|| number(failed, &["value"])).unwrap_or(0.0);
        reading.failed = (share * reading.requests as f64).round() as u64;
    }
    let dropped = figures("dropped_iterations").map_or(0, |figures| count(figures, &["count"]));
    if dropped > 0 {
        reading.doubts.push(format!("k6 dropped {dropped} iterations: it had too few VUs to start them in time"));
    }
    Ok(reading)
}

/// A line of JSON for each measurement.
pub(super) fn read_points(text: &str) -> Result<ToolResult, String> {
    let mut reading = ToolResult::new(Tool::K6);
    let mut times = Histogram::precise();
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    for (line, number_of_line) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
        // The last line may be cut off: k6 was stopped.
        let Ok(point) = serde_json::from_str::<Value>(line) else {
            if number_of_line == text.lines().count() {
                break;
            }
            return Err(format!("k6's points: line {number_of_line} is not JSON"));
        };
        if point["type"] != "Point" {
            continue;
        }
        let Some(value) = number(&point, &["data", "value"]) else { continue };
        match point["metric"].as_str() {
            Some("http_req_duration") => {
                times.record(Nanos::from_secs_f64(value / 1e3));
                let ended = point["data"]["time"].as_str().and_then(unix_s);
                let Some(ended) = ended else {
                    return Err(format!("k6's points: line {number_of_line} has no time"));
                };
                first = first.min(ended - value / 1e3);
                last = last.max(ended);
            }
            Some("http_req_failed") => reading.failed += u64::from(value > 0.0),
            _ => {}
        }
    }
    if times.count() == 0 {
        return Err("k6's points, but none of http_req_duration: no HTTP was in that test".into());
    }
    reading.started_unix_s = Some(first);
    reading.fill(&times, last - first);
    Ok(reading)
}

impl ToolResult {
    /// Takes the figures from all times, over a run of this length in seconds.
    pub(super) fn fill(&mut self, times: &Histogram, length_s: f64) {
        self.requests = times.count();
        self.rate_per_s = (length_s > 0.0).then(|| times.count() as f64 / length_s);
        let spread = times.percentiles();
        (self.mean_ms, self.max_ms) = (spread.mean, spread.max);
        let known = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
        self.percentiles = known.into_iter().filter_map(|p| Some((p, times.quantile_ms(p / 100.0)?))).collect();
    }
}

/// Seconds since 1970 of `2026-05-17T10:00:00.123456+02:00` (RFC 3339).
fn unix_s(text: &str) -> Option<f64> {
    let time = Timestamp::parse(text).filter(|time| time.has_zone && time.unix_ns >= 0)?;
    Some(time.unix_ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::unix_s;

    #[test]
    fn times_of_any_zone_are_seconds_since_1970() {
        assert_eq!(unix_s("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(unix_s("2000-03-01T00:00:00Z"), Some(951_868_800.0));
        assert_eq!(unix_s("2024-02-29T12:30:00.5+02:00"), Some(1_709_202_600.5));
        assert_eq!(unix_s("2024-12-31T23:59:59-01:00"), Some(1_735_693_199.0));
        for wrong in ["", "2024", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00", "aTbZ", "2024-02-31T00:00:00Z"] {
            assert_eq!(unix_s(wrong), None, "{wrong}");
        }
    }
}
