//! Answers that every service gives.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::server::ResponseBody;

/// JSON.
pub const CONTENT_TYPE_JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Text for a person.
pub const CONTENT_TYPE_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// An answer with a body of a kind.
pub fn response(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// 404: there is no such path.
pub fn not_found() -> Response<ResponseBody> {
    response(StatusCode::NOT_FOUND, CONTENT_TYPE_TEXT, "Not Found")
}

/// 405: the path takes other methods.
pub fn method_not_allowed(methods: &'static str) -> Response<ResponseBody> {
    let mut answer = response(StatusCode::METHOD_NOT_ALLOWED, CONTENT_TYPE_TEXT, "Method Not Allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

/// 400: what is wrong with the request, in one line.
pub fn bad_request(why: impl Into<Bytes>) -> Response<ResponseBody> {
    response(StatusCode::BAD_REQUEST, CONTENT_TYPE_TEXT, why)
}

/// 413: the body is longer than the `most` bytes that are read.
pub fn payload_too_large(most: usize) -> Response<ResponseBody> {
    response(StatusCode::PAYLOAD_TOO_LARGE, CONTENT_TYPE_TEXT, format!("the body is longer than {most} bytes"))
}
