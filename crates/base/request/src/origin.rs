//! Origins, to which credentials belong: scheme, host and port.
//!
//! A credential is sent to the origin for which it was given, and to no other: another port of the host may be another
//! service, and plain text is for each one on the way. The one exception is the upgrade that services redirect to: from
//! http to https of the same host, both on their default ports (curl since 7.83, CVE-2022-27774; Fetch, "origin").

/// Scheme, host and port of a URL.
#[derive(Clone, Copy, Debug)]
pub struct CredentialOrigin<'h> {
    /// Whether the scheme is https.
    pub is_tls: bool,
    /// Host in any case; an IPv6 address with or without brackets.
    pub host: &'h str,
    /// Port.
    pub port: u16,
}

impl CredentialOrigin<'_> {
    /// Whether credentials that were given for this origin may be sent to the other one.
    pub fn shares_credentials_with(&self, other: &Self) -> bool {
        let is_same = (self.is_tls, self.port) == (other.is_tls, other.port);
        let is_upgrade = (self.is_tls, self.port, other.is_tls, other.port) == (false, 80, true, 443);
        (is_same || is_upgrade) && bare(self.host).eq_ignore_ascii_case(bare(other.host))
    }
}

/// Host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin(is_tls: bool, host: &str, port: u16) -> CredentialOrigin<'_> {
        CredentialOrigin { is_tls, host, port }
    }

    #[test]
    fn credentials_stay_at_their_origin_and_go_from_http_to_https_of_default_ports() {
        for (from, to, goes) in [
            ((false, "a", 80), (false, "A", 80), true),
            ((false, "a", 80), (true, "a", 443), true),
            ((true, "a", 443), (false, "a", 80), false),
            ((false, "a", 8080), (true, "a", 8443), false),
            ((false, "a", 80), (true, "a", 8443), false),
            ((false, "a", 80), (false, "a", 81), false),
            ((false, "a", 80), (false, "b.a", 80), false),
            ((false, "a", 80), (false, "a.", 80), false),
            ((true, "[::1]", 443), (true, "::1", 443), true),
            ((true, "a", 80), (true, "a", 443), false),
        ] {
            let (from, to) = (origin(from.0, from.1, from.2), origin(to.0, to.1, to.2));
            assert_eq!(from.shares_credentials_with(&to), goes, "{from:?} {to:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_to_is_the_same_host_and_never_less_safe(
            (a_tls, b_tls) in any::<(bool, bool)>(), (a_host, b_host) in ("[ab]", "[abA]"),
            (a_port, b_port) in (prop::sample::select(vec![80, 443, 81]), prop::sample::select(vec![80, 443, 81]))
        ) {
            let (a, b) = (origin(a_tls, &a_host, a_port), origin(b_tls, &b_host, b_port));
            prop_assert!(a.shares_credentials_with(&a));
            if a.shares_credentials_with(&b) {
                prop_assert_eq!(a_host.to_lowercase(), b_host.to_lowercase());
                prop_assert!(b_tls || !a_tls);
                prop_assert!(a_port == b_port || (!a_tls && b_tls && (a_port, b_port) == (80, 443)));
            }
        }
    }
}
