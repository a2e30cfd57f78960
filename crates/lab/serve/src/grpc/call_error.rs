//! Statuses that calls end with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use prost::Message;
use weir_base::grpc_status::GRPC_OK;

use super::wire::WireStatus;

/// Status other than OK, with its message.
#[derive(Clone, Debug)]
pub(super) struct CallError {
    pub(super) code: u16,
    pub(super) message: String,
    /// `google.rpc.Status` with details, as bytes.
    details: Option<Vec<u8>>,
}

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

pub(super) const INVALID_ARGUMENT: u16 = 3;
pub(super) const DEADLINE_EXCEEDED: u16 = 4;
/// Status of a message that is too long, as in other servers.
pub(super) const RESOURCE_EXHAUSTED: u16 = 8;
pub(super) const UNIMPLEMENTED: u16 = 12;
pub(super) const UNAVAILABLE: u16 = 14;

impl CallError {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_ARGUMENT, message)
    }

    /// Status that a request asks for; none for OK.
    pub(super) fn of(status: &WireStatus) -> Option<Self> {
        let details = (!status.details.is_empty()).then(|| status.encode_to_vec());
        let code = u16::try_from(status.code).ok()?;
        (code != GRPC_OK).then(|| Self { code, message: status.message.clone(), details })
    }

    /// Adds the status to trailers, or to a head.
    pub(super) fn push(&self, fields: &mut HeaderMap) {
        fields.insert(GRPC_STATUS, HeaderValue::from(self.code));
        if !self.message.is_empty()
            && let Ok(value) = HeaderValue::from_str(&percent_encoded(&self.message))
        {
            fields.insert(GRPC_MESSAGE, value);
        }
        if let Some(details) = &self.details
            && let Ok(value) = HeaderValue::from_str(&STANDARD_NO_PAD.encode(details))
        {
            fields.insert(GRPC_DETAILS, value);
        }
    }
}

/// Text of a `grpc-message`.
fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'%';
    text.bytes().fold(String::new(), |mut out, byte| {
        match is_plain(byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}
