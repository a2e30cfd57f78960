//! Reason of a failed renewal.

use std::fmt;

/// Reason of a failed renewal.
#[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "nothing is renewed"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RenewalError {
    /// Temporary: a later request may succeed.
    Unreachable(String),
    /// Probably permanent: missing rights or a wrong password.
    Rejected(String),
}

impl fmt::Display for RenewalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unreachable(why) | Self::Rejected(why)) = self;
        f.write_str(why)
    }
}
