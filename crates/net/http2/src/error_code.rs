//! Error codes of streams and connections (RFC 9113 section 7).

use std::fmt;

/// An error code, as sent in RST_STREAM and GOAWAY. Codes that have no name are kept as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Graceful end.
    pub const NO_ERROR: Self = Self(0x0);
    /// Violation of the protocol that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// Fault inside the sender.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// Violation of flow control.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// Settings that were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// Frame on a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// Frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// Request that was not processed at all.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// Stream that is no longer needed.
    pub const CANCEL: Self = Self(0x8);
    /// Field block that does not decode; the tables of both sides differ from then on.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// Tunnel that broke.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// Excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// Properties of the transport that are too weak.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// Request that needs HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// Name as in RFC 9113; `None` for codes that it does not define.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NO_ERROR => "NO_ERROR",
            Self::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
            Self::STREAM_CLOSED => "STREAM_CLOSED",
            Self::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
            Self::REFUSED_STREAM => "REFUSED_STREAM",
            Self::CANCEL => "CANCEL",
            Self::COMPRESSION_ERROR => "COMPRESSION_ERROR",
            Self::CONNECT_ERROR => "CONNECT_ERROR",
            Self::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
            Self::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
            Self::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_prints_its_name_or_its_number() {
        assert_eq!(ErrorCode(7).to_string(), "REFUSED_STREAM");
        assert_eq!(ErrorCode(0xd).to_string(), "HTTP_1_1_REQUIRED");
        assert_eq!(ErrorCode(0xe).to_string(), "error code 0xe");
    }
}
