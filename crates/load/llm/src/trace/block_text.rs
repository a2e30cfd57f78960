//! Text of the prompts of a trace: one word per token, equal for equal blocks.

use super::trace_record::TracePrompt;
use super::trace_session::TraceTurn;
use crate::random_prompts::stream;
use crate::word_text::WordText;

/// Stream of random numbers that blocks are made from.
const BLOCK_SALT: u64 = 0x6c6c_6d07;
/// Stream of random numbers that pieces are made from.
const PIECE_SALT: u64 = 0x6c6c_6d0a;
/// Stream of random numbers that text in no block is made from.
const OWN_SALT: u64 = 0x6c6c_6d08;

/// Text of the prompts of a trace, by seed: one word per token, and equal text for equal blocks.
///
/// The words are those that a tokenizer has a token for. Without one they have three letters, and with the space between
/// them four bytes.
#[derive(Clone, Debug)]
pub struct BlockText {
    words: WordText,
    seed: u64,
}

impl BlockText {
    /// Text of these words, which are not empty.
    pub fn new(words: &[&str], seed: u64) -> Self {
        Self { words: WordText::of(words, seed), seed }
    }

    /// Text of words of three letters.
    pub fn of_short_words(seed: u64) -> Self {
        Self::new(&Self::short_words(), seed)
    }

    /// Words of three letters.
    pub fn short_words() -> Vec<&'static str> {
        crate::vocabulary::WORDS.into_iter().filter(|word| word.len() == 3).collect()
    }

    /// All words.
    pub fn all_words() -> &'static [&'static str] {
        &crate::vocabulary::WORDS
    }

    /// Appends the prompt of a request, as content of a JSON string.
    pub fn push_prompt(&self, turn: &TraceTurn, out: &mut Vec<u8>) {
        let (all, own) = (turn.input_tokens, (OWN_SALT, turn.number, u64::MAX));
        match &turn.prompt {
            TracePrompt::Text(text) => out.extend_from_slice(text),
            TracePrompt::Blocks { ids, tokens } => {
                let blocks = ids.iter().map(|id| (BLOCK_SALT, *id, *tokens));
                self.push_pieces(all, blocks.chain([own]), out);
            }
            TracePrompt::Pieces(pieces) => {
                let pieces = pieces.iter().map(|piece| (PIECE_SALT, piece.name, piece.tokens));
                self.push_pieces(all, pieces.chain([own]), out);
            }
        }
    }

    /// Appends pieces up to a number of tokens: each has a stream of random numbers, its name in that, and its tokens.
    fn push_pieces(&self, all: u64, pieces: impl Iterator<Item = (u64, u64, u64)>, out: &mut Vec<u8>) {
        let mut left = all;
        for (salt, name, tokens) in pieces {
            let count = tokens.min(left);
            if count == 0 {
                continue;
            }
            if left < all {
                out.push(b' ');
            }
            self.words.push_words(count, &mut stream(self.seed, salt, name), out);
            left -= count;
        }
    }
}
