//! Answers that every service gives.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::server::Body;

/// JSON.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Text for a person.
pub const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// An answer with a body of a kind.
pub fn answer(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// 404: there is no such path.
pub fn not_found() -> Response<Body> {
    answer(StatusCode::NOT_FOUND, TEXT, "Not Found")
}

/// 405: the path takes other methods.
pub fn not_allowed(methods: &'static str) -> Response<Body> {
    let mut answer = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "Method Not Allowed");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

/// 400: what is wrong with the request, in one line.
pub fn bad_request(why: impl Into<Bytes>) -> Response<Body> {
    answer(StatusCode::BAD_REQUEST, TEXT, why)
}

/// 413: the body is longer than the `most` bytes that are read.
pub fn too_large(most: usize) -> Response<Body> {
    answer(StatusCode::PAYLOAD_TOO_LARGE, TEXT, format!("the body is longer than {most} bytes"))
}
