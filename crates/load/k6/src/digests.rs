//! Digests, and those with a key (HMAC).

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

/// Kind of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Sha512To224,
    Sha512To256,
}

impl HashKind {
    /// Kind of a name as k6 has it.
    ///
    /// # Errors
    /// One line with the names.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        Ok(match name {
            "md5" => Self::Md5,
            "sha1" => Self::Sha1,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            "sha512_224" => Self::Sha512To224,
            "sha512_256" => Self::Sha512To256,
            "md4" | "ripemd160" => return Err(format!("the hash algorithm '{name}' is not supported; use sha256")),
            _ => {
                return Err(format!(
                    "unknown hash algorithm '{name}'; choose md5, sha1, sha256, sha384, sha512, sha512_224 or sha512_256"
                ));
            }
        })
    }

    /// Length of a block, in bytes.
    fn block(self) -> usize {
        match self {
            Self::Md5 | Self::Sha1 | Self::Sha256 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512To224 | Self::Sha512To256 => 128,
        }
    }

    /// Digest of parts, one after the other.
    pub(crate) fn digest(self, parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Md5 => digest_of::<Md5>(parts),
            Self::Sha1 => digest_of::<Sha1>(parts),
            Self::Sha256 => digest_of::<Sha256>(parts),
            Self::Sha384 => digest_of::<Sha384>(parts),
            Self::Sha512 => digest_of::<Sha512>(parts),
            Self::Sha512To224 => digest_of::<Sha512_224>(parts),
            Self::Sha512To256 => digest_of::<Sha512_256>(parts),
        }
    }

    /// HMAC (RFC 2104) of an input.
    pub(crate) fn keyed(self, key: &[u8], input: &[u8]) -> Vec<u8> {
        let mut block = if key.len() > self.block() { self.digest(&[key]) } else { key.to_vec() };
        block.resize(self.block(), 0);
        let padded = |pad: u8| block.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
        let inner = self.digest(&[&padded(0x36), input]);
        self.digest(&[&padded(0x5c), &inner])
    }
}

fn digest_of<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
    let mut digest = D::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keyed_digests_are_those_of_another_library(
            key in proptest::collection::vec(any::<u8>(), 0..200),
            input in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            use ring::hmac;
            for (kind, other) in [
                (HashKind::Sha1, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
                (HashKind::Sha256, hmac::HMAC_SHA256),
                (HashKind::Sha384, hmac::HMAC_SHA384),
                (HashKind::Sha512, hmac::HMAC_SHA512),
            ] {
                let tag = hmac::sign(&hmac::Key::new(other, &key), &input);
                prop_assert_eq!(kind.keyed(&key, &input), tag.as_ref());
            }
        }
    }
}
