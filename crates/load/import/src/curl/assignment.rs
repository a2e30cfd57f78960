//! Variables that a shell sets: `NAME=value`, also after `export`.

use weir_hurl::Template;

use crate::placeholder;
use crate::session::ImportSession;
use crate::text;

/// Names and values of a command that sets variables and does nothing else.
pub(super) fn variables(words: &[String]) -> Option<Vec<(&str, &str)>> {
    let is_export = words.first().is_some_and(|word| matches!(word.as_str(), "export" | "readonly" | "local"));
    let words = &words[usize::from(is_export)..];
    let pairs: Option<Vec<(&str, &str)>> = words.iter().map(|word| variable(word)).collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

/// Name and value of a word.
pub(super) fn variable(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// Gives a variable its value, which may have variables.
pub(super) fn define(name: &str, value: &Template, session: &mut ImportSession) {
    match value.as_text() {
        Some(fixed) => session.import.define(name, fixed, false),
        None if text::variables(value).contains(&name.to_owned()) => {}
        None => placeholder::define_as(name.to_owned(), value.clone(), session),
    }
}
