//! API keys that requests are sent with.

use std::fmt;

use ring::digest::{SHA256, digest};

use weir_base::key_name::key_name;

/// API key: a secret, and a name that may be printed and stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    name: String,
    /// Name derived from the secret, the same in each process.
    default_name: String,
    secret: String,
}

/// Maximum length of a name before `=`.
const MAX_NAME_CHARS: usize = 32;

impl ApiKey {
    /// Key with a name derived from the secret: its last four characters if it is long, and 32 bits of a hash.
    pub fn new(secret: impl Into<String>) -> Self {
        let secret = secret.into();
        let default_name = key_name(&secret, fingerprint(secret.as_bytes()));
        Self { name: default_name.clone(), default_name, secret }
    }

    /// Key with a given name.
    pub fn named(name: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::new(secret) }
    }

    /// Parses `SECRET`, `NAME=SECRET` or `=SECRET`. A name is a word of at most 32 letters, digits, `_`, `-` and `.`
    /// that begins with a letter. A text with anything else before its first `=`, or only `=` after it, is a secret as
    /// a whole.
    pub fn read(text: &str) -> Self {
        let Some((name, secret)) = text.split_once('=') else { return Self::new(text) };
        let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.len() <= MAX_NAME_CHARS
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let is_padding = secret.chars().all(|c| c == '=');
        match name {
            _ if is_padding => Self::new(text),
            "" => Self::new(secret),
            _ if is_word => Self::named(name, secret),
            _ => Self::new(text),
        }
    }

    /// Key of a service without keys: an empty secret named `none`.
    pub fn none() -> Self {
        Self { name: "none".into(), default_name: "none".into(), secret: String::new() }
    }

    /// Name for output and stores.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name derived from the secret.
    pub fn default_name(&self) -> &str {
        &self.default_name
    }

    /// Whether `name` is its name or its default name.
    pub fn matches(&self, name: &str) -> bool {
        self.name == name || self.default_name == name
    }

    /// Value that `{key}` is filled with.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiKey").field(&self.name).finish()
    }
}

/// First 64 bits of a text's SHA-256; stable, since stores have it.
pub fn fingerprint(text: &[u8]) -> u64 {
    let hash = digest(&SHA256, text);
    hash.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_name_tells_keys_apart_without_the_secret() {
        let long = ApiKey::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6");
        assert!(long.name().starts_with("JYA6-") && long.name().len() == 13, "{}", long.name());
        assert_eq!(long, ApiKey::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6"));
        let short = ApiKey::new("hunter2");
        assert!(short.name().starts_with("key-") && !short.name().contains("er2"), "{}", short.name());
        assert_ne!(short.name(), ApiKey::new("hunter3").name());
        assert!(!format!("{long:?}").contains("NHL1"));
    }

    #[test]
    fn a_key_is_read_with_its_name() {
        let read = |text: &str| {
            let key = ApiKey::read(text);
            (key.name().to_owned(), key.secret().to_owned())
        };
        let own = |secret: &str| (ApiKey::new(secret).name().to_owned(), secret.to_owned());
        assert_eq!(read("alice=s3cret"), ("alice".into(), "s3cret".into()));
        assert_eq!(read("a.b-c_1=x=y=="), ("a.b-c_1".into(), "x=y==".into()));
        for whole in
            ["s3cret", "c2VjcmV0==", "c2VjcmV0=", "1a=b", "a b=c", "a+b=c", &format!("{}=x", "a".repeat(33)), "=", ""]
        {
            assert_eq!(read(whole), own(whole), "{whole}");
        }
        assert_eq!(read("=sv=2020&sig=x"), own("sv=2020&sig=x"));
        let alice = ApiKey::read("alice=s3cret");
        assert!(alice.matches("alice") && alice.matches(ApiKey::new("s3cret").name()) && !alice.matches("s3cret"));
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_hash() {
        assert_eq!(fingerprint(b"abc"), 0xba78_16bf_8f01_cfea);
    }
}
