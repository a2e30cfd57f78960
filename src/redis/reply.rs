//! Reads what scripts say. What a person has changed on the server by hand may be anything: it becomes what is empty.

use ::redis::Value;

/// One value.
#[derive(Debug)]
pub struct RedisValue(pub Value);

impl RedisValue {
    /// The values of a list; none of anything else.
    pub fn list(value: Value) -> Vec<Self> {
        match value {
            Value::Array(values) | Value::Set(values) => values.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// Its own values, if it is a list.
    pub fn items(self) -> Vec<Self> {
        Self::list(self.0)
    }

    /// Its bytes, if it is a text or a number.
    pub fn bytes(self) -> Option<Vec<u8>> {
        match self.0 {
            Value::BulkString(bytes) => Some(bytes),
            Value::SimpleString(text) => Some(text.into_bytes()),
            Value::Int(number) => Some(number.to_string().into_bytes()),
            _ => None,
        }
    }

    /// It as text; what is no UTF-8 in it is replaced.
    pub fn maybe_text(self) -> Option<String> {
        let bytes = self.bytes()?;
        Some(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// It as text; empty if it is none.
    pub fn text(self) -> String {
        self.maybe_text().unwrap_or_default()
    }

    /// It as a number.
    pub fn maybe_int(&self) -> Option<i64> {
        match &self.0 {
            Value::Int(number) => Some(*number),
            Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
            _ => None,
        }
    }

    /// It as a number; 0 if it is none.
    pub fn int(&self) -> i64 {
        self.maybe_int().unwrap_or_default()
    }

    /// It as a number of things; 0 if it is none.
    pub fn count(&self) -> u64 {
        u64::try_from(self.int()).unwrap_or(0)
    }
}

/// Takes one after the other; what is missing is empty.
#[derive(Debug)]
pub struct RedisValues(std::vec::IntoIter<RedisValue>);

impl RedisValues {
    /// Those of a list.
    pub fn of(value: Value) -> Self {
        Self(RedisValue::list(value).into_iter())
    }

    /// The next one.
    pub fn next_value(&mut self) -> RedisValue {
        self.0.next().unwrap_or(RedisValue(Value::Nil))
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}
