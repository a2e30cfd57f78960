//! Bound on the depth of messages within messages.

use prost_reflect::{DynamicMessage, ReflectMessage, Value};

/// Maximum depth of messages, which protobuf's own libraries have as well.
const MAX_DEPTH: usize = 100;
/// Full name of the type whose values are messages as bytes.
const ANY: &str = "google.protobuf.Any";

/// Whether a message has at most 100 levels, those within values of `google.protobuf.Any` included.
///
/// The reader bounds the levels of one piece of bytes. An `Any` has a message as bytes of its own, which is read when it
/// becomes JSON: a few megabytes of one within the other would overflow the stack.
pub(super) fn is_shallow(message: &DynamicMessage) -> bool {
    let descriptor = message.descriptor();
    let has_any = descriptor.full_name() == ANY || descriptor.parent_pool().get_message_by_name(ANY).is_some();
    !has_any || fits(message, MAX_DEPTH)
}

/// Whether a message has at most this number of levels.
fn fits(message: &DynamicMessage, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return false };
    if message.descriptor().full_name() == ANY {
        return content(message).is_none_or(|content| fits(&content, left));
    }
    let fields = message.fields().map(|(_, value)| value);
    fields.chain(message.extensions().map(|(_, value)| value)).all(|value| value_fits(value, left))
}

fn value_fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Message(message) => fits(message, levels),
        Value::List(values) => values.iter().all(|value| value_fits(value, levels)),
        Value::Map(values) => values.values().all(|value| value_fits(value, levels)),
        _ => true,
    }
}

/// Message of an `Any`; `None` if it is not one of the schema.
fn content(any: &DynamicMessage) -> Option<DynamicMessage> {
    let (url, value) = (any.get_field_by_number(1)?, any.get_field_by_number(2)?);
    let name = url.as_str()?.rsplit('/').next()?;
    let descriptor = any.descriptor().parent_pool().get_message_by_name(name)?;
    DynamicMessage::decode(descriptor, value.as_bytes()?.as_ref()).ok()
}
