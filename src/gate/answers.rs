//! Answers that the gate gives itself.

use http::{HeaderValue, Response, StatusCode, header};

use crate::call::story::{End, Story};
use crate::decide::policy::Failure;
use crate::server::Body;

/// One line of text.
pub(super) fn text(status: StatusCode, line: &str) -> Response<Body> {
    let mut answer = Response::new(Body::from(format!("{line}\n")));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// The path is there, the method is not.
pub(super) fn not_allowed(allow: &str) -> Response<Body> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, &format!("this route takes {allow}"));
    if let Ok(allow) = HeaderValue::try_from(allow) {
        answer.headers_mut().insert(header::ALLOW, allow);
    }
    answer
}

/// No attempt brought an answer that could be passed on.
pub(super) fn no_answer(story: &Story) -> Response<Body> {
    let why = story.attempts.iter().rev().find_map(|attempt| match &attempt.end {
        End::Failed(Failure::Kind(kind), _) => Some(kind.name()),
        _ => None,
    });
    let attempts = story.attempts.len();
    let line = format!("no answer from the upstream ({}); attempts: {attempts}", why.unwrap_or("none was sent"));
    text(StatusCode::BAD_GATEWAY, &line)
}
