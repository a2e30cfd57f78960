//! An iteration as one JSON object.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use weir_base::failure::FailureKind;
use weir_base::terminal_text;
use weir_load::steps::StepTrace;
use weir_request::secret_mask::{MASK, SecretMask};

use super::play_output::PlayTotals;
use super::text::split;

/// Version of the JSON object.
const SCHEMA_VERSION: u32 = 1;

/// Steps of an iteration as JSON.
#[derive(Debug, Default)]
pub(super) struct TraceDocument {
    steps: Vec<Value>,
    /// Requests of a step that were redirected, before its last one.
    requests: Vec<Value>,
}

impl TraceDocument {
    /// Adds a request; those of a chain of redirects are in one step.
    pub(super) fn add(&mut self, trace: &StepTrace, mask: &SecretMask) {
        if !trace.request.is_empty() {
            self.requests.push(exchange(trace, mask));
        }
        if trace.verdict == "redirected" {
            return;
        }
        let captures = trace
            .captures
            .iter()
            .map(|capture| json!({ "name": capture.name, "value": captured(&shown_capture(&capture.name, &capture.json, mask)) }));
        let checks = trace.checks.iter().map(|check| match &check.failure {
            None => json!({ "check": mask.text(&check.text), "ok": true }),
            Some(failure) => json!({
                "check": mask.text(&check.text),
                "ok": false,
                "expected": mask.text(&failure.expected),
                "actual": mask.text(&failure.actual),
            }),
        });
        self.steps.push(json!({
            "name": mask.text(&trace.step),
            "verdict": trace.verdict,
            "requests": std::mem::take(&mut self.requests),
            "captures": captures.collect::<Vec<_>>(),
            "checks": checks.collect::<Vec<_>>(),
            "failures": trace.failures.iter().map(|failure| mask.text(failure)).collect::<Vec<_>>(),
        }));
    }

    /// Text of the whole document.
    pub(super) fn finish(self, file: &str, is_ok: bool, totals: PlayTotals) -> String {
        document(file, is_ok, &self.steps, totals)
    }
}

/// Text of the JSON object with these steps.
pub(super) fn document(file: &str, is_ok: bool, steps: &[Value], totals: PlayTotals) -> String {
    let document = json!({
        "weir": env!("CARGO_PKG_VERSION"),
        "schema": SCHEMA_VERSION,
        "file": file,
        "ok": is_ok,
        "steps": steps,
        "totals": {
            "steps": totals.steps,
            "failed_steps": totals.failed_steps,
            "requests": totals.requests,
            "passed_checks": totals.passed_checks,
            "failed_checks": totals.failed_checks,
        },
    });
    format!("{}\n", terminal_text::json(&format!("{document:#}")))
}

/// Value of a capture as JSON.
fn shown_capture(name: &str, json: &str, mask: &SecretMask) -> String {
    let shown = mask.header(name, json);
    if shown == MASK { format!("\"{MASK}\"") } else { shown }
}

/// Value of a JSON text; an integer that a float would change is the text of its digits.
fn captured(text: &str) -> Value {
    match serde_json::from_str(text).unwrap_or(Value::Null) {
        Value::Number(number) if number.is_f64() && !text.contains(['.', 'e', 'E']) => Value::from(text),
        value => value,
    }
}

/// Request with its response.
fn exchange(trace: &StepTrace, mask: &SecretMask) -> Value {
    let (head, body) = split(&trace.request);
    let mut words = head.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = Map::new();
    request.insert("method".into(), method.into());
    request.insert("url".into(), mask.text(&format!("{}{target}", trace.origin)).into());
    request.insert("headers".into(), headers(&head, mask));
    insert_body(body, mask, &mut request);
    request.insert("duration_ms".into(), (trace.service.0 as f64 / 1e6).into());
    let mut response = Value::Null;
    if !trace.head.is_empty() {
        let head = String::from_utf8_lossy(&trace.head);
        let mut words = head.split_whitespace();
        let version = words.next().unwrap_or_default().trim_start_matches("HTTP/").to_owned();
        let status = words.next().and_then(|status| status.parse::<u16>().ok());
        let mut fields = Map::new();
        fields.insert("http_version".into(), version.into());
        fields.insert("status".into(), status.into());
        fields.insert("headers".into(), headers(&head, mask));
        insert_body(&trace.body, mask, &mut fields);
        fields.insert("bytes".into(), trace.raw_body_bytes.into());
        response = Value::Object(fields);
    }
    request.insert("response".into(), response);
    request.insert("failure".into(), trace.transfer_failure.map(FailureKind::name).into());
    Value::Object(request)
}

/// Headers as pairs, since a name may be there more than once.
fn headers(head: &str, mask: &SecretMask) -> Value {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields.map(|(name, value)| json!([name, mask.header(name, value.trim())])).collect()
}

/// Body as text, or as Base64 if it is not UTF-8.
pub(super) fn insert_body(body: &[u8], mask: &SecretMask, fields: &mut Map<String, Value>) {
    match std::str::from_utf8(body) {
        Ok("") => {}
        Ok(text) => drop(fields.insert("body".into(), mask.text(text).into())),
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let shown = mask.text(&text);
            let bytes = if shown == text { body } else { shown.as_bytes() };
            drop(fields.insert("body_base64".into(), BASE64_STANDARD.encode(bytes).into()));
        }
    }
}
