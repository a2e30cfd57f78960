//! Blocks of prompts that have been seen, as a prefix cache has them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;

use weir_machine::lock::lock;

/// Maximum number of blocks that are kept; further ones are new each time.
const MAX_BLOCKS: usize = 4_000_000;
/// Bytes of a token.
pub(super) const TOKEN_BYTES: usize = 4;

/// Blocks of prompts that have been seen. A block is one with all that is before it, so that blocks in common are a
/// prefix.
#[derive(Debug)]
pub(super) struct SeenBlocks {
    block_bytes: usize,
    hashes: Mutex<HashSet<u64>>,
}

/// Blocks of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PromptBlocks {
    /// Whole blocks.
    pub(super) whole: u64,
    /// Of these, the first ones that earlier prompts have as well.
    pub(super) seen: u64,
}

impl SeenBlocks {
    /// No blocks yet, of this number of tokens.
    pub(super) fn new(block_tokens: u64) -> Self {
        let tokens = usize::try_from(block_tokens.max(1)).unwrap_or(usize::MAX);
        Self { block_bytes: tokens.saturating_mul(TOKEN_BYTES), hashes: Mutex::default() }
    }

    /// Blocks of the text of a prompt, which have been seen from now on.
    pub(super) fn take(&self, text: &[u8]) -> PromptBlocks {
        let mut before = 0;
        let chained: Vec<u64> = text
            .chunks_exact(self.block_bytes)
            .map(|block| {
                let mut hasher = DefaultHasher::new();
                hasher.write_u64(before);
                hasher.write(block);
                before = hasher.finish();
                before
            })
            .collect();
        let mut hashes = lock(&self.hashes);
        let seen = chained.iter().take_while(|hash| hashes.contains(hash)).count();
        let room = MAX_BLOCKS.saturating_sub(hashes.len());
        hashes.extend(chained.iter().skip(seen).take(room));
        PromptBlocks { whole: chained.len() as u64, seen: seen as u64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Oracle: all prefixes of whole blocks that earlier texts have.
        #[test]
        fn blocks_are_seen_with_all_that_is_before_them(
            texts in prop::collection::vec("[ab]{0,20}", 0..12), tokens in 1..3_u64
        ) {
            let (seen, bytes) = (SeenBlocks::new(tokens), TOKEN_BYTES * usize::try_from(tokens).unwrap_or(1));
            for (index, text) in texts.iter().enumerate() {
                let whole = text.len() / bytes;
                let has = |count: &usize| texts[..index].iter().any(|other| other.starts_with(&text[..count * bytes]));
                let expected = (1..=whole).take_while(has).count();
                let found = seen.take(text.as_bytes());
                prop_assert_eq!(found, PromptBlocks { whole: whole as u64, seen: expected as u64 });
            }
        }
    }
}
