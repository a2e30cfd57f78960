//! Samples of failures, for a person, with secrets left out.

use weir_base::terminal_text::beginning;
use weir_measure::failure_sample::FailureSample;
use weir_request::secret_mask::SecretMask;
use weir_scenario::plan::{FlowFailure, StepFindings};

use super::StepExchange;

/// Maximum size of the beginning of a body in a sample, in bytes.
const MAX_SHOWN_BODY_BYTES: usize = 300;
/// Maximum size of the part of a body whose secrets are looked for, in bytes.
const MAX_SEARCHED_BODY_BYTES: usize = 1 << 20;

/// Sample of what a step with these checks found, and of its response, without secrets.
pub(crate) fn failure_sample(
    findings: &StepFindings,
    checks: &[String],
    exchange: Option<&StepExchange>,
    mut mask: SecretMask,
) -> FailureSample {
    let mut response = String::new();
    if let Some(exchange) = exchange {
        add_secrets(exchange, &mut mask);
        // A body that does not decompress is shown as it came.
        let body = exchange.decoded_body().unwrap_or_else(|_| exchange.body().to_vec());
        let body = String::from_utf8_lossy(&body[..body.len().min(MAX_SEARCHED_BODY_BYTES)]).into_owned();
        mask.add_fields(&body);
        response = shown(exchange.head(), &body, &mask);
    }
    FailureSample { reason: mask.shown(&failure_texts(findings, checks).join("; ")), response }
}

/// Failures of a step without secrets, for a log; empty if there is none.
pub(crate) fn failure_message(
    findings: &StepFindings,
    checks: &[String],
    exchange: Option<&StepExchange>,
    mask: impl FnOnce() -> SecretMask,
) -> String {
    if findings.failures.is_empty() {
        return String::new();
    }
    failure_sample(findings, checks, exchange, mask()).reason
}

/// Takes note of the secrets that were sent: a service may send them back under other names.
fn add_secrets(exchange: &StepExchange, mask: &mut SecretMask) {
    let request: Vec<u8> = exchange.shown_request();
    let request = String::from_utf8_lossy(&request[..request.len().min(MAX_SEARCHED_BODY_BYTES)]).into_owned();
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((&request, ""));
    mask.add_head(head);
    mask.add_fields(body);
    mask.add_head(&String::from_utf8_lossy(exchange.head()));
}

/// Failures of a step, each with its check: `status == 200: expected == 200, found 500`.
fn failure_texts(findings: &StepFindings, checks: &[String]) -> Vec<String> {
    let text = |failure: &FlowFailure| match failure {
        FlowFailure::Check(index, reason) => match checks.get(*index as usize) {
            Some(check) => format!("{check}: {reason}"),
            None => reason.to_string(),
        },
        other => other.to_string(),
    };
    findings.failures.iter().map(text).collect()
}

fn shown(head: &[u8], body: &str, mask: &SecretMask) -> String {
    let mut text = mask.head(&String::from_utf8_lossy(head));
    if !body.is_empty() {
        // Cut after the secrets are out: a half of one would pass.
        let body = mask.text(body);
        let start = beginning(&body, MAX_SHOWN_BODY_BYTES);
        text.extend(["\n", start, if start.len() < body.len() { "..." } else { "" }]);
    }
    text
}
