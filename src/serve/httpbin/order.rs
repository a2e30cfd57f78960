//! `/validate`: an order, checked by its published JSON Schema.

use std::fmt::Write;

use bytes::Bytes;
use http::{Response, StatusCode};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::serve::answers::{CONTENT_TYPE_JSON, response};
use crate::server::ResponseBody;

/// What an order has to be.
pub(super) const SCHEMA: &str = include_str!("../../../docs/order.schema.json");
/// An order.
pub(super) const EXAMPLE: &str = include_str!("order.json");
/// The same with three faults.
pub(super) const INVALID_EXAMPLE: &str = include_str!("wrong_order.json");

/// Faults that are listed.
const MAX_FAULTS: usize = 100;
/// Beyond so many values in a body only the first fault is looked for: all of them would take more memory than many
/// such bodies.
const MAX_FULLY_CHECKED_VALUES: usize = 2_000;
/// What is shown of a fault; names in a body may be long.
const MAX_MESSAGE_CHARS: usize = 200;

/// Judges orders.
#[derive(Debug)]
pub(super) struct OrderValidator {
    schema: Validator,
}

/// What was found.
#[derive(Debug, Serialize)]
struct ValidationResult {
    valid: bool,
    faults: Vec<ValidationFault>,
    /// There may be more faults than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

#[derive(Debug, Serialize)]
struct ValidationFault {
    /// Where, as a JSON Pointer; the whole body is the empty one.
    path: String,
    message: String,
}

impl OrderValidator {
    /// Reads the schema.
    ///
    /// # Errors
    /// When the schema is none, in words.
    pub(super) fn new() -> Result<Self, String> {
        let schema = serde_json::from_str(SCHEMA).map_err(|error| error.to_string())?;
        let options = jsonschema::options()
            .should_validate_formats(true)
            // Without backtracking: the time is linear in what is sent.
            .with_pattern_options(PatternOptions::regex());
        Ok(Self { schema: options.build(&schema).map_err(|error| error.to_string())? })
    }

    /// 200 for an order, 422 with what is wrong, 400 for what is not JSON.
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
        // All values but the first of a list follow a comma.
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
    // Cut where it is long enough.
    let _ = match shown {
        true => write!(message, "{error}"),
        false => write!(message, "{}", error.masked_with("this")),
    };
    ValidationFault { path: error.instance_path().to_string(), message: message.text }
}

/// Takes no more than some characters.
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
