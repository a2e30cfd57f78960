//! What the end of a response means for its call.

use std::borrow::Cow;

use weir_base::grpc_status::GRPC_OK;
use weir_grpc::metadata::message_text;
use weir_http2::connection::ResponseTotals;

use crate::headers::with_headers;

/// Status of HTTP that calls have.
pub(super) const HTTP_OK: u16 = 200;

/// End of a call whose response is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// This status: of gRPC, or of HTTP if it is one of failures.
    Status(u16),
    /// No status of gRPC, and this one of HTTP.
    Missing(u16),
}

impl CallEnd {
    /// End of a response; `has_stopped`: whether it was ended on purpose.
    pub(crate) fn of(totals: &ResponseTotals, has_stopped: bool) -> Self {
        match totals.grpc_status {
            // A proxy's failure, even with fields of gRPC, is what HTTP says.
            Some(code) if totals.status == HTTP_OK => Self::Status(code),
            None if has_stopped => Self::Status(GRPC_OK),
            _ if totals.status >= 400 => Self::Status(totals.status),
            _ => Self::Missing(totals.status),
        }
    }

    /// Why a response without a status of gRPC is a failure.
    pub(crate) fn missing_text(status: u16) -> Cow<'static, str> {
        match status {
            HTTP_OK => Cow::Borrowed("the response has no grpc-status: neither trailers nor a head with it"),
            status => Cow::Owned(format!("the response has no grpc-status, and the HTTP status {status}")),
        }
    }

    /// Why a call has a status of HTTP.
    pub(crate) fn http_text(status: u16) -> &'static str {
        match status {
            415 => "a response of HTTP: it does not take application/grpc; is there a server of gRPC?",
            426 => "a response of HTTP: it does not speak HTTP/2; is there a server of gRPC?",
            404 => "a response of HTTP, not of gRPC: is there a server of gRPC behind this path?",
            _ => "a response of HTTP, not of gRPC",
        }
    }

    /// Message of a status, from the text of trailers or of a head.
    pub(crate) fn message(fields: &[u8]) -> String {
        with_fields(fields, |value| message_text(value).into_owned()).unwrap_or_default()
    }
}

/// Value of `grpc-message` in a text of fields, which may have no first line.
fn with_fields<T>(fields: &[u8], take: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let is_head = fields.starts_with(b"HTTP/");
    let head = if is_head { fields.to_vec() } else { [b"HTTP/2 200\r\n", fields].concat() };
    with_headers(&head, |fields| {
        fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("grpc-message")).map(|(_, value)| take(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(status: u16, grpc_status: Option<u16>, has_stopped: bool) -> CallEnd {
        CallEnd::of(&ResponseTotals { status, grpc_status, body: 0, wire: 0, body_sent: 0 }, has_stopped)
    }

    #[test]
    fn trailers_decide_and_a_failure_of_http_stays_one() {
        assert_eq!(end(200, Some(0), false), CallEnd::Status(0));
        assert_eq!(end(200, Some(14), true), CallEnd::Status(14));
        assert_eq!(end(200, None, false), CallEnd::Missing(200));
        assert_eq!(end(200, None, true), CallEnd::Status(0));
        assert_eq!(end(503, None, false), CallEnd::Status(503));
        assert_eq!(end(503, Some(0), false), CallEnd::Status(503));
        assert_eq!(end(302, Some(0), false), CallEnd::Missing(302));
    }

    #[test]
    fn the_message_is_that_of_trailers_or_of_a_head() {
        assert_eq!(CallEnd::message(b"grpc-status: 5\r\ngrpc-message: no %E2%98%BA\r\n\r\n"), "no ☺");
        assert_eq!(CallEnd::message(b"HTTP/2 200\r\ngrpc-status: 5\r\nGrpc-Message: a b\r\n\r\n"), "a b");
        assert_eq!(CallEnd::message(b"grpc-status: 5\r\n\r\n"), "");
        assert_eq!(CallEnd::message(b""), "");
    }
}
