//! Options that have an effect in a load, and why others have none.

use weir_hurl::OptionName;

/// Whether an option has an effect in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionSupport {
    Supported,
    Unsupported(Unsupported),
}

/// Reason why an option has no effect in a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsupported {
    /// A way of authentication without which the requests would be rejected.
    Authentication,
    /// Connections are made for the whole load and not for a step.
    Connection,
    /// Logs and files of a single run.
    Log,
    /// Other versions of HTTP.
    Version,
}

impl OptionSupport {
    pub(super) fn of(name: OptionName) -> Self {
        use OptionName as Name;
        match name {
            Name::Compressed
            | Name::Delay
            | Name::Digest
            | Name::Header
            | Name::Http11
            | Name::Location
            | Name::LocationTrusted
            | Name::MaxRedirs
            | Name::MaxTime
            | Name::NoHeader
            | Name::PathAsIs
            | Name::Repeat
            | Name::Retry
            | Name::RetryInterval
            | Name::Skip
            | Name::User
            | Name::Variable => Self::Supported,
            Name::AwsSigV4 | Name::Negotiate | Name::Netrc | Name::NetrcFile | Name::NetrcOptional | Name::Ntlm => {
                Self::Unsupported(Unsupported::Authentication)
            }
            Name::CaCert
            | Name::Cert
            | Name::ConnectTimeout
            | Name::ConnectTo
            | Name::Insecure
            | Name::Ipv4
            | Name::Ipv6
            | Name::Key
            | Name::LimitRate
            | Name::NoProxy
            | Name::PinnedPubKey
            | Name::Proxy
            | Name::Resolve
            | Name::TlsMax
            | Name::TlsMin
            | Name::UnixSocket => Self::Unsupported(Unsupported::Connection),
            Name::FailWithBody
            | Name::NoJsonPathCoercion
            | Name::Output
            | Name::Verbose
            | Name::Verbosity
            | Name::VeryVerbose => Self::Unsupported(Unsupported::Log),
            Name::Http10 | Name::Http2 | Name::Http2PriorKnowledge | Name::Http3 => {
                Self::Unsupported(Unsupported::Version)
            }
        }
    }
}
