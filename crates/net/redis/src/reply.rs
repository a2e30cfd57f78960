//! Typed access to replies of scripts. Values of an unexpected type, such as after manual changes, become empty ones.

use ::redis::Value;

/// One value of a reply.
#[derive(Debug)]
pub struct RedisValue(pub Value);

impl RedisValue {
    /// Values of a list; empty for any other type.
    pub fn list(value: Value) -> Vec<Self> {
        match value {
            Value::Array(values) | Value::Set(values) => values.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// Values of this one, if it is a list; otherwise empty.
    pub fn items(self) -> Vec<Self> {
        Self::list(self.0)
    }

    /// Bytes of a text or a number.
    pub fn bytes(self) -> Option<Vec<u8>> {
        match self.0 {
            Value::BulkString(bytes) => Some(bytes),
            Value::SimpleString(text) => Some(text.into_bytes()),
            Value::Int(number) => Some(number.to_string().into_bytes()),
            _ => None,
        }
    }

    /// Text, with invalid UTF-8 replaced; None for other types.
    pub fn maybe_text(self) -> Option<String> {
        let bytes = self.bytes()?;
        Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Text; empty for other types.
    pub fn text(self) -> String {
        self.maybe_text().unwrap_or_default()
    }

    /// Number; None for other types.
    pub fn maybe_int(&self) -> Option<i64> {
        match &self.0 {
            Value::Int(number) => Some(*number),
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// Number; 0 for other types.
    pub fn int(&self) -> i64 {
        self.maybe_int().unwrap_or_default()
    }

    /// Count; 0 for negative numbers and other types.
    pub fn count(&self) -> u64 {
        u64::try_from(self.int()).unwrap_or(0)
    }
}

/// Sequential access to the values of a list; missing values are nil.
#[derive(Debug)]
pub struct RedisValues(std::vec::IntoIter<RedisValue>);

impl RedisValues {
    /// Values of a list.
    pub fn of(value: Value) -> Self {
        Self(RedisValue::list(value).into_iter())
    }

    /// Next value.
    pub fn next_value(&mut self) -> RedisValue {
        self.0.next().unwrap_or(RedisValue(Value::Nil))
    }

    /// Whether no value is left.
    pub fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}
