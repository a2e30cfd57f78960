//! Requests of traces: `ExportTraceServiceRequest`.

use std::borrow::Cow;

use prost::Message;
use serde::{Serialize, Serializer};

use super::resource::{OtlpAttribute, OtlpResource, OtlpScope, decimal};
use crate::span::{SpanKind, TraceSpan};

/// Request with spans.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportSpansRequest {
    /// Spans by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of a resource.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpans {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<OtlpResource>,
    /// Its spans, by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

/// Spans of a scope.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ScopeSpans {
    /// The scope.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<OtlpScope>,
    /// Its spans.
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<OtlpSpan>,
}

/// A span.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtlpSpan {
    /// Trace ID, 16 bytes.
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hex")]
    pub trace_id: Vec<u8>,
    /// Span ID, 8 bytes.
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hex")]
    pub span_id: Vec<u8>,
    /// ID of the parent span, 8 bytes; empty without one.
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hex", skip_serializing_if = "Vec::is_empty")]
    pub parent_span_id: Vec<u8>,
    /// Name.
    #[prost(string, tag = "5")]
    pub name: String,
    /// `Span.SpanKind`.
    #[prost(int32, tag = "6")]
    pub kind: i32,
    /// Start, in nanoseconds since 1970.
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "decimal")]
    pub start_time_unix_nano: u64,
    /// End, in nanoseconds since 1970.
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "decimal")]
    pub end_time_unix_nano: u64,
    /// Attributes.
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<OtlpAttribute>,
    /// Status; none without an error.
    #[prost(message, optional, tag = "15")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<SpanStatus>,
}

/// Status of a span.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
pub struct SpanStatus {
    /// Cause of the error.
    #[prost(string, tag = "2")]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// `Status.StatusCode`.
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// `STATUS_CODE_ERROR` of `Status.StatusCode`.
const STATUS_CODE_ERROR: i32 = 2;

/// `Span.SpanKind`.
fn span_kind_number(kind: SpanKind) -> i32 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

impl ExportSpansRequest {
    /// Request with spans of one service.
    pub fn new(service_name: &str, spans: impl IntoIterator<Item = TraceSpan>) -> Self {
        let resource = OtlpResource { attributes: vec![OtlpAttribute::text("service.name", service_name)] };
        let spans = spans.into_iter().map(OtlpSpan::from).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(OtlpScope::weir()), spans }];
        Self { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] }
    }

    /// Body of the request in JSON.
    pub fn to_json(&self) -> Vec<u8> {
        // Plain fields always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl From<TraceSpan> for OtlpSpan {
    fn from(span: TraceSpan) -> Self {
        let status = |message: Cow<'_, str>| SpanStatus { message: message.into_owned(), code: STATUS_CODE_ERROR };
        Self {
            trace_id: span.trace_id.to_be_bytes().to_vec(),
            span_id: span.span_id.to_be_bytes().to_vec(),
            parent_span_id: span.parent.map(|id| id.to_be_bytes().to_vec()).unwrap_or_default(),
            name: span.name.into_owned(),
            kind: span_kind_number(span.kind),
            start_time_unix_nano: span.start_unix_ns,
            end_time_unix_nano: span.end_unix_ns,
            attributes: span.attributes.into_iter().map(|(key, value)| OtlpAttribute::of(key, value)).collect(),
            status: span.error.map(status),
        }
    }
}

