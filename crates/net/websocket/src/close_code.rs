//! Reasons of a close (RFC 6455, 7.4).

use std::fmt;

/// Code of a close frame; [`Self::ABSENT`] and [`Self::ABNORMAL`] stand for frames without one and for no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// The purpose is fulfilled.
    pub const NORMAL: Self = Self(1000);
    /// The endpoint goes away: a server stops, a page is left.
    pub const GOING_AWAY: Self = Self(1001);
    /// A violation of the protocol.
    pub const PROTOCOL: Self = Self(1002);
    /// A close frame without a code; never sent.
    pub const ABSENT: Self = Self(1005);
    /// An end without a close frame; never sent.
    pub const ABNORMAL: Self = Self(1006);
    /// Text that is not UTF-8, or content that is not of its type.
    pub const INVALID_DATA: Self = Self(1007);
    /// A message against the policy of the receiver.
    pub const POLICY: Self = Self(1008);
    /// A message above the limit of the receiver.
    pub const TOO_BIG: Self = Self(1009);
    /// An error of the server.
    pub const INTERNAL: Self = Self(1011);

    /// Whether a close frame may have it.
    pub const fn is_sendable(self) -> bool {
        matches!(self.0, 1000..=1003 | 1007..=1014 | 3000..=4999)
    }

    /// Whether a service that closes with it has done what it should: it is done, goes away, or does not say why.
    pub const fn is_regular(self) -> bool {
        matches!(self.0, 1000 | 1001 | 1005)
    }

    /// Meaning of a registered code.
    pub const fn meaning(self) -> Option<&'static str> {
        Some(match self.0 {
            1000 => "normal closure",
            1001 => "going away",
            1002 => "protocol error",
            1003 => "unsupported data",
            1005 => "no code",
            1006 => "no close frame",
            1007 => "invalid data",
            1008 => "policy violation",
            1009 => "message too big",
            1010 => "extension missing",
            1011 => "internal error",
            1012 => "service restart",
            1013 => "try again later",
            1014 => "bad gateway",
            _ => return None,
        })
    }
}

/// The code, with the meaning of a registered one.
impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meaning() {
            Some(meaning) => write!(f, "{} {meaning}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}
