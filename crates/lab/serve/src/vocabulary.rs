//! Seeded words for texts that services make up.

use weir_base::rng::SeededRng;

/// Words of made-up texts; some are longer in bytes than in characters.
pub const WORDS: [&str; 64] = [
    "water", "river", "weir", "bank", "flow", "stone", "bridge", "level", "gauge", "flood", "spring", "summer",
    "winter", "gate", "channel", "stream", "basin", "mill", "wheel", "meadow", "reed", "heron", "trout", "ferry",
    "anchor", "sand", "clay", "gravel", "cloud", "rain", "storm", "wind", "morning", "evening", "light", "shadow",
    "green", "silver", "slow", "quick", "deep", "shallow", "wide", "narrow", "over", "under", "along", "across", "and",
    "then", "with", "from", "into", "where", "while", "after", "before", "never", "often", "größe", "señal", "крае",
    "水", "🌊",
];

/// Word number `k` of a stream of random numbers.
pub fn word(rng: &SeededRng, k: u64) -> &'static str {
    // `unit_at` is in (0, 1].
    let index = (rng.unit_at(k) * WORDS.len() as f64) as usize;
    WORDS[index.min(WORDS.len() - 1)]
}

/// Text of whole words from number `from` on, `bytes` long at least, and not longer by more than a word.
pub fn text(rng: &SeededRng, from: u64, bytes: usize) -> String {
    let mut text = String::new();
    let mut k = from;
    while text.len() < bytes {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word(rng, k));
        k = k.wrapping_add(1);
    }
    text
}