/// An ID in JSON is hexadecimal.
fn hex<S: Serializer>(id: &[u8], to: S) -> Result<S::Ok, S::Error> {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    let digits: String = id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    to.serialize_str(&digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::AttributeValue;
    use proptest::prelude::*;
    use serde_json::Value as Json;

    #[test]
    fn a_batch_is_encoded_as_specified() {
        let spans = [
            TraceSpan {
                trace_id: 0x5b8e_fff7_9803_8103_d269_b633_813f_c60c,
                span_id: 0xeee1_9b7e_c3c1_b174,
                parent: Some(0xab),
                name: "GET smart".into(),
                kind: SpanKind::Server,
                start_unix_ns: 1_544_712_660_000_000_000,
                end_unix_ns: 1_544_712_660_300_000_001,
                attributes: vec![
                    ("http.request.method", "GET".into()),
                    ("http.response.status_code", 200_u16.into()),
                    ("weir.hedged", AttributeValue::Flag(true)),
                ],
                error: None,
            },
            TraceSpan {
                trace_id: 1,
                span_id: 2,
                parent: None,
                name: "\"quoted\"\n".into(),
                kind: SpanKind::Client,
                start_unix_ns: 0,
                end_unix_ns: u64::MAX,
                attributes: vec![("least", AttributeValue::Int(i64::MIN))],
                error: Some("connection refused".into()),
            },
            TraceSpan {
                trace_id: u128::MAX,
                span_id: u64::MAX,
                parent: None,
                name: "".into(),
                kind: SpanKind::Internal,
                start_unix_ns: 0,
                end_unix_ns: 0,
                attributes: Vec::new(),
                error: Some("".into()),
            },
        ];
        let golden = [
            r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"my gate"}}]},"#,
            r#""scopeSpans":[{"scope":{"name":"weir","version":"VERSION"},"spans":["#,
            r#"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"00000000000000ab","#,
            r#""name":"GET smart","kind":2,"#,
            r#""startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712660300000001","#,
            r#""attributes":[{"key":"http.request.method","value":{"stringValue":"GET"}},"#,
            r#"{"key":"http.response.status_code","value":{"intValue":"200"}},"#,
            r#"{"key":"weir.hedged","value":{"boolValue":true}}]},"#,
            r#"{"traceId":"00000000000000000000000000000001","spanId":"0000000000000002","#,
            r#""name":"\"quoted\"\n","kind":3,"startTimeUnixNano":"0","endTimeUnixNano":"18446744073709551615","#,
            r#""attributes":[{"key":"least","value":{"intValue":"-9223372036854775808"}}],"#,
            r#""status":{"message":"connection refused","code":2}},"#,
            r#"{"traceId":"ffffffffffffffffffffffffffffffff","spanId":"ffffffffffffffff","#,
            r#""name":"","kind":1,"startTimeUnixNano":"0","endTimeUnixNano":"0","attributes":[],"status":{"code":2}}"#,
            r#"]}]}]}"#,
        ];
        let golden = golden.concat().replace("VERSION", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(ExportSpansRequest::new("my gate", spans).to_json()).unwrap(), golden);
    }

    proptest! {
        #[test]
        fn any_text_and_any_number_is_encoded(
            trace_id: u128, span_id: u64, parent: Option<u64>, name: String, text: String, number: i64, end: u64
        ) {
            let attributes = vec![("text", text.clone().into()), ("number", AttributeValue::Int(number))];
            let error = Some(text.clone().into());
            let (name, kind) = (name.into(), SpanKind::Client);
            let span = TraceSpan { trace_id, span_id, parent, name, kind, start_unix_ns: 0, end_unix_ns: end, attributes, error };
            let request = ExportSpansRequest::new(&text, [span.clone()]);
            prop_assert_eq!(&ExportSpansRequest::decode(&*request.encode_to_vec()).unwrap(), &request);
            let read: Json = serde_json::from_slice(&request.to_json()).unwrap();
            let resource = &read["resourceSpans"][0];
            prop_assert_eq!(&resource["resource"]["attributes"][0]["value"]["stringValue"], text.as_str());
            let read = &resource["scopeSpans"][0]["spans"][0];
            let hex = |name: &str| read[name].as_str().and_then(|hex| u128::from_str_radix(hex, 16).ok());
            prop_assert_eq!(hex("traceId"), Some(trace_id));
            prop_assert_eq!(hex("spanId"), Some(span_id.into()));
            prop_assert_eq!(hex("parentSpanId"), parent.map(u128::from));
            prop_assert_eq!(&read["name"], &*span.name);
            prop_assert_eq!(&read["endTimeUnixNano"], &end.to_string());
            prop_assert_eq!(&read["attributes"][0]["value"]["stringValue"], text.as_str());
            prop_assert_eq!(&read["attributes"][1]["value"]["intValue"], &number.to_string());
            prop_assert_eq!(read["status"].get("message").and_then(Json::as_str).unwrap_or(""), text.as_str());
        }
    }
}
