//! A request and its response, as they are recorded. PURE.

use http::{HeaderMap, header};

use crate::resource::resource_type;

/// Request with its response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedExchange {
    /// Start, in milliseconds since 1970.
    pub(crate) started_unix_ms: i64,
    /// Time until the last byte of the response, in milliseconds.
    pub(crate) duration_ms: f64,
    /// Time until the head of the response, in milliseconds.
    pub(crate) wait_ms: f64,
    /// Number of the page that the request belongs to, from 1; 0 before the first page.
    pub(crate) page: u32,
    /// Method.
    pub(crate) method: String,
    /// URL.
    pub(crate) url: String,
    /// Version of HTTP of the client: `HTTP/1.1`, `HTTP/2.0`.
    pub(crate) version: String,
    /// Headers of the request, without those of the connection.
    pub(crate) headers: HeaderMap,
    /// Body of the request.
    pub(crate) body: RecordedBody,
    /// Response, if there is one.
    pub(crate) response: Option<ExchangeResponse>,
    /// Reason why the request cannot be played again.
    pub(crate) left_out: Option<String>,
}

/// Response of an [`RecordedExchange`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExchangeResponse {
    /// Status.
    pub(crate) status: u16,
    /// Headers, without those of the connection.
    pub(crate) headers: HeaderMap,
    /// Body as it came.
    pub(crate) body: RecordedBody,
}

/// Body, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordedBody {
    /// All bytes; none if the body is longer than what is kept of one.
    pub(crate) bytes: Vec<u8>,
    /// Number of bytes that passed through.
    pub(crate) length: u64,
}

impl RecordedBody {
    /// Whether the body is not kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.bytes.len() as u64 != self.length
    }
}

impl RecordedExchange {
    /// Whether the request is for a part of a page that scenarios usually leave out.
    pub(crate) fn is_static(&self) -> bool {
        let media_type = self.response.as_ref().map(|response| content_type(&response.headers)).unwrap_or_default();
        weir_import::is_static_file(&self.method, &self.url, &media_type, resource_type(&self.headers))
    }
}

/// Value of Content-Type; empty without one.
pub(crate) fn content_type(headers: &HeaderMap) -> String {
    header_text(headers, header::CONTENT_TYPE.as_str())
}

/// Value of a header as text; empty without one.
pub(crate) fn header_text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Whether values of a response of this type can be captured, so that its body is kept.
pub(crate) fn is_searched(media_type: &str) -> bool {
    let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type.is_empty() || ["json", "html", "xml"].iter().any(|word| media_type.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_with_values_to_capture_are_kept() {
        for (media_type, expected) in [
            ("application/json; charset=utf-8", true),
            ("application/problem+json", true),
            ("text/HTML", true),
            ("", true),
            ("image/png", false),
            ("text/css", false),
        ] {
            assert_eq!(is_searched(media_type), expected, "{media_type}");
        }
    }
}
