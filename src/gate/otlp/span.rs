//! A span as plain data.

use std::borrow::Cow;

/// Something that took time, and belongs to a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The trace; not 0.
    pub trace_id: u128,
    /// The span; not 0.
    pub span_id: u64,
    /// The span that it is a part of.
    pub parent: Option<u64>,
    /// What it is; of few kinds, so that spans can be grouped by it.
    pub name: Cow<'static, str>,
    /// Which end of a request it is.
    pub kind: SpanKind,
    /// Nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// Nanoseconds since 1970; not before the start.
    pub end_unix_ns: u64,
    /// What else there is to say; no name twice.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Some if it failed: the cause, or nothing where the attributes say it.
    pub error: Option<Cow<'static, str>>,
}

/// Which end of a request a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// It stays inside.
    Internal,
    /// The request came in.
    Server,
    /// The request went out.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Int(i64),
    /// Yes or no.
    Flag(bool),
}

impl From<&'static str> for AttributeValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        Self::Int(number.into())
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}
