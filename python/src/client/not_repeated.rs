//! Why a failed call had no other attempt, as text.

use http::Method;
use weir::resilience::hedge::NotRepeated;

/// The reason, and what changes it; `None` if the attempts show it.
pub(crate) fn text(reason: NotRepeated, method: &Method) -> Option<String> {
    let remedy = if matches!(*method, Method::PUT | Method::DELETE) { "idempotent" } else { "all" };
    match reason {
        NotRepeated::Kind => Some("not retried: this failure is none of Retry(on=...)".to_owned()),
        NotRepeated::Method => Some(format!(
            "not repeated: the service may have processed the {method}; retry_methods='{remedy}' sends it again"
        )),
        NotRepeated::Stream => Some("not repeated: its body was a stream, which can not be sent again".to_owned()),
        NotRepeated::Deadline => {
            Some("not retried: the wait would end after the deadline; a longer deadline= allows it".to_owned())
        }
        NotRepeated::NoneLeft => None,
    }
}
