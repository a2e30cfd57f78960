//! ANSI colours and lines of text reports.

use super::number_format::joined;

/// Width of the column of labels.
pub(super) const LABEL_WIDTH: usize = 13;

/// Painter that adds ANSI colours if `enabled`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsiPaint {
    pub(super) enabled: bool,
}

impl AnsiPaint {
    /// Text that a reader must not miss.
    pub(super) fn red(self, words: &str) -> String {
        self.wrap("31", words)
    }

    /// Doubts about digits.
    pub(super) fn yellow(self, words: &str) -> String {
        self.wrap("33", words)
    }

    /// Good results.
    pub(super) fn green(self, words: &str) -> String {
        self.wrap("32", words)
    }

    /// Bars.
    pub(super) fn cyan(self, words: &str) -> String {
        self.wrap("36", words)
    }

    /// Headings.
    pub(super) fn bold(self, words: &str) -> String {
        self.wrap("1", words)
    }

    /// Secondary text.
    pub(super) fn dim(self, words: &str) -> String {
        self.wrap("2", words)
    }

    /// Facts behind their label, on as many lines as they need.
    pub(super) fn line(self, label: &str, facts: &[String]) -> String {
        self.dim(&format!("{label:<LABEL_WIDTH$}")) + &joined(facts, LABEL_WIDTH)
    }

    fn wrap(self, code: &str, words: &str) -> String {
        if self.enabled && !words.is_empty() { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::AnsiPaint;

    #[test]
    fn colour_comes_only_when_asked() {
        assert_eq!(AnsiPaint { enabled: true }.red("late"), "\x1b[31mlate\x1b[0m");
        assert_eq!(AnsiPaint { enabled: false }.red("late"), "late");
        assert_eq!(AnsiPaint { enabled: true }.cyan(""), "");
    }
}
