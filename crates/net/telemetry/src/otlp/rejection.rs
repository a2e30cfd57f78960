//! Part of an accepted request that a collector has rejected.

use prost::Message;
use serde::Deserialize;

use crate::http_receiver::one_line;

/// Part of an accepted request that a collector has rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRejection {
    /// Number of spans or data points; > 0.
    pub rejected: u64,
    /// Message of the collector, on one line without control characters; may be empty.
    pub message: String,
}

/// `ExportTraceServiceResponse` and `ExportMetricsServiceResponse`, which have the same numbers.
#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// The same in JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JsonResponse {
    partial_success: Option<JsonPartialSuccess>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JsonPartialSuccess {
    #[serde(alias = "rejectedDataPoints")]
    rejected_spans: ProtoNumber,
    error_message: String,
}

/// A 64-bit number: a string, as in protobuf's JSON, or a plain number, as some collectors write it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ProtoNumber {
    Text(String),
    Plain(u64),
}

impl Default for ProtoNumber {
    fn default() -> Self {
        Self::Plain(0)
    }
}

impl ExportRejection {
    /// Reads a response in protobuf; `None` if nothing was rejected, or the response cannot be read.
    pub fn from_protobuf(response: &[u8]) -> Option<Self> {
        let partial = ExportResponse::decode(response).ok()?.partial_success?;
        Self::new(u64::try_from(partial.rejected).unwrap_or(0), &partial.error_message)
    }

    /// Reads a response in JSON; `None` if nothing was rejected, or the response cannot be read.
    pub fn from_json(response: &[u8]) -> Option<Self> {
        let partial = serde_json::from_slice::<JsonResponse>(response).ok()?.partial_success?;
        let rejected = match partial.rejected_spans {
            ProtoNumber::Text(text) => text.parse().unwrap_or(0),
            ProtoNumber::Plain(number) => number,
        };
        Self::new(rejected, &partial.error_message)
    }

    fn new(rejected: u64, message: &str) -> Option<Self> {
        (rejected > 0).then(|| Self { rejected, message: one_line(message) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(rejected: u64, message: &str) -> Option<ExportRejection> {
        Some(ExportRejection { rejected, message: message.to_owned() })
    }

    #[test]
    fn responses_in_json_are_read_as_collectors_write_them() {
        for nothing in ["", "{}", r#"{"partialSuccess":null}"#, r#"{"partialSuccess":{}}"#, "[1]", "ok"] {
            assert_eq!(ExportRejection::from_json(nothing.as_bytes()), None, "{nothing}");
        }
        let some = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too\u001b[2Jold"}}"#;
        assert_eq!(ExportRejection::from_json(some.as_bytes()), rejection(3, "too [2Jold"));
        assert_eq!(ExportRejection::from_json(br#"{"partialSuccess":{"rejectedSpans":4}}"#), rejection(4, ""));
        assert_eq!(ExportRejection::from_json(br#"{"partialSuccess":{"rejectedDataPoints":4}}"#), rejection(4, ""));
    }

    /// A collector's text in protobuf controls the terminal no more than one in JSON.
    #[test]
    fn responses_in_protobuf_are_read_and_steer_no_terminal() {
        let response = |rejected| {
            let partial = PartialSuccess { rejected, error_message: "too\u{1b}[2Jold\n".to_owned() };
            ExportResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        assert_eq!(ExportRejection::from_protobuf(&response(3)), rejection(3, "too [2Jold"));
        for nothing in [&response(0), &response(-1), &b""[..].to_vec(), &b"{}"[..].to_vec()] {
            assert_eq!(ExportRejection::from_protobuf(nothing), None);
        }
    }
}
