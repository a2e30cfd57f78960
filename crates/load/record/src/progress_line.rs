//! Line on stderr of what is being recorded: updated in place on a terminal, otherwise every ten seconds.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal, Write};

use crate::{RecordCounts, RecordObserver};
use weir_base::Nanos;
use weir_base::terminal_text::single_line;
use weir_command::Messages;
use weir_machine::dashboard::takes_escapes;

/// Interval of lines without a terminal.
const LINE_INTERVAL: Nanos = Nanos::from_secs(10);

/// Columns of the line on a terminal. Narrower ones wrap it, which shows as several lines.
const LINE_COLUMNS: usize = 79;

/// Line of what is being recorded.
#[derive(Debug)]
pub(super) struct ProgressLine {
    messages: Messages,
    /// Whether the line is updated in place.
    is_terminal: bool,
    /// Text on the terminal.
    shown: RefCell<String>,
    next_line: Cell<Nanos>,
    last_line: RefCell<String>,
}

impl ProgressLine {
    pub(super) fn new(messages: Messages) -> Self {
        Self {
            messages,
            is_terminal: io::stderr().is_terminal() && takes_escapes(),
            shown: RefCell::default(),
            next_line: Cell::new(LINE_INTERVAL),
            last_line: RefCell::default(),
        }
    }

    /// Clears the line.
    pub(super) fn finish(&self) {
        self.draw("");
    }

    fn draw(&self, line: &str) {
        let mut shown = self.shown.borrow_mut();
        if *shown == line || !self.is_terminal {
            return;
        }
        // Blanks overwrite the end of a longer previous line, without an escape.
        let rest = shown.chars().count().saturating_sub(line.chars().count());
        let mut stderr = io::stderr().lock();
        let end = if line.is_empty() { "\r" } else { "" };
        // A closed terminal is ignored.
        let _ = write!(stderr, "\r{line}{}{end}", " ".repeat(rest)).and_then(|()| stderr.flush());
        line.clone_into(&mut shown);
    }
}

impl RecordObserver for ProgressLine {
    fn progress(&self, counts: &RecordCounts, elapsed: Nanos) {
        if self.messages.is_quiet() {
            return;
        }
        if self.is_terminal {
            self.draw(&text(counts, LINE_COLUMNS));
        } else if elapsed >= self.next_line.get() {
            self.next_line.set(Nanos((elapsed.0 / LINE_INTERVAL.0 + 1) * LINE_INTERVAL.0));
            let line = text(counts, usize::MAX);
            // Without a request there is nothing to say.
            if *self.last_line.borrow() != line {
                self.messages.note(&line);
                *self.last_line.borrow_mut() = line;
            }
        }
    }

    fn note(&self, text: &str) {
        self.draw("");
        self.messages.note(text);
    }
}

/// `12 requests, 34 static files  POST http://shop.example/login 200`
fn text(counts: &RecordCounts, columns: usize) -> String {
    let plural = |count: u64, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut line = plural(counts.requests, "request");
    if counts.static_files > 0 {
        line.push_str(&format!(", {}", plural(counts.static_files, "static file")));
    }
    if !counts.latest.is_empty() {
        line.push_str(&format!("  {}", single_line(&counts.latest)));
    }
    if line.chars().count() > columns {
        line = line.chars().take(columns.saturating_sub(3)).chain("...".chars()).collect();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_and_steers_no_terminal() {
        let counts = RecordCounts {
            requests: 1,
            static_files: 2,
            latest: format!("GET http://h/\u{1b}[2J{} 200", "x".repeat(100)),
            ..RecordCounts::default()
        };
        let line = text(&counts, 50);
        assert!(line.starts_with("1 request, 2 static files  GET http://h/") && line.ends_with("..."), "{line}");
        assert_eq!(line.chars().count(), 50);
        assert!(!text(&counts, usize::MAX).contains('\u{1b}'));
    }
}
