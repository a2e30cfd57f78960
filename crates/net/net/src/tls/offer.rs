//! Versions and cipher suites of TLS that a client offers. PURE.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};
use serde::{Deserialize, Serialize};

use super::TlsError;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

impl TlsVersion {
    fn protocol(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &version::TLS12,
            Self::Tls13 => &version::TLS13,
        }
    }
}

/// Versions and cipher suites that a client offers; all that there are by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOffer {
    /// Version that is offered alone.
    pub only: Option<TlsVersion>,
    /// Cipher suites by their registered names; all if empty. Those of a version that has none here are all offered, as
    /// in Go, whose lists are those of TLS 1.2.
    pub suites: Vec<String>,
}

/// What a client offers, as rustls takes it.
pub(super) struct OfferedTls {
    pub(super) provider: CryptoProvider,
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
}

impl TlsOffer {
    /// Whether it is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that all suites are known, and that there is one for the version.
    ///
    /// # Errors
    /// See [`TlsError::Suite`].
    pub fn check(&self) -> Result<(), TlsError> {
        self.offered().map(drop)
    }

    pub(super) fn offered(&self) -> Result<OfferedTls, TlsError> {
        let mut provider = ring::default_provider();
        let all = &provider.cipher_suites;
        if let Some(unknown) = self.suites.iter().find(|name| !all.iter().any(|suite| is_named(suite, name))) {
            return Err(TlsError::Suite(unknown.clone(), known_names(all)));
        }
        let is_listed = |suite: &SupportedCipherSuite| self.suites.iter().any(|name| is_named(suite, name));
        let version_of = |suite: &SupportedCipherSuite| suite.version().version;
        let listed: Vec<_> = all.iter().filter(|suite| is_listed(suite)).map(version_of).collect();
        let is_offered = |suite: &SupportedCipherSuite| is_listed(suite) || !listed.contains(&version_of(suite));
        provider.cipher_suites = all.iter().copied().filter(is_offered).collect();
        let versions = [TlsVersion::Tls13, TlsVersion::Tls12].into_iter();
        let versions = versions.filter(|version| self.only.is_none_or(|only| only == *version));
        Ok(OfferedTls { provider, versions: versions.map(TlsVersion::protocol).collect() })
    }
}

/// Whether a suite has this name: its registered one, or that of Go without the hash of ChaCha20.
fn is_named(suite: &SupportedCipherSuite, name: &str) -> bool {
    let own = registered_name(suite);
    own == name || own.strip_suffix("_POLY1305_SHA256").is_some_and(|rest| name == format!("{rest}_POLY1305"))
}

/// Name of a suite as IANA has it.
fn registered_name(suite: &SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}"),
        None => name,
    }
}

fn known_names(suites: &[SupportedCipherSuite]) -> String {
    suites.iter().map(registered_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AES_128: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
    const CHACHA: &str = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305";
    const AES_256_OF_13: &str = "TLS_AES_256_GCM_SHA384";

    fn offered(only: Option<TlsVersion>, suites: &[&str]) -> (Vec<String>, usize) {
        let offer = TlsOffer { only, suites: suites.iter().map(|&name| name.to_owned()).collect() };
        let OfferedTls { provider, versions } = offer.offered().unwrap();
        (provider.cipher_suites.iter().map(registered_name).collect(), versions.len())
    }

    #[test]
    fn a_list_is_one_of_its_versions_and_leaves_the_others() {
        let (all, versions) = offered(None, &[]);
        assert_eq!((all.len(), versions), (9, 2));
        let (some, _) = offered(None, &[AES_128, CHACHA]);
        let of_12: Vec<_> = some.iter().filter(|name| name.contains("ECDHE")).collect();
        assert_eq!(of_12, [AES_128, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]);
        assert_eq!(some.len(), 5, "{some:?}");
        let (some, _) = offered(None, &[AES_256_OF_13]);
        assert_eq!((some.contains(&AES_256_OF_13.to_owned()), some.len()), (true, 7));
        let (_, versions) = offered(Some(TlsVersion::Tls12), &[AES_256_OF_13]);
        assert_eq!(versions, 1);
    }

    #[test]
    fn names_that_are_not_known_are_told_with_those_that_are() {
        let offer = TlsOffer { only: None, suites: vec!["TLS_RSA_WITH_RC4_128_SHA".to_owned()] };
        let why = offer.check().unwrap_err().to_string();
        assert!(why.starts_with("no cipher suite 'TLS_RSA_WITH_RC4_128_SHA'; choose "), "{why}");
        assert!(why.contains(AES_128) && why.contains(AES_256_OF_13), "{why}");
    }
}
