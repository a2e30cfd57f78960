//! Hash of names that all gateways of a cluster share.

use ring::digest;

/// The first 64 bits of SHA-256 of these parts: the same at all gateways, and a second name with a given hash cannot be
/// chosen.
pub(super) fn cluster_hash(parts: &[&[u8]]) -> u64 {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        // Lengths make different lists of parts different bytes.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::cluster_hash;

    #[test]
    fn hashes_are_the_same_everywhere() {
        // The same in all versions: it is part of the protocol between gateways.
        assert_eq!(cluster_hash(&[]), 0xe3b0_c442_98fc_1c14);
        assert_ne!(cluster_hash(&[b"ab", b"c"]), cluster_hash(&[b"a", b"bc"]));
        assert_ne!(cluster_hash(&[b"a"]), cluster_hash(&[b"a", b""]));
    }
}
