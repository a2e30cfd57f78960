//! Samples of failures, for a person, with secrets left out.

use weir_measure::failure_sample::FailureSample;
use weir_scenario::plan::{FlowFailure, StepFindings};

use super::StepExchange;
use super::redaction::{MASK, Redaction, masked};

/// Maximum size of the beginning of a body in a sample, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 300;

/// Sample of what a step with these checks found, and of its response, without the values of `secrets`.
pub(crate) fn failure_sample(
    findings: &StepFindings,
    checks: &[String],
    exchange: Option<&StepExchange>,
    (redaction, mut secrets): (&Redaction, Vec<String>),
) -> FailureSample {
    let reason = failure_texts(findings, checks).join("; ");
    let response = exchange.map(|exchange| {
        // A body that does not decompress is shown as it came.
        let body = exchange.decoded_body().unwrap_or_else(|_| exchange.body().to_vec());
        secrets.extend(redaction.field_values(&body));
        shown(exchange.head(), &body, redaction)
    });
    FailureSample { reason: masked(&reason, secrets.clone()), response: masked(&response.unwrap_or_default(), secrets) }
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

fn shown(head: &[u8], body: &[u8], redaction: &Redaction) -> String {
    let head = String::from_utf8_lossy(head);
    let line = |line: &str| match line.split_once(':') {
        Some((name, _)) if redaction.is_secret_header(name) => format!("{name}: {MASK}\n"),
        _ => format!("{line}\n"),
    };
    let mut text: String = head.trim_end().lines().map(line).collect();
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
