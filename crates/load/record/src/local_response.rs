//! Responses of the recorder's own.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

use crate::passing_body::PassingBody;

/// Response of the recorder's own, on one line.
pub(crate) fn local_response(status: StatusCode, text: impl Into<Bytes>) -> Response<PassingBody> {
    let mut response = Response::new(PassingBody::text(text));
    *response.status_mut() = status;
    let media_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}
