//! Values of variables, queries and filters.

use std::fmt;
use std::io::Write;

use chrono::{DateTime, Utc};
use weir_hurl::NumberLiteral;
use weir_json::{elements, unescaped};

/// Text of a date, as of strftime.
const DATE_FORMAT: &str = "%Y-%m-%dT%H:%M:%S%.6fZ";

/// Value of a variable, query or filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON's null.
    Null,
    /// True or false.
    Bool(bool),
    /// Integer of 64 bits.
    Integer(i64),
    /// Number with a fraction.
    Float(f64),
    /// Number as it was written, where the others would be written differently: `01069`, `1.10`, `+49`, or outside of
    /// their range.
    Number(String),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Date with its time.
    Date(DateTime<Utc>),
    /// JSON object, as it came.
    Object(String),
    /// List.
    List(Vec<Value>),
    /// Texts of the nodes that an XPath found.
    Nodes(Vec<String>),
    /// Presence of an attribute that has no value.
    Unit,
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Value of a command line: true, false, null or a number if the text is one, else the text; what is in double
    /// quotes is a text. It keeps its text, which is sent as it was given.
    pub fn of_text(text: &str) -> Self {
        match text {
            "true" => return Self::Bool(true),
            "false" => return Self::Bool(false),
            "null" => return Self::Null,
            _ => {}
        }
        if let Some(quoted) = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            return Self::text(quoted);
        }
        let is_integer = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_integer || text.parse::<f64>().is_ok_and(f64::is_finite) { number(text) } else { Self::text(text) }
    }

    /// Text of a command line that is this text and no other value.
    pub fn quoted_text(text: &str) -> String {
        format!("\"{text}\"")
    }

    /// Value of a JSON text.
    pub fn of_json(json: &[u8]) -> Self {
        match json.first() {
            Some(b'"') => Self::Text(unescaped(json).unwrap_or_default().into_owned()),
            Some(b'{') => Self::Object(String::from_utf8_lossy(json).into_owned()),
            Some(b'[') => {
                let mut list = Vec::new();
                // The text of a node is whole.
                let _ = elements(json, |element| {
                    list.push(Self::of_json(element));
                    std::ops::ControlFlow::Continue(())
                });
                Self::List(list)
            }
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            _ => number(std::str::from_utf8(json).unwrap_or_default()),
        }
    }

    /// Text of the value in a template; `None` if it has none.
    pub fn template_text(&self) -> Option<String> {
        let mut text = Vec::new();
        self.push_text(&mut text).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// Appends the text of the value in a template; false if it has none.
    pub fn push_text(&self, out: &mut Vec<u8>) -> bool {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Null => out.write_all(b"null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Integer(value) => write!(out, "{value}"),
            Self::Float(value) => write!(out, "{value:?}"),
            Self::Text(text) | Self::Number(text) | Self::Object(text) => out.write_all(text.as_bytes()),
            Self::List(_) => out.write_all(self.json().as_bytes()),
            Self::Date(date) => write!(out, "{}", date.format(DATE_FORMAT)),
            Self::Bytes(_) | Self::Nodes(_) | Self::Unit => return false,
        };
        true
    }

    /// JSON text; bytes are their hexadecimal digits.
    pub fn json(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Unit => "true".to_owned(),
            Self::Integer(value) => value.to_string(),
            Self::Float(value) => format!("{value:?}"),
            Self::Number(text) => json_number(text),
            Self::Object(text) => text.clone(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Self::Bytes(bytes) => format!("\"{}\"", hex(bytes)),
            Self::Date(date) => format!("\"{}\"", date.format(DATE_FORMAT)),
            Self::Nodes(texts) => serde_json::Value::from(texts.clone()).to_string(),
            Self::List(list) => format!("[{}]", list.iter().map(Self::json).collect::<Vec<_>>().join(",")),
        }
    }

    /// Number as a float, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Number as an integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Whether two values are the same; 1 and 1.0 are.
    pub fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Integer(_) | Self::Number(_), Self::Integer(_) | Self::Number(_))
                if self.as_i64().zip(other.as_i64()).is_some() =>
            {
                self.as_i64() == other.as_i64()
            }
            (Self::Object(a), Self::Object(b)) => {
                a == b
                    || match (
                        serde_json::from_str::<serde_json::Value>(a),
                        serde_json::from_str::<serde_json::Value>(b),
                    ) {
                        (Ok(a), Ok(b)) => a == b,
                        _ => false,
                    }
            }
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_equal(b)),
            _ => match (self.as_f64(), other.as_f64()) {
                (Some(a), Some(b)) => a == b,
                (None, None) => self == other,
                _ => false,
            },
        }
    }

    /// Name of the type, for a person.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Integer(_) => "integer",
            Self::Float(_) => "float",
            Self::Number(text) if text.parse::<i64>().is_ok() => "integer",
            Self::Number(text) if is_fraction(text) => "float",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Date(_) => "date",
            Self::Nodes(_) => "nodeset",
            Self::Object(_) => "object",
            Self::List(_) => "list",
            Self::Unit => "unit",
        }
    }
}

impl From<&NumberLiteral> for Value {
    fn from(number: &NumberLiteral) -> Self {
        match number {
            NumberLiteral::Integer(value) => Self::Integer(*value),
            NumberLiteral::BigInteger(digits) => Self::Number(digits.clone()),
            NumberLiteral::Float(value) => Self::Float(*value),
        }
    }
}

/// Number of a text, which it keeps.
fn number(text: &str) -> Value {
    // Compared as it is written, without a copy: a load asks this for each number that it checks.
    let is_written = |value: fmt::Arguments<'_>| {
        let mut left = Remainder(text);
        fmt::write(&mut left, value).is_ok() && left.0.is_empty()
    };
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(integer), _) if is_written(format_args!("{integer}")) => Value::Integer(integer),
        (_, Ok(float)) if is_fraction(text) && is_written(format_args!("{float:?}")) => Value::Float(float),
        _ => Value::Number(text.to_owned()),
    }
}

/// Rest of a text after the written part; writing anything else is an error.
struct Remainder<'t>(&'t str);

impl fmt::Write for Remainder<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
        Ok(())
    }
}

/// Whether a number is written with a fraction or an exponent.
pub(crate) fn is_fraction(number: &str) -> bool {
    number.contains(['.', 'e', 'E'])
}

/// A written number as JSON, which has no leading zeros and no plus sign.
fn json_number(text: &str) -> String {
    if serde_json::from_str::<serde_json::Number>(text).is_ok() {
        return text.to_owned();
    }
    if let Ok(integer) = text.parse::<i64>() {
        return integer.to_string();
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.trim_start_matches('0').to_owned();
    }
    text.parse::<f64>().map_or_else(|_| serde_json::Value::from(text).to_string(), |float| format!("{float:?}"))
}

/// Hexadecimal digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}
