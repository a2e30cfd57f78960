//! `/validate`: an order, checked by its published JSON Schema.

use std::fmt::Write;

use bytes::Bytes;
use http::{Response, StatusCode};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use super::order::SCHEMA;
use crate::responses::{CONTENT_TYPE_JSON, response};
use weir_server::ResponseBody;

/// Maximum faults that are listed.
const MAX_FAULTS: usize = 100;
/// Maximum number of values of a body that is checked for all faults; beyond, only the first fault is reported, since
/// all of them would take many times the memory of the body.
const MAX_FULLY_CHECKED_VALUES: usize = 2_000;
/// Maximum length of a message; names in a body can be long.
const MAX_MESSAGE_CHARS: usize = 200;

/// Validator of order bodies against the service's JSON schema.
#[derive(Debug)]
pub(super) struct OrderValidator {
    schema: Validator,
}

/// Body of the response.
#[derive(Debug, Serialize)]
struct ValidationResult {
    valid: bool,
    faults: Vec<ValidationFault>,
    /// Whether there can be more faults than those listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

#[derive(Debug, Serialize)]
struct ValidationFault {
    /// JSON Pointer to the value; empty for the whole body.
    path: String,
    message: String,
}

impl OrderValidator {
    /// Validator with the published schema.
    ///
    /// # Errors
    /// Invalid schema.
    pub(super) fn new() -> Result<Self, String> {
        let schema = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
        let options = jsonschema::options()
            .should_validate_formats(true)
            // Without backtracking, so that the time is linear in the body.
            .with_pattern_options(PatternOptions::regex());
        Ok(Self { schema: options.build(&schema).map_err(|error| error.to_string())? })
    }

    /// Response: 200 for an order, 422 with the faults, 400 for invalid JSON.
    pub(super) fn validate(&self, body: &[u8]) -> Response<ResponseBody> {
        let order: Value = match serde_json::from_slice(body) {
            Ok(order) => order,
            Err(error) => {
                let fault = ValidationFault { path: String::new(), message: format!("not JSON: {error}") };
                return reject(StatusCode::BAD_REQUEST, vec![fault], false);
            }
        };
        if self.schema.is_valid(&order) {
            return response(StatusCode::OK, CONTENT_TYPE_JSON, Bytes::from_static(br#"{"valid":true,"faults":[]}"#));
        }
        // All values but the first of a list or object follow a comma.
        if body.iter().filter(|byte| **byte == b',').count() > MAX_FULLY_CHECKED_VALUES {
            let first = self.schema.validate(&order).err().map(|error| fault(&error));
            return reject(StatusCode::UNPROCESSABLE_ENTITY, first.into_iter().collect(), true);
        }
        let mut errors = self.schema.iter_errors(&order);
        let faults = errors.by_ref().take(MAX_FAULTS).map(|error| fault(&error)).collect();
        reject(StatusCode::UNPROCESSABLE_ENTITY, faults, errors.next().is_some())
    }
}

fn reject(status: StatusCode, faults: Vec<ValidationFault>, more: bool) -> Response<ResponseBody> {
    // Text and lists of text are always JSON.
    let body = serde_json::to_vec(&ValidationResult { valid: false, faults, more }).unwrap_or_default();
    response(status, CONTENT_TYPE_JSON, body)
}

fn fault(error: &ValidationError<'_>) -> ValidationFault {
    let shown = match error.instance().as_ref() {
        Value::String(text) => text.len() <= MAX_MESSAGE_CHARS / 4,
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    let mut message = TruncatedMessage { text: String::new(), remaining_chars: MAX_MESSAGE_CHARS };
    // Fails once the message is long enough.
    let _ = match shown {
        true => write!(message, "{error}"),
        false => write!(message, "{}", error.masked_with("this")),
    };
    ValidationFault { path: error.instance_path().to_string(), message: message.text }
}

/// Text that is cut after a number of characters.
struct TruncatedMessage {
    text: String,
    remaining_chars: usize,
}

impl Write for TruncatedMessage {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        for c in part.chars() {
            if self.remaining_chars == 0 {
                self.text.push('…');
                return Err(std::fmt::Error);
            }
            self.remaining_chars -= 1;
            self.text.push(c);
        }
        Ok(())
    }
}
