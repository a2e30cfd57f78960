//! Encoding of spans: `ExportTraceServiceRequest` of opentelemetry-proto, in JSON.
//!
//! Two rules differ from protobuf's own JSON (OpenTelemetry Protocol Specification, "JSON Protobuf Encoding"): IDs are
//! hexadecimal instead of base64, and enums are numbers. As in protobuf's, 64-bit numbers are strings.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::span::{AttributeValue, SpanKind, TraceSpan};

/// The request body for these spans of one service.
pub(crate) fn request(service_name: &str, spans: &[TraceSpan]) -> Vec<u8> {
    let name = KeyValue { key: "service.name", value: AnyValue::Text(service_name) };
    let request = ExportRequest {
        resource_spans: [ResourceSpans {
            resource: Resource { attributes: [name] },
            scope_spans: [ScopeSpans {
                scope: InstrumentationScope { name: "weir", version: env!("CARGO_PKG_VERSION") },
                spans: SpanList(spans),
            }],
        }],
    };
    // Plain fields always serialize.
    serde_json::to_vec(&request).unwrap_or_default()
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ExportRequest<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Resource<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(serde::Serialize)]
struct Resource<'a> {
    attributes: [KeyValue<'a>; 1],
}

#[derive(serde::Serialize)]
struct ScopeSpans<'a> {
    scope: InstrumentationScope,
    spans: SpanList<'a>,
}

#[derive(serde::Serialize)]
struct InstrumentationScope {
    name: &'static str,
    version: &'static str,
}

struct SpanList<'a>(&'a [TraceSpan]);

impl Serialize for SpanList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(SpanJson::of))
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanJson<'a> {
    trace_id: HexString<u128>,
    span_id: HexString<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<HexString<u64>>,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: DecimalString<u64>,
    end_time_unix_nano: DecimalString<u64>,
    attributes: AttributeList<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<SpanStatus<'a>>,
}

#[derive(serde::Serialize)]
struct SpanStatus<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    code: u8,
}

/// `STATUS_CODE_ERROR` of `Status.StatusCode`.
const STATUS_CODE_ERROR: u8 = 2;

/// `Span.SpanKind`.
fn span_kind_number(kind: SpanKind) -> u8 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

impl<'a> SpanJson<'a> {
    fn of(span: &'a TraceSpan) -> Self {
        Self {
            trace_id: HexString(span.trace_id),
            span_id: HexString(span.span_id),
            parent_span_id: span.parent.map(HexString),
            name: &span.name,
            kind: span_kind_number(span.kind),
            start_time_unix_nano: DecimalString(span.start_unix_ns),
            end_time_unix_nano: DecimalString(span.end_unix_ns),
            attributes: AttributeList(&span.attributes),
            status: span.error.as_deref().map(|message| SpanStatus { message, code: STATUS_CODE_ERROR }),
        }
    }
}

struct AttributeList<'a>(&'a [(&'static str, AttributeValue)]);

impl Serialize for AttributeList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, value)| KeyValue { key, value: value.into() }))
    }
}

#[derive(serde::Serialize)]
struct KeyValue<'a> {
    key: &'a str,
    value: AnyValue<'a>,
}

/// A value keyed by its type.
enum AnyValue<'a> {
    Text(&'a str),
    Int(i64),
    Flag(bool),
}

impl<'a> From<&'a AttributeValue> for AnyValue<'a> {
    fn from(value: &'a AttributeValue) -> Self {
        match value {
            AttributeValue::Text(text) => Self::Text(text),
            AttributeValue::Int(number) => Self::Int(*number),
            AttributeValue::Flag(flag) => Self::Flag(*flag),
        }
    }
}

impl Serialize for AnyValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Text(text) => map.serialize_entry("stringValue", text)?,
            Self::Int(number) => map.serialize_entry("intValue", &DecimalString(number))?,
            Self::Flag(flag) => map.serialize_entry("boolValue", flag)?,
        }
        map.end()
    }
}

/// A number that is serialized as a string.
struct DecimalString<T>(T);

impl<T: fmt::Display> Serialize for DecimalString<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An ID that is serialized as a hexadecimal string of full width.
struct HexString<T>(T);

impl<T: fmt::LowerHex> Serialize for HexString<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:0width$x}", self.0, width = 2 * size_of::<T>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(String::from_utf8(request("my gate", &spans)).unwrap(), golden);
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
            let read: Json = serde_json::from_slice(&request(&text, std::slice::from_ref(&span))).unwrap();
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
