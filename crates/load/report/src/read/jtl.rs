//! JMeter's log as CSV (JTL): a line per request. weir's own `--jtl` writes the same.

use super::wrk::path;
use super::{Tool, ToolResult};
use weir_base::Nanos;
use weir_histogram::Histogram;

pub(super) fn read(text: &str) -> Result<ToolResult, String> {
    let first = text.lines().next().unwrap_or_default();
    // jmeter.save.saveservice.default_delimiter: whatever stands after the first name.
    let delimiter = [b',', b';', b'\t', b'|'].into_iter().max_by_key(|d| first.bytes().filter(|b| b == d).count());
    let mut lines =
        csv::ReaderBuilder::new().delimiter(delimiter.unwrap_or(b',')).flexible(true).from_reader(text.as_bytes());
    let wrong = |e: csv::Error| format!("JMeter's log: {e}");
    let names = lines.headers().map_err(wrong)?.clone();
    let column = |name: &str| names.iter().position(|column| column == name);
    let missing = |name: &str| format!("JMeter's log, but without the column {name}");
    let started = column("timeStamp").ok_or_else(|| missing("timeStamp"))?;
    let elapsed = column("elapsed").ok_or_else(|| missing("elapsed"))?;
    let success = column("success").ok_or_else(|| missing("success"))?;
    let exact = column("elapsed_us");
    let (url, code) = (column("URL"), column("responseCode"));
    let mut reading = ToolResult::new(Tool::Jmeter);
    let mut times = Histogram::precise();
    let mut unanswered = 0;
    let (mut begin, mut end) = (f64::INFINITY, f64::NEG_INFINITY);
    for (line, number) in lines.records().zip(2..) {
        let line = line.map_err(wrong)?;
        let figure = |at: usize| line.get(at).and_then(|text| text.trim().parse::<f64>().ok());
        let (Some(start_ms), Some(elapsed_ms)) = (figure(started), figure(elapsed)) else {
            // The last line may be cut off: JMeter was stopped.
            if line.len() < names.len() && is_last_line(text, number) {
                break;
            }
            return Err(format!("JMeter's log: line {number} has no timeStamp or elapsed as a number of ms"));
        };
        if !(start_ms >= 0.0 && elapsed_ms >= 0.0) {
            return Err(format!("JMeter's log: line {number} has a time below 0"));
        }
        reading.failed += u64::from(line.get(success).is_none_or(|word| !word.eq_ignore_ascii_case("true")));
        // JMeter's code of a request without a response: "Non HTTP response code: ...".
        let has_response = code.and_then(|at| line.get(at)).is_none_or(|code| !code.starts_with("Non HTTP"));
        if has_response {
            // Below a millisecond JMeter's own column says nothing; weir's does.
            let exact_ms = exact.and_then(figure).map_or(elapsed_ms, |us| us / 1e3);
            times.record(Nanos::from_secs_f64(exact_ms.max(0.0) / 1e3));
        } else {
            unanswered += 1;
        }
        begin = begin.min(start_ms);
        end = end.max(start_ms + elapsed_ms);
        if reading.plan.path.is_none() {
            reading.plan.path = url.and_then(|at| line.get(at)).filter(|url| url.contains("://")).map(path);
        }
    }
    if times.count() + unanswered == 0 {
        return Err("JMeter's log without a request".into());
    }
    reading.started_unix_s = Some(begin / 1e3);
    reading.fill(&times, (end - begin) / 1e3);
    reading.requests += unanswered;
    Ok(reading)
}

fn is_last_line(text: &str, number: usize) -> bool {
    number >= text.lines().count()
}
