//! PURE. Kinds of failures without a valid response: one set of names for the load generator, the client, calls, the
//! gateway and the job sender.
//!
//! In `base`, since the module that produces a kind (`http`, `load`), those that decide on it (`call`, `delivery`) and
//! the one that counts it (`measure`) have only this module in common. The load generator and the client produce a part
//! of the kinds each; a narrower type for each of them would need the same names again.

use serde::{Deserialize, Serialize};

/// Kinds of failures other than a status.
///
/// The load generator produces those from [`Connect`](Self::Connect) to [`Body`](Self::Body) and, of streams,
/// [`BrokenOff`](Self::BrokenOff) and [`Stalled`](Self::Stalled); the client [`Dns`](Self::Dns) to
/// [`Protocol`](Self::Protocol) and [`Request`](Self::Request); an attempt of a call all but those of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// DNS resolution failed.
    Dns,
    /// No connection: connection refused, host unreachable, no local port. The request was not sent.
    Connect,
    /// TLS handshake failed; the request was not sent. The load generator, which never retries, also counts an invalid
    /// TLS record of an open connection here; for the client that is [`Protocol`](Self::Protocol).
    Tls,
    /// No complete response within the timeout of the request or attempt.
    Timeout,
    /// Connection closed before the end of the response.
    Closed,
    /// Connection or stream reset.
    Reset,
    /// Received bytes are not HTTP, or the response's head is too large.
    Protocol,
    /// Response body does not meet the success rule: not JSON, not valid by the schema, or too long to validate; in
    /// the load generator an event of a language model that is not JSON or reports an error.
    Body,
    /// Response lacks a header of the success rule.
    Header,
    /// Invalid request: its body broke off or differs from its length, or its target, host or length cannot be sent.
    /// The only kind that the caller causes.
    Request,
    /// Streamed response that broke off: its connection ended early, or its framing is invalid.
    BrokenOff,
    /// Streamed response without an event for longer than the stall timeout.
    Stalled,
}

/// Side that caused a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureSide {
    /// The upstream, or the network: counts against the host, the breaker and the limit.
    Upstream,
    /// The caller: not evidence about the upstream, and a retry would fail as well.
    Caller,
}

impl FailureKind {
    /// All kinds; `ALL[kind as usize]` is `kind`.
    pub const ALL: [Self; 12] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Timeout,
        Self::Closed,
        Self::Reset,
        Self::Protocol,
        Self::Body,
        Self::Header,
        Self::Request,
        Self::BrokenOff,
        Self::Stalled,
    ];

    /// Side that causes failures of this kind.
    pub const fn side(self) -> FailureSide {
        match self {
            Self::Request => FailureSide::Caller,
            Self::Dns
            | Self::Connect
            | Self::Tls
            | Self::Timeout
            | Self::Closed
            | Self::Reset
            | Self::Protocol
            | Self::Body
            | Self::Header
            | Self::BrokenOff
            | Self::Stalled => FailureSide::Upstream,
        }
    }

    /// Whether only streamed responses fail this way.
    pub const fn is_of_streams(self) -> bool {
        matches!(self, Self::BrokenOff | Self::Stalled)
    }

    /// Kinds that can be configured as retryable.
    pub fn retryable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| kind.side() == FailureSide::Upstream && !kind.is_of_streams())
    }

    /// Name in configurations, reports, JSON, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Protocol => "protocol",
            Self::Body => "body",
            Self::Header => "header",
            Self::Request => "request",
            Self::BrokenOff => "broken_off",
            Self::Stalled => "stalled",
        }
    }

    /// Whether the upstream has certainly not received the request, so that any method may be retried. Of kinds that
    /// the client produced; see [`Tls`](Self::Tls).
    pub const fn is_unsent(self) -> bool {
        matches!(self, Self::Dns | Self::Connect | Self::Tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_index_of_itself() {
        for (index, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{}", kind.name());
        }
    }
}
