//! A conversation over WebSocket as a step of a JSON object.

use serde_json::{Map, Value, json};
use weir_base::Nanos;
use weir_load::websocket::ConversationPart;
use weir_request::secret_mask::SecretMask;

use super::json::{document, insert_body};
use super::play_output::PlayTotals;

/// Bytes of messages that are kept; of what comes behind them there is the number.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Messages of a conversation as JSON.
#[derive(Debug, Default)]
pub(super) struct ConversationDocument {
    subprotocol: Option<String>,
    messages: Vec<Value>,
    kept_bytes: usize,
    left_out: u64,
    failures: Vec<String>,
}

impl ConversationDocument {
    /// Adds a part, at a time since the connection was open.
    pub(super) fn add(&mut self, part: &ConversationPart<'_>, at: Nanos, mask: &SecretMask) {
        match part {
            ConversationPart::Opened(subprotocol) => self.subprotocol = subprotocol.map(str::to_owned),
            ConversationPart::Sent(is_text, data) => self.message(("weir", at), (*is_text, data), mask),
            ConversationPart::Received(is_text, data) => self.message(("service", at), (*is_text, data), mask),
            ConversationPart::Ping(data) => {
                self.push(frame("service", at, "ping", json!({ "bytes": data.len() })), 0);
            }
            ConversationPart::SentClose(code) => self.push(frame("weir", at, "close", json!({ "code": code.0 })), 0),
            ConversationPart::ReceivedClose(code, reason) => {
                self.push(frame("service", at, "close", json!({ "code": code.0, "reason": mask.text(reason) })), 0);
                if !code.is_regular() {
                    self.failures.push(format!("closed with {code}"));
                }
            }
            ConversationPart::Ended => self.failures.push("ended without a close frame".to_owned()),
            ConversationPart::Violation(violation) => {
                self.failures.push(format!("the service broke the protocol: {violation}"));
            }
        }
    }

    fn message(&mut self, (from, at): (&str, Nanos), (is_text, data): (bool, &[u8]), mask: &SecretMask) {
        let mut body = Map::new();
        insert_body(data, mask, &mut body);
        let kind = if is_text { "text" } else { "binary" };
        self.push(frame(from, at, kind, Value::Object(body)), data.len());
    }

    fn push(&mut self, frame: Value, bytes: usize) {
        if self.kept_bytes.saturating_add(bytes) > MAX_KEPT_BYTES {
            self.left_out += 1;
            return;
        }
        // A frame without content takes memory as well.
        self.kept_bytes += bytes + 100;
        self.messages.push(frame);
    }

    /// Text of the whole document.
    pub(super) fn finish(self, url: &str, is_good: bool) -> String {
        let mut step = json!({
            "name": url,
            "verdict": if is_good { "passed" } else { "failed" },
            "requests": [],
            "captures": [],
            "checks": [],
            "failures": self.failures,
            "subprotocol": self.subprotocol,
            "messages": self.messages,
        });
        if let Some(fields) = step.as_object_mut().filter(|_| self.left_out > 0) {
            fields.insert("messages_left_out".into(), self.left_out.into());
        }
        let totals = PlayTotals { steps: 1, failed_steps: u64::from(!is_good), ..PlayTotals::default() };
        document(url, is_good, &[step], totals)
    }
}

/// Frame of an end of the connection, with what is particular to its kind.
fn frame(from: &str, at: Nanos, kind: &str, more: Value) -> Value {
    let mut fields = Map::new();
    fields.insert("at_ms".into(), (at.0 as f64 / 1e6).into());
    fields.insert("from".into(), from.into());
    fields.insert("kind".into(), kind.into());
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    Value::Object(fields)
}
