//! A TOML document that a person has written, read with the place of each value: all that is wrong with it is said at
//! once, by line and column, with what to write instead.
//!
//! - [`problem`]: one thing that is wrong
//! - `read`: typed reading; what does not fit is noted, and reading goes on
//! - `words`: times, statuses, sizes

pub mod problem;
pub(crate) mod read;
pub(crate) mod words;

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use self::problem::Diagnostic;

use self::problem::Diagnostics;
use self::read::DocumentTable;

/// Reads a document; `take` takes from it what there is to take, and notes what is wrong. Files that the document names
/// are relative to `folder`. What comes back beside are warnings.
///
/// # Errors
/// All that is wrong, in order of position. Where the text is no TOML, only that.
pub(crate) fn parse<T>(
    text: &str,
    folder: &Path,
    take: impl FnOnce(&DocumentTable<'_>, &Diagnostics<'_>) -> T,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    let notes = Diagnostics::new(text, folder);
    let Some(document) = document(text, &notes) else { return Err(syntax_errors(notes)) };
    let taken = take(&DocumentTable::root(&document, &notes), &notes);
    let (problems, warnings) = notes.finish();
    if problems.is_empty() { Ok((taken, warnings)) } else { Err(problems) }
}

/// As [`parse`], of a document with a table `over` that can be laid over the rest: what is in it takes the place of what the
/// rest says. What comes back is the document without it, and with it if there is one.
///
/// # Errors
/// All that is wrong with either, in order of position.
pub(crate) fn parse_with_override<T>(
    text: &str,
    folder: &Path,
    over: &str,
    take: impl Fn(&DocumentTable<'_>, &Diagnostics<'_>) -> T,
) -> Result<(T, Option<T>, Vec<Diagnostic>), Vec<Diagnostic>> {
    let notes = Diagnostics::new(text, folder);
    let Some(mut below) = document(text, &notes) else { return Err(syntax_errors(notes)) };
    let above = below.remove(over);
    let laid = above.map(|above| {
        let mut laid = below.clone();
        match above.get_ref() {
            DeValue::Table(above) => merge_tables(&mut laid, above),
            _ => notes.error(above.span().start, over, "it is no table", format!("write [{over}]")),
        }
        laid
    });
    let taken = take(&DocumentTable::root(&below, &notes), &notes);
    let of_laid = laid.as_ref().map(|laid| take(&DocumentTable::root(laid, &notes), &notes));
    let (problems, warnings) = notes.finish();
    if problems.is_empty() { Ok((taken, of_laid, warnings)) } else { Err(problems) }
}

/// What the text says; None if it is no TOML, which is noted.
fn document<'t>(text: &'t str, notes: &Diagnostics<'_>) -> Option<DeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = error.span().map_or(text.len(), |span| span.start);
        notes.error(start, "", format!("this is no TOML: {}", error.message()), "");
    }
    errors.is_empty().then(|| document.into_inner())
}

fn syntax_errors(notes: Diagnostics<'_>) -> Vec<Diagnostic> {
    let mut problems = notes.finish().0;
    // What follows on the same line is mostly caused by the first.
    problems.dedup_by_key(|problem| problem.line);
    problems
}

/// Tables are merged, everything else is replaced.
fn merge_tables<'t>(below: &mut DeTable<'t>, above: &DeTable<'t>) {
    for (key, value) in above {
        let there = below.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut);
        if let (Some(DeValue::Table(below)), DeValue::Table(above)) = (there, value.get_ref()) {
            merge_tables(below, above);
        } else {
            below.insert(key.clone(), value.clone());
        }
    }
}
