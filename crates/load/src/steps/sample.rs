//! Samples of failures, for a person, with secrets left out.

use weir_measure::step_counts::FailureSample;
use weir_scenario::plan::StepFindings;

use super::StepExchange;

/// Maximum size of the beginning of a body in a sample, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 300;
/// Headers whose values are left out.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/// Sample of what a step found, and of its response.
pub(crate) fn failure_sample(findings: &StepFindings, exchange: Option<&StepExchange>) -> FailureSample {
    let reasons: Vec<String> = findings.failures.iter().map(ToString::to_string).collect();
    FailureSample { reason: reasons.join("; "), response: exchange.map(shown).unwrap_or_default() }
}

fn shown(exchange: &StepExchange) -> String {
    let head = String::from_utf8_lossy(exchange.kept.head());
    let mut text: String = head.trim_end().lines().map(|line| redacted(line) + "\n").collect();
    let body = exchange.kept.raw_body();
    if !body.is_empty() {
        let start = &body[..body.len().min(MAX_SHOWN_BODY_BYTES)];
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(start));
        if body.len() > start.len() {
            text.push_str("...");
        }
    }
    text
}

fn redacted(line: &str) -> String {
    match line.split_once(':') {
        Some((name, _)) if SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}: ***"),
        _ => line.to_owned(),
    }
}
