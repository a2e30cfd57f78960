//! Samples of failures, for a person, with secrets left out.

use weir_measure::failure_sample::FailureSample;
use weir_scenario::plan::{FlowFailure, StepFindings};

use super::StepExchange;

/// Maximum size of the beginning of a body in a sample, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 300;
/// Headers whose values are left out.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/// Sample of what a step with these checks found, and of its response.
pub(crate) fn failure_sample(
    findings: &StepFindings,
    checks: &[String],
    exchange: Option<&StepExchange>,
) -> FailureSample {
    let reasons = failure_texts(findings, checks).join("; ");
    FailureSample { reason: reasons, response: exchange.map(shown).unwrap_or_default() }
}

/// Failures of a step, each with its check: `status == 200: expected == 200, found 500`.
pub(crate) fn failure_texts(findings: &StepFindings, checks: &[String]) -> Vec<String> {
    let text = |failure: &FlowFailure| match failure {
        FlowFailure::Check(index, reason) => match checks.get(*index as usize) {
            Some(check) => format!("{check}: {reason}"),
            None => reason.to_string(),
        },
        other => other.to_string(),
    };
    findings.failures.iter().map(text).collect()
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
