//! One line on the terminal for work whose amount grows: how much of it is done, and how it goes.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar on stderr; nothing at all where that is no terminal.
#[derive(Debug)]
pub struct Counter {
    bar: ProgressBar,
}

impl Counter {
    /// Begins to draw.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        // The template is a constant; an error in it would only cost its looks.
        if let Ok(style) = ProgressStyle::with_template("{bar:24.cyan/dim} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar }
    }

    /// Whether there is a terminal to draw on.
    pub fn is_shown(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Draws how far it is.
    pub fn update(&self, done: u64, of: u64, message: &str) {
        self.bar.set_length(of.max(1));
        self.bar.set_position(done.min(of));
        self.bar.set_message(message.to_owned());
    }

    /// Takes the line away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}
