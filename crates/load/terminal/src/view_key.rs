//! Keys that change the view, from the bytes of a terminal.

/// Key that changes the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKey {
    /// Earlier steps.
    Up,
    /// Later steps.
    Down,
    /// The screen as text, and back.
    Copy,
}

/// Reader of keys: arrows are sequences of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyReader {
    /// Number of bytes of a sequence so far.
    sequence: u8,
}

impl KeyReader {
    /// Takes a byte; returns the key that it completes.
    pub fn read(&mut self, byte: u8) -> Option<ViewKey> {
        let key = match (self.sequence, byte) {
            (2, b'A') | (0, b'k') => Some(ViewKey::Up),
            (2, b'B') | (0, b'j') => Some(ViewKey::Down),
            (0, b'c') => Some(ViewKey::Copy),
            _ => None,
        };
        self.sequence = match (self.sequence, byte) {
            (_, 0x1b) => 1,
            (1, b'[' | b'O') => 2,
            _ => 0,
        };
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_sequences_and_letters_within_are_not_keys() {
        let mut reader = KeyReader::default();
        let mut read = |bytes: &[u8]| bytes.iter().filter_map(|byte| reader.read(*byte)).collect::<Vec<_>>();
        assert_eq!(read(b"\x1b[A\x1bOBjkc"), [ViewKey::Up, ViewKey::Down, ViewKey::Down, ViewKey::Up, ViewKey::Copy]);
        assert_eq!(read(b"\x1b[Cx\x1b\x1b[B"), [ViewKey::Down]);
        assert_eq!(read(b"\x1bc"), [], "the letter belongs to the sequence");
    }
}
