//! Dashboard on the terminal for work of growing size: a progress bar, a message, and a table.

use std::io;

use console::{Term, style};

/// Whether escape sequences may be written to a terminal: not with `TERM=dumb` or `NO_COLOR` (see no-color.org).
pub fn takes_escapes() -> bool {
    let term = std::env::var_os("TERM");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && term.is_none_or(|term| term != "dumb")
}

/// Lines on stderr that are updated in place; nothing without a terminal.
///
/// A line never fills the terminal's width, and the cursor is below the last one, so that keyboard input does not
/// displace them.
#[derive(Debug)]
pub struct Dashboard {
    terminal: Term,
    shown_lines: Vec<String>,
}

/// Columns of the bar.
const BAR_COLUMNS: usize = 24;

impl Dashboard {
    /// Dashboard that is not drawn yet.
    pub fn new() -> Self {
        Self { terminal: Term::buffered_stderr(), shown_lines: Vec::new() }
    }

    /// Whether there is a terminal to draw on.
    pub fn is_shown(&self) -> bool {
        self.terminal.features().is_attended() && takes_escapes()
    }

    /// Draws lines that fit into the width.
    pub fn show(&mut self, lines: Vec<String>) {
        if self.is_shown() && lines != self.shown_lines {
            // A closed terminal is ignored.
            let _ = self.draw(lines);
        }
    }

    /// Number of rows of the terminal.
    pub fn rows(&self) -> usize {
        usize::from(self.terminal.size().0)
    }

    /// Draws the progress and the lines below it, truncated to the terminal's width.
    pub fn update(&mut self, done: u64, of: u64, message: &str, lines: &[String]) {
        if !self.is_shown() {
            return;
        }
        let width = usize::from(self.terminal.size().1).saturating_sub(1);
        let fitting = |text: &str, width: usize| text.chars().take(width).collect::<String>();
        let (full, rest) = bar(done, of);
        let bar = format!("{}{}", style(full).cyan().for_stderr(), style(rest).dim().for_stderr());
        let mut next = vec![format!("{bar} {}", fitting(message, width.saturating_sub(BAR_COLUMNS + 1)))];
        next.extend(lines.iter().map(|line| fitting(line, width)));
        if next != self.shown_lines {
            // A closed terminal is ignored.
            let _ = self.draw(next);
        }
    }

    fn draw(&mut self, next: Vec<String>) -> io::Result<()> {
        self.clear(self.shown_lines.len())?;
        for line in &next {
            self.terminal.write_line(line)?;
        }
        self.shown_lines = next;
        self.terminal.flush()
    }

    /// Calls `print`, which writes to the terminal, above the lines.
    pub fn print_above<T>(&mut self, print: impl FnOnce() -> T) -> T {
        let shown = std::mem::take(&mut self.shown_lines);
        let _ = self.clear(shown.len()).and_then(|()| self.terminal.flush());
        let result = print();
        let _ = self.draw(shown);
        result
    }

    /// Clears the lines.
    pub fn finish(self) {
        let _ = self.clear(self.shown_lines.len()).and_then(|()| self.terminal.flush());
    }

    /// Moves the cursor up by this number of lines, and clears everything below.
    fn clear(&self, lines: usize) -> io::Result<()> {
        if lines == 0 {
            return Ok(());
        }
        self.terminal.write_str("\r")?;
        self.terminal.move_cursor_up(lines)?;
        self.terminal.clear_to_end_of_screen()
    }
}

impl Default for Dashboard {
    fn default() -> Self {
        Self::new()
    }
}

/// Done and remaining part of a bar.
fn bar(done: u64, of: u64) -> (String, String) {
    let halves = (done.min(of) as u128 * 2 * BAR_COLUMNS as u128 / u128::from(of.max(1))) as usize;
    let (whole, half) = (halves / 2, halves % 2);
    ("━".repeat(whole) + if half == 1 { "╸" } else { "" }, "─".repeat(BAR_COLUMNS - whole - half))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn the_length_of_a_bar_does_not_depend_on_progress() {
        for (done, of) in [(0, 0), (0, 7), (3, 7), (7, 7), (9, 7), (u64::MAX, u64::MAX), (1, u64::MAX)] {
            let (full, rest) = bar(done, of);
            assert_eq!(full.chars().count() + rest.chars().count(), super::BAR_COLUMNS, "{done} of {of}");
            assert_eq!(rest.is_empty(), of > 0 && done >= of, "{done} of {of}");
        }
    }
}
