//! Errors and warnings of a document: position, message, remedy.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::document_file::DocumentFile;
use weir_base::nearest::nearest;

/// Error or warning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// Name of the included file that has it; empty for a document's first file.
    pub file: String,
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
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
        }
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

impl std::error::Error for Diagnostic {}

impl Diagnostic {
    /// Text with the name of its file; `document` is that of the first one, which is unknown here.
    pub fn with_file(&self, document: &str) -> String {
        if self.file.is_empty() { format!("{document}:{self}") } else { self.to_string() }
    }
}

/// Position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePosition {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// Collector of errors and warnings while a text is read.
#[derive(Debug)]
pub struct Diagnostics<'a> {
    /// Files, whose offsets follow one another.
    files: Vec<FileLines<'a>>,
    /// Folder to which paths in the first file are relative.
    pub folder: &'a Path,
    errors: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Vec<Diagnostic>>,
    /// Strings with references to variables, by offset.
    references: BTreeMap<usize, TextReference>,
}

/// Index of a file's lines, to turn offsets into line numbers.
#[derive(Debug)]
struct FileLines<'a> {
    name: &'a str,
    folder: &'a Path,
    text: &'a str,
    /// Offset of its first byte.
    first: usize,
    /// Offset of each line in the file.
    lines: Vec<usize>,
}

/// A string with references to variables.
#[derive(Debug)]
struct TextReference {
    /// The string as it was written.
    written: String,
    /// Whether it was one reference and nothing else.
    is_one: bool,
    /// Whether its value is unknown, which is an error already.
    has_error: bool,
}

impl<'a> Diagnostics<'a> {
    /// Collector for this text.
    pub fn new(text: &'a str, folder: &'a Path) -> Self {
        Self::of([("", folder, text)])
    }

    /// Collector for a document's files.
    pub(crate) fn of_files(files: &'a [DocumentFile]) -> Self {
        Self::of(files.iter().map(|file| (file.name.as_str(), file.folder.as_path(), file.text.as_str())))
    }

    fn of(files: impl IntoIterator<Item = (&'a str, &'a Path, &'a str)>) -> Self {
        let mut first = 0;
        let with_lines = |(name, folder, text): (&'a str, &'a Path, &'a str)| {
            let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
            let file = FileLines { name, folder, text, first, lines };
            // The offset behind the last byte is the file's, too.
            first += text.len() + 1;
            file
        };
        let files: Vec<FileLines<'a>> = files.into_iter().map(with_lines).collect();
        let folder = files.first().map_or(Path::new(""), |file| file.folder);
        let (errors, warnings) = (RefCell::default(), RefCell::default());
        Self { files, folder, errors, warnings, references: BTreeMap::new() }
    }

    /// Adds an error at byte offset `start`.
    pub fn error(&self, start: usize, at: &str, what: impl Into<String>, remedy: impl Into<String>) {
        if self.references.get(&start).is_none_or(|reference| !reference.has_error) {
            self.errors.borrow_mut().push(self.diagnostic(start, at, what.into(), remedy.into()));
        }
    }

    /// Adds an error at byte offset `start`, where the value is unknown: it is the only one there.
    pub(crate) fn only_error(&mut self, start: usize, at: &str, what: String, remedy: String) {
        self.error(start, at, what, remedy);
        self.references.insert(start, TextReference { written: String::new(), is_one: true, has_error: true });
    }

    /// Adds a warning at byte offset `start`.
    pub fn warning(&self, start: usize, at: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.borrow_mut().push(self.diagnostic(start, at, what.into(), remedy.into()));
    }

    fn diagnostic(&self, start: usize, at: &str, what: String, remedy: String) -> Diagnostic {
        let FilePosition { line, column } = self.position(start);
        let file = self.file(start).map_or("", |file| file.name).to_owned();
        Diagnostic { file, line, column, path: at.to_owned(), message: what, remedy }
    }

    /// Adds a string whose references to variables were replaced.
    pub(crate) fn add_reference(&mut self, start: usize, written: String, is_one: bool) {
        self.references.insert(start, TextReference { written, is_one, has_error: false });
    }

    /// The string at this offset as it was written, if it had references to variables.
    pub(crate) fn written(&self, start: usize) -> Option<&str> {
        self.references.get(&start).map(|reference| reference.written.as_str())
    }

    /// Whether the string at this offset was one reference to a variable and nothing else.
    pub(crate) fn is_one_reference(&self, start: usize) -> bool {
        self.references.get(&start).is_some_and(|reference| reference.is_one)
    }

    /// Offset of a file's first byte.
    pub(crate) fn first_offset(&self, file: usize) -> usize {
        self.files.get(file).map_or(0, |file| file.first)
    }

    /// Index of the file of a byte offset.
    pub(crate) fn file_index(&self, start: usize) -> usize {
        self.files.partition_point(|file| file.first <= start).saturating_sub(1)
    }

    fn file(&self, start: usize) -> Option<&FileLines<'a>> {
        self.files.get(self.file_index(start))
    }

    /// Folder to which paths at a byte offset are relative: that of its file.
    pub fn folder_at(&self, start: usize) -> &'a Path {
        self.file(start).map_or(self.folder, |file| file.folder)
    }

    /// Position of a byte offset, in its file.
    pub fn position(&self, start: usize) -> FilePosition {
        let Some(file) = self.file(start) else { return FilePosition { line: 1, column: 1 } };
        let start = start - file.first;
        let line = file.lines.partition_point(|begin| *begin <= start).max(1);
        let begin = file.lines.get(line - 1).copied().unwrap_or(0);
        let before = file.text.get(begin..start).unwrap_or_default();
        FilePosition { line, column: before.chars().count() + 1 }
    }

    /// The line of a byte offset for a message at another one: `line 12`, or with its file if that is another.
    pub fn place(&self, start: usize, from: usize) -> String {
        let line = format!("line {}", self.position(start).line);
        match self.file(start) {
            Some(file) if self.file_index(start) != self.file_index(from) => match file.name {
                "" => format!("{line} of the including file"),
                name => format!("{line} of {name}"),
            },
            _ => line,
        }
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

/// `did you mean "x"?`, or the choices.
pub fn suggestion(given: &str, known: &[&str]) -> String {
    match nearest(given, known.iter().copied()) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_characters() {
        let notes = Diagnostics::new("a = 1\n\u{e4} = 2\n", Path::new(""));
        for (offset, line, column) in [(0, 1, 1), (9, 2, 3), (1000, 3, 1)] {
            assert_eq!(notes.position(offset), FilePosition { line, column });
        }
    }
}
