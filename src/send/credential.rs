//! The keys that requests are sent with.

use std::fmt;

use ring::digest::{SHA256, digest};

/// One key of a service: what is sent, and a name that may be shown and stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    name: String,
    /// What it is called if nobody gives it a name; the same wherever the secret is.
    default_name: String,
    secret: String,
}

/// Of a secret of at least so many characters the last four are shown.
const MIN_SHOWN_SECRET_CHARS: usize = 16;
/// Longer words before a `=` are no names.
const MAX_NAME_CHARS: usize = 32;

impl ApiKey {
    /// Its name is the same wherever the secret is: the last four characters, if they give little away, and 32 bits of a
    /// hash.
    pub fn new(secret: impl Into<String>) -> Self {
        let secret = secret.into();
        let hash = fingerprint(secret.as_bytes());
        let last = secret.char_indices().rev().nth(3).map_or("", |(at, _)| &secret[at..]);
        let plain = secret.len() >= MIN_SHOWN_SECRET_CHARS && last.chars().all(|c| c.is_ascii_alphanumeric());
        let begin = if plain { last } else { "key" };
        let default_name = format!("{begin}-{:08x}", hash >> 32);
        Self { name: default_name.clone(), default_name, secret }
    }

    /// With a name that somebody chose.
    pub fn named(name: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::new(secret) }
    }

    /// Reads `SECRET` or `NAME=SECRET`. A name is a word of letters, digits, `_`, `-` and `.` that begins with a letter and
    /// has at most 32 of them; what has another thing before its first `=`, or nothing but `=` after it, is a secret as a
    /// whole. After a `=` at the very beginning comes a secret, whatever it is like.
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

    /// For a service that wants no key.
    pub fn none() -> Self {
        Self { name: "none".into(), default_name: "none".into(), secret: String::new() }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is called if nobody gives it a name.
    pub fn default_name(&self) -> &str {
        &self.default_name
    }

    /// Whether this means it: its name, or what it would be called without one.
    pub fn matches(&self, name: &str) -> bool {
        self.name == name || self.default_name == name
    }

    /// What is sent.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for ApiKey {
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
        let long = ApiKey::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6");
        assert!(long.name().starts_with("JYA6-") && long.name().len() == 13, "{}", long.name());
        assert_eq!(long, ApiKey::new("UT4NHL1J796WCHULA1750MXYF9F5JYA6"));
        let short = ApiKey::new("hunter2");
        assert!(short.name().starts_with("key-") && !short.name().contains("er2"), "{}", short.name());
        assert_ne!(short.name(), ApiKey::new("hunter3").name());
        assert!(!format!("{long:?}").contains("NHL1"));
    }

    #[test]
    fn a_key_may_bring_its_name() {
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
