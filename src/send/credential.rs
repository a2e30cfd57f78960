//! The keys that requests are sent with.

use std::fmt;

use ring::digest::{SHA256, digest};

/// One key of a service: what is sent, and a name that may be shown and stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    name: String,
    secret: String,
}

/// Of a secret of at least so many characters the last four are shown.
const LONG: usize = 16;

impl Credential {
    /// Its name is the same wherever the secret is: the last four characters, if they give little away, and 32 bits of a
    /// hash.
    pub fn new(secret: impl Into<String>) -> Self {
        let secret = secret.into();
        let hash = fingerprint(secret.as_bytes());
        let last = secret.char_indices().rev().nth(3).map_or("", |(at, _)| &secret[at..]);
        let plain = secret.len() >= LONG && last.chars().all(|c| c.is_ascii_alphanumeric());
        let begin = if plain { last } else { "key" };
        Self { name: format!("{begin}-{:08x}", hash >> 32), secret }
    }

    /// For a service that wants no key.
    pub fn none() -> Self {
        Self { name: "none".into(), secret: String::new() }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is sent.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credential").field(&self.name).finish()
    }
}

/// The first 64 bits of a text's SHA-256: the same in every version.
pub fn fingerprint(text: &[u8]) -> u64 {
    let hash = digest(&SHA256, text);
    hash.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_keys_apart_and_keeps_the_secret() {
        let long = Credential::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6");
        assert!(long.name().starts_with("JYA6-") && long.name().len() == 13, "{}", long.name());
        assert_eq!(long, Credential::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6"));
        let short = Credential::new("hunter2");
        assert!(short.name().starts_with("key-") && !short.name().contains("er2"), "{}", short.name());
        assert_ne!(short.name(), Credential::new("hunter3").name());
        assert!(!format!("{long:?}").contains("NHL1"));
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_hash() {
        assert_eq!(fingerprint(b"abc"), 0xba78_16bf_8f01_cfea);
    }
}
