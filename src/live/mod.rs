//! The run while it goes.

pub mod bar;
pub mod board;

/// Whether a terminal may be sent escape sequences: not a dumb one (`TERM=dumb`), and not where somebody asked for none
/// (`NO_COLOR`, see no-color.org).
pub fn takes_escapes() -> bool {
    let term = std::env::var_os("TERM");
    let asked_for_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !asked_for_none && term.is_none_or(|term| term != "dumb")
}
