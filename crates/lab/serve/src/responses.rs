//! Responses that all services share.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use weir_server::ResponseBody;

/// Content type of JSON.
pub const CONTENT_TYPE_JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Content type of lines of JSON.
pub const CONTENT_TYPE_JSON_LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Content type of plain text.
pub const CONTENT_TYPE_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Response with a body of this content type.
pub fn response(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut reply = Response::new(ResponseBody::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, content_type);
    reply
}

/// 404: unknown path.
pub fn not_found() -> Response<ResponseBody> {
    response(StatusCode::NOT_FOUND, CONTENT_TYPE_TEXT, "Not Found")
}

/// 405, with the allowed methods.
pub fn method_not_allowed(methods: &'static str) -> Response<ResponseBody> {
    let mut reply = response(StatusCode::METHOD_NOT_ALLOWED, CONTENT_TYPE_TEXT, "Method Not Allowed");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

/// 400, with the reason in one line.
pub fn bad_request(reason: impl Into<Bytes>) -> Response<ResponseBody> {
    response(StatusCode::BAD_REQUEST, CONTENT_TYPE_TEXT, reason)
}

/// 413: the body is longer than `max` bytes.
pub fn payload_too_large(max: usize) -> Response<ResponseBody> {
    response(StatusCode::PAYLOAD_TOO_LARGE, CONTENT_TYPE_TEXT, format!("the body is longer than {max} bytes"))
}
