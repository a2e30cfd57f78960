//! Tokens and cookies of a shop: a number, and a tag that depends on it and on the seed.
//!
//! The tag distinguishes an expired credential from one that was never issued, without a list of all. It does not
//! protect against an attacker, who can compute it from the seed.

use weir_base::rng::SeededRng;

/// Use of a credential, which is part of its tag: one kind is never accepted as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// Bearer token of a session.
    Token,
    /// Cookie of a session.
    Cookie,
    /// Token against cross-site requests, in a header of its own.
    Csrf,
    /// Cookie of a visitor without a session.
    Visitor,
}

/// Credential as it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Kind.
    pub kind: CredentialKind,
    /// Number of the session, or of the visitor.
    pub number: u64,
    /// Number of replacements before it, 0 for the first.
    pub generation: u32,
}

impl CredentialKind {
    const fn letter(self) -> char {
        match self {
            Self::Token => 't',
            Self::Cookie => 's',
            Self::Csrf => 'x',
            Self::Visitor => 'v',
        }
    }
}

impl Credential {
    /// Text of the credential, e.g. `t17-0-8a31...`: letters, digits and `-`.
    pub fn text(self, seed: u64) -> String {
        let Self { kind, number, generation } = self;
        format!("{}{number}-{generation}-{:016x}", kind.letter(), self.tag(seed))
    }

    /// Credential of this kind in a text, if it is one.
    pub fn read(kind: CredentialKind, text: &str, seed: u64) -> Option<Self> {
        let mut parts = text.strip_prefix(kind.letter())?.splitn(3, '-');
        let (number, generation) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let credential = Self { kind, number, generation };
        (credential.text(seed) == text).then_some(credential)
    }

    fn tag(self, seed: u64) -> u64 {
        let salt = self.number.wrapping_mul(4).wrapping_add(self.kind as u64);
        SeededRng::new(SeededRng::new(seed, salt).bits(), self.generation.into()).bits()
    }
}
