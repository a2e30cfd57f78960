//! Progress display on the terminal during a run, and text for a terminal.

pub mod dashboard;
pub mod progress_bar;
pub mod sparkline;
pub mod step_progress;

/// Whether escape sequences may be written to a terminal: not with `TERM=dumb` or `NO_COLOR` (see no-color.org).
pub fn takes_escapes() -> bool {
    let term = std::env::var_os("TERM");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && term.is_none_or(|term| term != "dumb")
}

pub use weir_base::terminal_text::single_line;
