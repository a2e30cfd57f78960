//! Resources, scopes and attributes, which requests of all kinds have.

use prost::{Message, Oneof};
use serde::{Serialize, Serializer};

use crate::span::AttributeValue;

/// Subject of the telemetry.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
pub struct OtlpResource {
    /// Attributes, such as `service.name`.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<OtlpAttribute>,
}

/// Source of the telemetry.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
pub struct OtlpScope {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Version.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// Attribute: a name and a value.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
pub struct OtlpAttribute {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(message, optional, tag = "2")]
    pub value: Option<OtlpValue>,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(transparent)]
pub struct OtlpValue {
    /// The value, by its type.
    #[prost(oneof = "AttributeScalar", tags = "1, 2, 3")]
    pub value: Option<AttributeScalar>,
}

/// A value, by its type.
#[derive(Clone, PartialEq, Eq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AttributeScalar {
    /// Text.
    #[prost(string, tag = "1")]
    StringValue(String),
    /// Boolean.
    #[prost(bool, tag = "2")]
    BoolValue(bool),
    /// Whole number.
    #[prost(int64, tag = "3")]
    IntValue(#[serde(serialize_with = "decimal")] i64),
}

impl OtlpScope {
    /// This version of weir.
    pub fn weir() -> Self {
        Self { name: "weir".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

impl OtlpAttribute {
    /// Attribute with a text.
    pub fn text(key: &str, value: &str) -> Self {
        Self::new(key, AttributeScalar::StringValue(value.to_owned()))
    }

    fn new(key: &str, value: AttributeScalar) -> Self {
        Self { key: key.to_owned(), value: Some(OtlpValue { value: Some(value) }) }
    }

    /// Attribute of a span.
    pub(crate) fn of(key: &str, value: AttributeValue) -> Self {
        Self::new(
            key,
            match value {
                AttributeValue::Text(text) => AttributeScalar::StringValue(text.into_owned()),
                AttributeValue::Int(number) => AttributeScalar::IntValue(number),
                AttributeValue::Flag(flag) => AttributeScalar::BoolValue(flag),
            },
        )
    }
}

/// A 64-bit number in JSON is a string.
pub(crate) fn decimal<S: Serializer>(number: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}
