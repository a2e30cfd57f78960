//! Random changes of seeds.

use weir_base::rng::SeededRng;

/// Maximum length of an input, in bytes.
const MAX_INPUT_BYTES: usize = 4096;

/// Inputs made from seeds, the same ones each time.
#[derive(Debug)]
pub(crate) struct Mutations {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
    rng: SeededRng,
}

impl Mutations {
    /// Inputs from seeds, of which there is one at least, and from words.
    pub(crate) fn new(seeds: Vec<Vec<u8>>, words: Vec<Vec<u8>>) -> Self {
        Self { seeds, words, rng: SeededRng::new(1, 0) }
    }

    /// The next input: a seed with one to eight changes.
    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..=self.rng.below(8) {
            self.change(&mut input);
        }
        input.truncate(MAX_INPUT_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.rng.below(input.len() + 1);
        let end = at + self.rng.below((input.len() - at).min(64) + 1);
        match self.rng.below(9) {
            0 => self.replace(input, at, |byte, random| byte ^ (1 << (random % 8))),
            1 => self.replace(input, at, |_, random| random),
            // A neighbour in order: of digits, letters, lengths.
            2 => self.replace(
                input,
                at,
                |byte, random| if random % 2 == 0 { byte.wrapping_add(1) } else { byte.wrapping_sub(1) },
            ),
            3 => drop(input.drain(at..end)),
            4 => input.truncate(at),
            5 => {
                let copy = input[at..end].to_vec();
                let to = self.rng.below(input.len() + 1);
                drop(input.splice(to..to, copy));
            }
            6 => {
                let byte = self.rng.below(256) as u8;
                drop(input.splice(at..at, [byte]));
            }
            7 if !self.words.is_empty() => {
                let word = self.words[self.rng.below(self.words.len())].clone();
                let end = if self.rng.below(2) == 0 { at } else { end };
                drop(input.splice(at..end, word));
            }
            // The end of another seed.
            _ => {
                let other = self.seed();
                let from = self.rng.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }

    fn replace(&mut self, input: &mut [u8], at: usize, by: impl Fn(u8, u8) -> u8) {
        let random = self.rng.below(256) as u8;
        if let Some(byte) = input.get_mut(at) {
            *byte = by(*byte, random);
        }
    }

    fn seed(&mut self) -> Vec<u8> {
        let index = self.rng.below(self.seeds.len());
        self.seeds[index].clone()
    }
}
