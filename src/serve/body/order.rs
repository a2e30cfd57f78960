//! `/validate`: an order, checked by its published JSON Schema.

use std::fmt::Write;

use bytes::Bytes;
use http::{Response, StatusCode};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::serve::answers::{JSON, answer};
use crate::server::Body;

/// What an order has to be.
pub(super) const SCHEMA: &str = include_str!("../../../docs/order.schema.json");
/// An order.
pub(super) const EXAMPLE: &str = include_str!("order.json");
/// The same with three faults.
pub(super) const WRONG: &str = include_str!("wrong_order.json");

/// Faults that are listed.
const MOST_FAULTS: usize = 100;
/// Beyond so many values in a body only the first fault is looked for: all of them would take more memory than many
/// such bodies.
const MOST_LISTED: usize = 2_000;
/// What is shown of a fault; names in a body may be long.
const MOST_CHARS: usize = 200;

/// Judges orders.
#[derive(Debug)]
pub(super) struct Clerk {
    schema: Validator,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Verdict {
    valid: bool,
    faults: Vec<Fault>,
    /// There may be more faults than are listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

#[derive(Debug, Serialize)]
struct Fault {
    /// Where, as a JSON Pointer; the whole body is the empty one.
    path: String,
    message: String,
}

impl Clerk {
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
    pub(super) fn judge(&self, body: &[u8]) -> Response<Body> {
        let order: Value = match serde_json::from_slice(body) {
            Ok(order) => order,
            Err(error) => {
                let fault = Fault { path: String::new(), message: format!("not JSON: {error}") };
                return refuse(StatusCode::BAD_REQUEST, vec![fault], false);
            }
        };
        if self.schema.is_valid(&order) {
            return answer(StatusCode::OK, JSON, Bytes::from_static(br#"{"valid":true,"faults":[]}"#));
        }
        // All values but the first of a list follow a comma.
        if body.iter().filter(|byte| **byte == b',').count() > MOST_LISTED {
            let first = self.schema.validate(&order).err().map(|error| fault(&error));
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, first.into_iter().collect(), true);
        }
        let mut errors = self.schema.iter_errors(&order);
        let faults = errors.by_ref().take(MOST_FAULTS).map(|error| fault(&error)).collect();
        refuse(StatusCode::UNPROCESSABLE_ENTITY, faults, errors.next().is_some())
    }
}

fn refuse(status: StatusCode, faults: Vec<Fault>, more: bool) -> Response<Body> {
    // Text and lists of text are always JSON.
    let body = serde_json::to_vec(&Verdict { valid: false, faults, more }).unwrap_or_default();
    answer(status, JSON, body)
}

fn fault(error: &ValidationError<'_>) -> Fault {
    let shown = match error.instance().as_ref() {
        Value::String(text) => text.len() <= MOST_CHARS / 4,
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    let mut message = Short { text: String::new(), left: MOST_CHARS };
    // Cut where it is long enough.
    let _ = match shown {
        true => write!(message, "{error}"),
        false => write!(message, "{}", error.masked_with("this")),
    };
    Fault { path: error.instance_path().to_string(), message: message.text }
}

/// Takes no more than some characters.
struct Short {
    text: String,
    left: usize,
}

impl Write for Short {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        for c in part.chars() {
            if self.left == 0 {
                self.text.push('…');
                return Err(std::fmt::Error);
            }
            self.left -= 1;
            self.text.push(c);
        }
        Ok(())
    }
}
