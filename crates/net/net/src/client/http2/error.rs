//! Errors of hyper's HTTP/2 as failures of a request.

use std::error::Error;
use std::io;

use super::super::error::{FailurePoint, SendError};
use weir_base::failure::FailureKind;

fn root_cause(error: &hyper::Error) -> &(dyn Error + 'static) {
    let mut cause: &(dyn Error + 'static) = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

/// Whether the connection was going away before this request: its stream is above the last one that the other end
/// processes (RFC 9113, 6.8). Recognized by h2's text, since hyper does not expose its type.
pub(super) fn is_after_goaway(error: &hyper::Error) -> bool {
    root_cause(error).to_string().starts_with("connection error received: not a result of an error")
}

pub(in crate::client) fn failure(error: &hyper::Error) -> SendError {
    let root = root_cause(error);
    let text = root.to_string();
    if let Some(error) = root.downcast_ref::<io::Error>() {
        return SendError::connection_lost(error);
    }
    let kind = if text.starts_with("stream error") {
        FailureKind::Reset
    } else if text.starts_with("connection error detected") || error.is_parse() {
        FailureKind::Protocol
    } else {
        FailureKind::Closed
    };
    let point = if kind == FailureKind::Reset { FailurePoint::Stream } else { FailurePoint::Other };
    SendError::new(kind, format!("HTTP/2: {text}")).at(point)
}
