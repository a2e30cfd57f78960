//! Some lines on the terminal for work whose amount grows: how much of it is done, how it goes, and a table.

use std::io::stderr;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::tcgetwinsize;

/// Lines on stderr that change in place; nothing at all where that is no terminal.
#[derive(Debug)]
pub struct Board {
    all: MultiProgress,
    bar: ProgressBar,
    lines: Vec<ProgressBar>,
}

/// A terminal that does not say how large it is: columns and rows.
const USUAL: (usize, usize) = (80, 24);
/// The bar's columns, and a blank.
const BAR: usize = 25;

impl Board {
    /// Begins to draw.
    pub fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        let bar = all.add(ProgressBar::new(1).with_style(style("{bar:24.cyan/dim} {msg}")));
        Self { all, bar, lines: Vec::new() }
    }

    /// Whether there is a terminal to draw on.
    pub fn is_shown(&self) -> bool {
        !self.all.is_hidden()
    }

    /// How many rows the terminal has.
    pub fn rows(&self) -> usize {
        size().1
    }

    /// Draws how far it is, and lines below that; what does not fit into the terminal's width is cut off.
    pub fn update(&mut self, done: u64, of: u64, message: &str, lines: &[String]) {
        // No blanks behind it: a terminal that is made narrower would break the lines there.
        let width = size().0;
        let fitting = |text: &str, width: usize| text.chars().take(width).collect::<String>();
        self.bar.set_length(of.max(1));
        self.bar.set_position(done.min(of));
        self.bar.set_message(fitting(message, width.saturating_sub(BAR)));
        while self.lines.len() < lines.len() {
            let line = ProgressBar::new(1).with_style(style("{msg}"));
            self.lines.push(self.all.add(line));
        }
        for line in self.lines.drain(lines.len()..) {
            self.all.remove(&line);
        }
        for (line, text) in self.lines.iter().zip(lines) {
            line.set_message(fitting(text, width));
        }
    }

    /// Has something else written to the terminal, above the lines.
    pub fn aside<T>(&self, says: impl FnOnce() -> T) -> T {
        self.all.suspend(says)
    }

    /// Takes the lines away.
    pub fn finish(self) {
        self.lines.iter().chain([&self.bar]).for_each(ProgressBar::finish_and_clear);
        // A terminal that is gone is told nothing.
        let _ = self.all.clear();
    }
}

impl Default for Board {
    fn default() -> Self {
        Self::new()
    }
}

/// How many columns and rows the terminal has.
fn size() -> (usize, usize) {
    tcgetwinsize(stderr()).map_or(USUAL, |size| (usize::from(size.ws_col).max(1), usize::from(size.ws_row).max(1)))
}

/// The templates are constants; an error in one would only cost its looks.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .map_or_else(|_| ProgressStyle::default_bar(), |style| style.progress_chars("━╸─"))
}
