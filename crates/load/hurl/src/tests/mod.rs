//! Whole files: what is read, what is found to be wrong, and that printing loses nothing.

mod errors;
mod nodes;
mod print;
mod properties;
mod requests;
mod responses;
mod templates;

use crate::{HurlFile, parse};

/// The content of a valid file.
fn read(text: &str) -> HurlFile {
    parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

/// Errors of an invalid file, a line each.
fn errors_of(text: &str) -> Vec<String> {
    parse(text).expect_err(text).iter().map(ToString::to_string).collect()
}

/// The content without positions, which differ between a file and its print.
fn shape(file: &HurlFile) -> String {
    let text = format!("{file:?}");
    let mut pieces = text.split('@');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |shape, piece| shape + "@" + piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':'))
}

/// Asserts that printing and reading a content again returns it, and returns the print.
fn print_and_read(file: &HurlFile) -> String {
    let printed = file.to_string();
    let again = parse(&printed).unwrap_or_else(|errors| panic!("{printed}\n{errors:?}\n{file:?}"));
    assert_eq!(shape(&again), shape(file), "{printed}");
    assert_eq!(again.to_string(), printed);
    printed
}
