//! Values that are compared.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Literal of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

/// Value of an operand.
#[derive(Clone, Debug)]
pub(super) enum Operated<'b> {
    Nothing,
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Cow<'b, str>),
    /// List or object.
    Json(&'b [u8]),
}

impl<'b> Operated<'b> {
    /// Value of the text of a node.
    pub(super) fn of_node(node: &'b [u8]) -> Self {
        match node.first() {
            Some(b'"') => unescaped(node).map_or(Self::Nothing, Self::Text),
            Some(b'{' | b'[') => Self::Json(node),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            _ => {
                let text = std::str::from_utf8(node).unwrap_or_default();
                match text.parse::<i64>() {
                    Ok(number) => Self::Integer(number),
                    Err(_) => text.parse().map_or(Self::Nothing, Self::Float),
                }
            }
        }
    }

    pub(super) fn of_literal(literal: &'b Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Integer(value) => Self::Integer(*value),
            Literal::Float(value) => Self::Float(*value),
            Literal::Text(value) => Self::Text(Cow::Borrowed(value)),
        }
    }

    pub(super) fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) | (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => {
                a == b
                    || match (
                        serde_json::from_slice::<serde_json::Value>(a),
                        serde_json::from_slice::<serde_json::Value>(b),
                    ) {
                        (Ok(a), Ok(b)) => is_same_json(&a, &b),
                        _ => false,
                    }
            }
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }

    /// Order of numbers and of texts; `None` for all else.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }
}

/// Equality in which 1 and 1.0 are the same.
fn is_same_json(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_json(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same_json(a, b)))
        }
        _ => a == b,
    }
}

/// Text of a JSON string with its quotes; `None` if it is malformed.
pub fn unescaped(string: &[u8]) -> Option<Cow<'_, str>> {
    let inner = string.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(string).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}
