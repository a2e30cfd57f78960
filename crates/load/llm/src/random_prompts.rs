//! Prompts of random words.

use weir_base::rng::SeededRng;

use super::token_count::TokenCount;
use super::word_text::WordText;

/// Stream of random numbers that prompts are made from.
const PROMPT_SALT: u64 = 0x6c6c_6d01;
/// Stream of random numbers that shared prefixes are made from.
const PREFIX_SALT: u64 = 0x6c6c_6d02;

/// Prompts of random words: a function of the seed and the number of the conversation. A word is a token of most
/// tokenizers; the number of tokens that counts is the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomPrompts {
    /// Number of words of a prompt.
    pub input: TokenCount,
    /// Number of turns of a conversation, >= 1.
    pub turns: usize,
    /// Seed.
    pub seed: u64,
}

impl RandomPrompts {
    /// Appends the words of a turn of a conversation.
    pub(crate) fn push_words(&self, words: &WordText, conversation: u64, turn: usize, out: &mut Vec<u8>) {
        let mut rng = stream(self.seed, PROMPT_SALT + ((turn as u64) << 32), conversation);
        let count = self.input.draw(&mut rng);
        words.push_words(count, &mut rng, out);
    }
}

/// Random numbers of one conversation.
pub(crate) fn stream(seed: u64, salt: u64, conversation: u64) -> SeededRng {
    SeededRng::new(SeededRng::new(seed, salt).bits() ^ conversation, salt)
}

/// Appends the words of a prefix that prompts share.
pub(crate) fn push_prefix(words: &WordText, seed: u64, number: u64, count: u64, out: &mut Vec<u8>) {
    words.push_words(count, &mut stream(seed, PREFIX_SALT, number), out);
}
