//! A span of a trace, as plain data.

use std::borrow::Cow;

/// Ended span, as it is exported.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Trace ID; not 0.
    pub trace_id: u128,
    /// Span ID; not 0.
    pub span_id: u64,
    /// ID of the parent span.
    pub parent: Option<u64>,
    /// Name, of low cardinality.
    pub name: Cow<'static, str>,
    /// Side of the request.
    pub kind: SpanKind,
    /// Start, in nanoseconds since 1970.
    pub start_unix_ns: u64,
    /// End, in nanoseconds since 1970; not before the start.
    pub end_unix_ns: u64,
    /// Attributes; names are unique.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Some if the span is an error: the cause, or "" where the attributes have it.
    pub error: Option<Cow<'static, str>>,
}

/// Side of the request that a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Neither.
    Internal,
    /// The request was received.
    Server,
    /// The request was sent.
    Client,
}

/// Typed value of a span's attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text.
    Text(Cow<'static, str>),
    /// A whole number.
    Int(i64),
    /// A boolean.
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
