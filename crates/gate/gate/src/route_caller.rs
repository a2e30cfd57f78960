//! The caller of a request, and its name for output.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use ring::digest::{SHA256, digest};

use weir_base::key_name::key_name;
use weir_call::attempt_log::RejectedCall;
use weir_request::secret_mask::without_secrets;
use weir_request::secret_names::is_secret_name;

/// Maximum length of a value that is shown, in characters.
const MAX_SHOWN_CHARS: usize = 64;

/// Shortest run of letters and digits that may be a credential; those of a UUID are shorter.
const MIN_TOKEN_RUN: usize = 16;

/// Schemes of `Authorization`, in lower case.
const AUTH_SCHEMES: [&str; 6] = ["basic", "bearer", "digest", "hmac", "negotiate", "token"];

/// The caller of a request, as its route identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouteCaller {
    /// Value of the header of this name.
    Header(HeaderName, HeaderValue),
    /// Value of the capture of this name.
    Capture(String, String),
    /// Value of a client certificate, which has no secrets.
    Certificate(String),
    /// Address.
    Address(IpAddr),
}

impl RouteCaller {
    /// Facts for the log about a rejected call of this caller.
    pub(super) fn rejected_call(&self, route: &Arc<str>) -> Box<RejectedCall> {
        Box::new(RejectedCall { route: Arc::clone(route), caller: self.name() })
    }

    /// Name for logs and pages. A value under the name of a secret is named as an API key of `weir send`.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Header(name, value) => shown(name.as_str(), &String::from_utf8_lossy(value.as_bytes())),
            Self::Capture(name, value) => shown(name, value),
            Self::Certificate(value) => shortened(value),
            Self::Address(address @ IpAddr::V4(_)) => address.to_string(),
            // One caller has all addresses of a network.
            Self::Address(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{}/64", std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }
}

fn shown(name: &str, value: &str) -> String {
    let scheme = value.split_once(' ').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let has_scheme = scheme.is_some_and(|scheme| AUTH_SCHEMES.contains(&scheme.as_str()));
    if is_secret_name(name) || has_scheme || is_token(value) {
        return match value.split_once(' ') {
            // The secret without its scheme, so that its name is the same as in other outputs.
            Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => secret_name(secret),
            // Its end is that of a password.
            Some(_) => key_name("", fingerprint(value)),
            None => secret_name(value),
        };
    }
    shortened(&without_secrets(value))
}

/// Whether a value looks like a credential, whatever its name: letters and digits mixed, without a pause.
fn is_token(value: &str) -> bool {
    let mixes = |run: &str| {
        run.len() >= MIN_TOKEN_RUN
            && run.bytes().any(|byte| byte.is_ascii_digit())
            && run.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    value.split(|c: char| !c.is_ascii_alphanumeric()).any(mixes)
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(MAX_SHOWN_CHARS) {
        // The same beginning may be that of several callers.
        Some((end, _)) => format!("{}\u{2026}{:08x}", &value[..end], fingerprint(value) >> 32),
        None => value.to_owned(),
    }
}

fn secret_name(secret: &str) -> String {
    key_name(secret, fingerprint(secret))
}

/// First 64 bits of a text's SHA-256.
fn fingerprint(text: &str) -> u64 {
    digest(&SHA256, text.as_bytes()).as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_callers_apart_and_show_no_secret() {
        let of = |name: &'static str, value: &'static str| {
            RouteCaller::Header(HeaderName::from_static(name), HeaderValue::from_static(value)).name()
        };
        let key = of("x-api-key", "UT4NHL1J796WCHULA1750MXYF9F5JYA6");
        assert!(key.starts_with("JYA6-") && key.len() == 13, "{key}");
        assert_eq!(of("authorization", "Bearer UT4NHL1J796WCHULA1750MXYF9F5JYA6"), key);
        let password = of("authorization", "Basic YWRhOmh1bnRlcjJodW50ZXIyaHVudGVy");
        assert!(password.starts_with("key-") && password.len() == 12, "{password}");
        for name in ["acme", "reports-2026-11-annual-summary", "0b0ae4a6-97b3-4f3c-9d4f-1c2b3a4d5e6f", ""] {
            assert_eq!(of("x-tenant", name), name);
        }
        // A credential under another name.
        assert_eq!(of("x-tenant", "UT4NHL1J796WCHULA1750MXYF9F5JYA6"), key);
        for secret in ["Bearer hunter2", "token abc", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk"] {
            let name = of("x-tenant", secret);
            assert!(name.len() <= 13 && !name.contains("hunter2"), "{name}");
        }
        assert_eq!(
            RouteCaller::Certificate("CN=billing0123456789abcdef".to_owned()).name(),
            "CN=billing0123456789abcdef"
        );
        let long = RouteCaller::Capture("tenant".to_owned(), "a".repeat(100)).name();
        assert!(long.starts_with(&"a".repeat(64)) && long.chars().count() == 73, "{long}");
        let address = |text: &str| text.parse().map(|address| RouteCaller::Address(address).name());
        assert_eq!(address("192.0.2.7"), Ok("192.0.2.7".to_owned()));
        assert_eq!(address("2001:db8:1:2:3::4"), Ok("2001:db8:1:2::/64".to_owned()));
    }
}
