//! Names of the statuses of gRPC.
//!
//! Results count a status of gRPC where those of HTTP are counted: its codes, 0 to 16, are below the lowest status of HTTP,
//! which is 100.

use std::borrow::Cow;

/// Names by code, as the specification of gRPC has them.
pub const GRPC_STATUS_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Code of the status OK.
pub const GRPC_OK: u16 = 0;

/// Status as text: the name of a code of gRPC, or the digits of a status of HTTP.
pub fn status_text(status: u16) -> Cow<'static, str> {
    match GRPC_STATUS_NAMES.get(usize::from(status)) {
        Some(name) => Cow::Borrowed(*name),
        None => Cow::Owned(status.to_string()),
    }
}

/// Status of a text: of a name of gRPC or of digits; `None` for other texts.
pub fn parse_status(text: &str) -> Option<u16> {
    let named = (0..).zip(GRPC_STATUS_NAMES).find(|(_, name)| *name == text);
    named.map(|(code, _)| code).or_else(|| text.parse().ok())
}

/// Whether a status is one of gRPC.
#[inline]
pub fn is_grpc_status(status: u16) -> bool {
    usize::from(status) < GRPC_STATUS_NAMES.len()
}

/// Whether a response with this status has succeeded by it: OK of gRPC, and of HTTP one below 400.
#[inline]
pub fn is_success_status(status: u16) -> bool {
    matches!(status, GRPC_OK | 17..400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_named_as_its_protocol_names_it() {
        assert_eq!(
            (status_text(0), status_text(14), status_text(503)),
            ("OK".into(), "UNAVAILABLE".into(), "503".into())
        );
        for status in 0..1000 {
            assert_eq!(parse_status(&status_text(status)), Some(status));
        }
        assert_eq!(parse_status("nothing"), None);
    }

    #[test]
    fn only_ok_and_statuses_of_http_below_400_are_successes() {
        let successes: Vec<u16> = (0..1000).filter(|status| is_success_status(*status)).collect();
        assert_eq!(successes.iter().filter(|status| **status < 100).count() - (17..100).count(), 1);
        assert!((100..1000).all(|status| is_success_status(status) == (status < 400)));
        assert!((1..17).all(|status| !is_success_status(status) && is_grpc_status(status)));
    }
}
