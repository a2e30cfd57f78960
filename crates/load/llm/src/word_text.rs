//! Long text of random words, of which prompts are pieces.
//!
//! A prompt of 50 KB is copied in some microseconds; drawing each of its words as it is sent would take a hundred, in
//! the time of the requests behind it. The first words of each prompt are drawn for it alone, so that no two begin
//! alike: a server that caches prefixes finds none.

use weir_base::rng::SeededRng;

use super::vocabulary::WORDS;

/// Number of words of the text.
const TEXT_WORDS: usize = 1 << 16;
/// Number of words at the start of a prompt that are drawn for it alone.
const OWN_WORDS: u64 = 16;
/// Stream of random numbers that the text is made from.
const TEXT_SALT: u64 = 0x6c6c_6d06;

/// Text of random words, by seed.
#[derive(Clone, Debug)]
pub(crate) struct WordText {
    /// Words, with a space behind each.
    text: Vec<u8>,
    /// Offset of each word, and of the end.
    starts: Vec<u32>,
    /// Words that it has, one after the other, and the end of each.
    vocabulary: (Vec<u8>, Vec<u32>),
}

impl WordText {
    /// Text of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(&WORDS, seed)
    }

    /// Text of these words, which are not empty.
    pub(crate) fn of(words: &[&str], seed: u64) -> Self {
        let mut rng = SeededRng::new(seed, TEXT_SALT);
        let (mut text, mut starts) = (Vec::new(), vec![0]);
        for _ in 0..TEXT_WORDS {
            text.extend_from_slice(words.get(rng.below(words.len())).map_or(&b""[..], |word| word.as_bytes()));
            text.push(b' ');
            starts.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
        }
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        for word in words {
            all.extend_from_slice(word.as_bytes());
            ends.push(u32::try_from(all.len()).unwrap_or(u32::MAX));
        }
        Self { text, starts, vocabulary: (all, ends) }
    }

    /// Word of the vocabulary.
    fn word(&self, index: usize) -> &[u8] {
        let (all, ends) = &self.vocabulary;
        let start = index.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
        let end = ends.get(index).map_or(0, |end| *end as usize);
        all.get(start..end).unwrap_or_default()
    }

    /// Appends `count` words, with a space between them.
    pub(crate) fn push_words(&self, count: u64, rng: &mut SeededRng, out: &mut Vec<u8>) {
        for _ in 0..count.min(OWN_WORDS) {
            out.extend_from_slice(self.word(rng.below(self.vocabulary.1.len())));
            out.push(b' ');
        }
        let mut left = usize::try_from(count.saturating_sub(OWN_WORDS)).unwrap_or(usize::MAX);
        let mut from = rng.below(TEXT_WORDS);
        while left > 0 {
            let to = (from + left).min(TEXT_WORDS);
            out.extend_from_slice(&self.text[self.starts[from] as usize..self.starts[to] as usize]);
            left -= to - from;
            from = 0;
        }
        if count > 0 {
            out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_piece_has_its_number_of_words_of_the_vocabulary(
            count in prop_oneof![0..50_u64, 60_000..140_000_u64], seed: u64
        ) {
            let known: HashSet<&str> = WORDS.into_iter().collect();
            let mut out = b"before:".to_vec();
            WordText::new(3).push_words(count, &mut SeededRng::new(seed, 1), &mut out);
            let text = String::from_utf8(out).unwrap_or_default();
            let words = text.strip_prefix("before:").unwrap_or_default();
            let found = words.split(' ').filter(|word| known.contains(word)).count() as u64;
            prop_assert_eq!(found, count);
            prop_assert_eq!(words.split(' ').count() as u64, count.max(1));
        }
    }
}
