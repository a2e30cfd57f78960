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

use toml::de::DeTable;

pub use self::problem::Problem;

use self::problem::Notes;
use self::read::Table;

/// Reads a document; `take` takes from it what there is to take, and notes what is wrong. Files that the document names
/// are relative to `folder`. What comes back beside are warnings.
///
/// # Errors
/// All that is wrong, in order of position. Where the text is no TOML, only that.
pub(crate) fn parse<T>(
    text: &str,
    folder: &Path,
    take: impl FnOnce(&Table<'_>, &Notes<'_>) -> T,
) -> Result<(T, Vec<Problem>), Vec<Problem>> {
    let notes = Notes::new(text, folder);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let start = error.span().map_or(text.len(), |span| span.start);
        notes.problem(start, "", format!("this is no TOML: {}", error.message()), "");
    }
    if !errors.is_empty() {
        let mut problems = notes.finish().0;
        // What follows on the same line is mostly caused by the first.
        problems.dedup_by_key(|problem| problem.line);
        return Err(problems);
    }
    let taken = take(&Table::root(document.get_ref(), &notes), &notes);
    let (problems, warnings) = notes.finish();
    if problems.is_empty() { Ok((taken, warnings)) } else { Err(problems) }
}
