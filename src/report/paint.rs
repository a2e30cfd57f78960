//! Colour on a terminal, and none elsewhere.

/// Puts ANSI colours round words, or leaves them as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) on: bool,
}

impl Paint {
    /// What a reader must not miss.
    pub(super) fn red(self, words: &str) -> String {
        self.with("31", words)
    }

    /// What is as it should be.
    pub(super) fn green(self, words: &str) -> String {
        self.with("32", words)
    }

    /// Bars.
    pub(super) fn cyan(self, words: &str) -> String {
        self.with("36", words)
    }

    /// Headings.
    pub(super) fn bold(self, words: &str) -> String {
        self.with("1", words)
    }

    /// What matters least.
    pub(super) fn dim(self, words: &str) -> String {
        self.with("2", words)
    }

    fn with(self, code: &str, words: &str) -> String {
        if self.on && !words.is_empty() { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::Paint;

    #[test]
    fn colour_comes_only_when_asked() {
        assert_eq!(Paint { on: true }.red("late"), "\x1b[31mlate\x1b[0m");
        assert_eq!(Paint { on: false }.red("late"), "late");
        assert_eq!(Paint { on: true }.cyan(""), "");
    }
}
