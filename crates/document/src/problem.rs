//! Errors and warnings of a document: position, message, remedy.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;

/// Error or warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Path of keys, such as `policies.quick.hedge[0].after`; empty for a syntax error.
    pub path: String,
    /// Description of the error.
    pub message: String,
    /// Remedy; may be empty.
    pub remedy: String,
}

/// `12:5: listen: invalid string 80; write it in quotes`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

impl std::error::Error for Diagnostic {}

/// Collector of errors and warnings while a text is read.
#[derive(Debug)]
pub struct Diagnostics<'a> {
    text: &'a str,
    /// Offset of each line.
    lines: Vec<usize>,
    /// Folder to which paths in the text are relative.
    pub folder: &'a Path,
    errors: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Vec<Diagnostic>>,
}

impl<'a> Diagnostics<'a> {
    /// Collector for this text.
    pub fn new(text: &'a str, folder: &'a Path) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, lines, folder, errors: RefCell::default(), warnings: RefCell::default() }
    }

    /// Adds an error at byte offset `start`.
    pub fn error(&self, start: usize, at: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.errors.borrow_mut().push(self.diagnostic(start, at, what.into(), remedy.into()));
    }

    /// Adds a warning at byte offset `start`.
    pub fn warning(&self, start: usize, at: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.borrow_mut().push(self.diagnostic(start, at, what.into(), remedy.into()));
    }

    fn diagnostic(&self, start: usize, at: &str, what: String, remedy: String) -> Diagnostic {
        let (line, column) = self.position(start);
        Diagnostic { line, column, path: at.to_owned(), message: what, remedy }
    }

    /// Line and column of a byte offset.
    pub fn position(&self, start: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|begin| *begin <= start).max(1);
        let begin = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(begin..start).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    /// Errors and warnings, by position.
    pub fn finish(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let sorted = |notes: RefCell<Vec<Diagnostic>>| {
            let mut notes = notes.into_inner();
            notes.sort();
            notes.dedup();
            notes
        };
        (sorted(self.errors), sorted(self.warnings))
    }
}

/// Known word nearest to `given`, if one is near enough for a typing error.
pub fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    // Long words are not typing errors, and their distance takes time to compute.
    let most = (given.chars().count() / 3).max(1);
    let words = known.iter().copied().filter(|word| given.len() < 64 && word.len() < 64);
    words.map(|word| (distance(given, word), word)).filter(|(far, _)| *far <= most).min().map(|(_, word)| word)
}

/// `did you mean "x"?`, or the choices.
pub fn suggestion(given: &str, known: &[&str]) -> String {
    match nearest(given, known) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => one_of(known),
    }
}

/// `choose "a", "b" or "c"`.
pub fn one_of(known: &[&str]) -> String {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    match known {
        [] => String::new(),
        [only] => format!("write \"{only}\""),
        [first @ .., last] => format!("choose {} or \"{last}\"", quoted(first)),
    }
}

/// Edit distance with insertions, deletions, replacements and swaps of neighbors (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                    if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_found() {
        let known = ["deadline", "stages", "retry"];
        assert_eq!(nearest("deadlin", &known), Some("deadline"));
        assert_eq!(nearest("staegs", &known), Some("stages"));
        assert_eq!(nearest("budget", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn columns_are_counted_in_characters() {
        let notes = Diagnostics::new("a = 1\n\u{e4} = 2\n", Path::new(""));
        assert_eq!(notes.position(0), (1, 1));
        assert_eq!(notes.position(9), (2, 3));
        assert_eq!(notes.position(1000), (3, 1));
    }
}
