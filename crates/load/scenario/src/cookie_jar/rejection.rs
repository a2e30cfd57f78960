//! Reasons why a cookie is ignored.

use std::fmt;

/// Reason why the cookie of a Set-Cookie field is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CookieRejection {
    /// No `=`, or nothing before it.
    NoName,
    /// Control character in the field, or a tab in name or value.
    ControlCharacter,
    /// Name and value have more than 4,096 bytes.
    TooLong,
    /// Domain is a name without a dot, or the response is from an IP address.
    PublicSuffix,
    /// Domain that the response's host does not belong to.
    OtherDomain,
    /// Secure cookie in a response in plain text.
    SecureOverHttp,
    /// Cookie in a response in plain text that would replace or hide a secure one.
    ReplacesSecure,
    /// Name begins with `__Secure-` or `__Host-`, and the attributes are not as this demands.
    Prefix,
}

/// `cookie ignored: Secure in a response without TLS`.
impl fmt::Display for CookieRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self {
            Self::NoName => "no name",
            Self::ControlCharacter => "control character",
            Self::TooLong => "more than 4,096 bytes",
            Self::PublicSuffix => "Domain is a single label or not the response's IP address",
            Self::OtherDomain => "Domain does not include the host of the response",
            Self::SecureOverHttp => "Secure in a response without TLS",
            Self::ReplacesSecure => "a response without TLS cannot replace a secure cookie",
            Self::Prefix => {
                "name begins with __Secure- or __Host-, and Secure, Path=/ or the domain is not as required"
            }
        };
        write!(f, "cookie ignored: {reason}")
    }
}

impl std::error::Error for CookieRejection {}
