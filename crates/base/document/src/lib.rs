//! Reader of hand-written TOML documents: all errors at once, each with line, column and remedy.
//!
//! - [`problem`]: errors and warnings
//! - [`read`]: typed access to values; type errors are collected, and reading continues
//! - [`units`]: syntax of times, statuses and sizes
//! - `document_file`, `included`: documents of several files; [`variables`]: references to environment variables in strings

mod document_file;
mod included;
pub mod problem;
pub mod read;
pub mod units;
pub mod variables;

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use self::document_file::DocumentFile;
pub use self::included::FindFiles;
pub use self::problem::Diagnostic;

use self::included::{FileReader, INCLUDE_KEY, IncludedFiles};
use self::problem::Diagnostics;
use self::read::DocumentTable;
use self::variables::VariableLookup;

/// Parses a document: `take` reads its values and reports errors. Relative paths are resolved against `folder`.
/// Returns the result of `take` and warnings.
///
/// # Errors
/// All errors, by position; syntax errors only, if the text is not valid TOML.
pub fn parse<T>(
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

/// As [`parse`], for a document that includes files, and whose strings have references to variables. The key
/// `include` of included files is not left to `take`.
///
/// # Errors
/// All errors, by file and position; syntax errors only, if a file is not valid TOML.
pub fn parse_with_includes<T>(
    first: DocumentFile,
    lookup: VariableLookup<'_>,
    find: FindFiles<'_>,
    take: impl FnOnce(&DocumentTable<'_>, &Diagnostics<'_>) -> T,
) -> Result<(T, Vec<Diagnostic>), Vec<Diagnostic>> {
    let IncludedFiles { files, problems } = IncludedFiles::read(first, lookup, find);
    let mut notes = Diagnostics::of_files(&files);
    let mut tables = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let first = notes.first_offset(index);
        let table = file_table(&file.text, first, &notes);
        tables.push(table.map(|table| FileReader { first, lookup, notes: &mut notes }.table(table, "")));
    }
    let Some(tables) = tables.into_iter().collect::<Option<Vec<_>>>() else { return Err(syntax_errors(notes)) };
    problems.into_iter().for_each(|problem| problem.report(&notes));
    let mut tables = tables.into_iter();
    let mut document = tables.next().unwrap_or_default();
    for mut table in tables {
        table.remove(INCLUDE_KEY);
        included::join(&mut document, table, &notes);
    }
    let taken = take(&DocumentTable::root(&document, &notes), &notes);
    let (problems, warnings) = notes.finish();
    if problems.is_empty() { Ok((taken, warnings)) } else { Err(problems) }
}

/// As [`parse`], for a document with a table `over` that overrides the rest. Returns the results without and with the
/// overrides, the latter if the table exists.
///
/// # Errors
/// All errors of both, by position.
pub fn parse_with_override<T>(
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
            _ => notes.error(above.span().start, over, "invalid table", format!("write [{over}]")),
        }
        laid
    });
    let taken = take(&DocumentTable::root(&below, &notes), &notes);
    let of_laid = laid.as_ref().map(|laid| take(&DocumentTable::root(laid, &notes), &notes));
    let (problems, warnings) = notes.finish();
    if problems.is_empty() { Ok((taken, of_laid, warnings)) } else { Err(problems) }
}

/// Parsed text; None if it is not valid TOML, which is reported.
fn document<'t>(text: &'t str, notes: &Diagnostics<'_>) -> Option<DeTable<'t>> {
    file_table(text, 0, notes)
}

/// As [`document`], of a file whose first byte has this offset.
fn file_table<'t>(text: &'t str, first: usize, notes: &Diagnostics<'_>) -> Option<DeTable<'t>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = first + error.span().map_or(text.len(), |span| span.start);
        notes.error(start, "", format!("invalid TOML: {}", error.message()), "");
    }
    errors.is_empty().then(|| document.into_inner())
}

fn syntax_errors(notes: Diagnostics<'_>) -> Vec<Diagnostic> {
    let mut problems = notes.finish().0;
    // Further errors on a line mostly follow from the first.
    problems.retain(|problem| problem.path.is_empty());
    problems.dedup_by(|next, before| (&next.file, next.line) == (&before.file, before.line));
    problems
}

/// Merges tables recursively; other values are replaced.
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
