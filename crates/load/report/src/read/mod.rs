//! Results of weir and of other tools, parsed from text.
//!
//! The counterpart of the reports: [`wrk`](mod@super::wrk) writes wrk's report, and `read::wrk` parses it.
//!
//! - [`read`]: detection of the tool that wrote a text, and its parser
//! - [`foreign_run`]: the result, the same for all tools
//! - `ab`, `jtl`, `k6`, `oha`, `vegeta`, `wrk`: parser of one tool each

mod ab;
mod jtl;
mod k6;
mod oha;
mod vegeta;
mod wrk;

use serde_json::Value;

pub use self::foreign_run::{Tool, ToolResult};
use weir_base::terminal_text::is_steering;
use weir_measure::Run;

/// Parses the result of any tool that weir reads.
///
/// # Errors
/// One line with the first error.
pub fn read(text: &str) -> Result<ToolResult, String> {
    let text = text.trim_start_matches('\u{feff}');
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or_default();
    if start.starts_with('{') {
        return read_json(text, first);
    }
    if start.starts_with("<?xml") || start.starts_with("<testResults") {
        return Err("a JMeter log as XML; save it as CSV (jmeter.save.saveservice.output_format=csv)".into());
    }
    let has = |words: &str| start.contains(words);
    if first.contains("timeStamp") && first.contains("elapsed") {
        jtl::read(start)
    } else if has("Thread Stats") || (first.starts_with("Running ") && has("requests in ")) {
        wrk::read(text)
    } else if has("Time taken for tests:") {
        ab::read(text)
    } else if has("Success rate:") && has("Requests/sec:") {
        oha::read_text(text)
    } else {
        Err(format!("not a result of a tool that weir reads: {}", Tool::NAMES.join(", ")))
    }
}

fn read_json(text: &str, first: &str) -> Result<ToolResult, String> {
    // k6 writes a line for each point; all other tools write one object, which may span lines.
    let line = serde_json::from_str::<Value>(first).ok();
    if line.is_some_and(|line| line.get("type").is_some() && line.get("metric").is_some()) {
        return k6::read_points(text);
    }
    let value: Value =
        serde_json::from_str(text).map_err(|e| format!("not JSON: {}", e.to_string().replace(is_steering, " ")))?;
    let has = |key: &str| value.get(key).is_some();
    if has("weir") && has("schema") {
        Run::from_json(text).map(ToolResult::of_run)
    } else if has("latencies") && has("throughput") {
        vegeta::read(&value)
    } else if has("summary") && has("latencyPercentiles") {
        oha::read_json(&value)
    } else if has("metrics") {
        k6::read_summary(&value)
    } else {
        Err(format!("JSON, but not a result of a tool that weir reads: {}", Tool::NAMES.join(", ")))
    }
}

/// Number in an object, by a path of keys.
fn number(value: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(value, |value, key| value.get(key))?.as_f64().filter(|number| number.is_finite())
}

/// Count in an object, by a path of keys; 0 if it is missing.
fn count(value: &Value, path: &[&str]) -> u64 {
    number(value, path).map_or(0, |number| number as u64)
}

/// First number in a text: 12.5 in `  12.5%`.
fn leading(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Time with its unit, in ms: `250.00us`, `1.2 ms`, `0.0123 secs`.
fn time_ms(text: &str) -> Option<f64> {
    let text = text.trim();
    let number = leading(text)?;
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').trim();
    let scale = match unit {
        "ns" => 1e-6,
        "us" | "µs" => 1e-3,
        "ms" => 1.0,
        "s" | "sec" | "secs" => 1e3,
        "m" | "min" => 60e3,
        "h" => 3600e3,
        _ => return None,
    };
    Some(number * scale)
}

pub mod foreign_run;
#[cfg(test)]
mod tests;
