//! Documents of several files: a key `include` names further ones, and all of them together are one document.

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Diagnostics;
use super::read::join_path;
use super::variables::{VariableLookup, expand};

/// Key of the list of files.
pub const INCLUDE_KEY: &str = "include";

/// Maximum files of a document.
const MAX_FILES: usize = 1000;

/// One file of a document.
#[derive(Clone, Debug, Default)]
pub struct DocumentFile {
    /// Name in messages; empty for a document's first file.
    pub name: String,
    /// Identity, by which a file that includes itself is found; empty if unknown.
    pub path: PathBuf,
    /// Folder to which paths in it are relative.
    pub folder: PathBuf,
    /// Content.
    pub text: String,
}

/// Files that a pattern names, in order; the file has the key. An error is a message without position.
pub type FindFiles<'f> = &'f dyn Fn(&DocumentFile, &str) -> Result<Vec<DocumentFile>, String>;

/// Error or warning about a key `include`.
#[derive(Debug)]
pub(super) struct IncludeProblem {
    /// Index of the file that has the key.
    file: usize,
    /// Offset in it.
    start: usize,
    /// Path of the key.
    path: String,
    message: String,
    remedy: &'static str,
    is_warning: bool,
}

/// All files of a document, each once and the including one first.
#[derive(Debug)]
pub(super) struct IncludedFiles {
    pub(super) files: Vec<DocumentFile>,
    pub(super) problems: Vec<IncludeProblem>,
}

impl IncludedFiles {
    /// Reads what the first file includes, and what these include.
    pub(super) fn read(first: DocumentFile, lookup: VariableLookup<'_>, find: FindFiles<'_>) -> Self {
        let mut all = Self { files: vec![first], problems: Vec::new() };
        all.read_from(0, &mut vec![0], lookup, find);
        all
    }

    /// `chain` has the files that include one another up to this one.
    fn read_from(&mut self, file: usize, chain: &mut Vec<usize>, lookup: VariableLookup<'_>, find: FindFiles<'_>) {
        for (start, path, pattern) in self.patterns(file) {
            // A reference without a value is reported with all others.
            let pattern = match expand(&pattern, lookup) {
                Ok(expanded) => expanded.map_or(pattern, |expanded| expanded.text),
                Err(_) => continue,
            };
            let mut problem = |is_warning, message: String, remedy| {
                self.problems.push(IncludeProblem { file, start, path: path.clone(), message, remedy, is_warning });
            };
            let found = match find(&self.files[file], &pattern) {
                Ok(found) => found,
                Err(message) => {
                    problem(false, message, "");
                    continue;
                }
            };
            if found.is_empty() {
                problem(true, format!("no file matches {pattern:?}"), "");
            }
            for next in found {
                let is_same = |known: &DocumentFile| !known.path.as_os_str().is_empty() && known.path == next.path;
                if let Some(known) = self.files.iter().position(is_same) {
                    if let Some(at) = chain.iter().position(|index| *index == known) {
                        let names = chain[at..].iter().map(|index| self.files[*index].name.as_str());
                        let names: Vec<&str> = names.filter(|name| !name.is_empty()).chain([&*next.name]).collect();
                        let message = format!("a file includes itself: {}", names.join(" -> "));
                        let (path, remedy) = (path.clone(), "leave one of them out");
                        self.problems.push(IncludeProblem { file, start, path, message, remedy, is_warning: false });
                    }
                    continue;
                }
                if self.files.len() == MAX_FILES {
                    let (path, message) = (path.clone(), format!("more than {MAX_FILES} files"));
                    self.problems.push(IncludeProblem {
                        file,
                        start,
                        path,
                        message,
                        remedy: "include fewer",
                        is_warning: false,
                    });
                    return;
                }
                self.files.push(next);
                chain.push(self.files.len() - 1);
                self.read_from(self.files.len() - 1, chain, lookup, find);
                chain.pop();
            }
        }
    }

    /// The patterns of a file, each with its offset and its path. Invalid ones are reported.
    fn patterns(&mut self, file: usize) -> Vec<(usize, String, String)> {
        // Syntax errors are reported with all others.
        let (document, _) = DeTable::parse_recoverable(&self.files[file].text);
        let Some(value) = document.get_ref().get(INCLUDE_KEY) else { return Vec::new() };
        let mut invalid = Vec::new();
        let mut patterns = Vec::new();
        match value.get_ref() {
            DeValue::Array(list) => {
                for (index, value) in list.iter().enumerate() {
                    let at = (value.span().start, format!("{INCLUDE_KEY}[{index}]"));
                    match value.get_ref() {
                        DeValue::String(text) if !text.is_empty() => patterns.push((at.0, at.1, text.to_string())),
                        _ => invalid.push((at.0, at.1, "invalid file name")),
                    }
                }
            }
            _ => invalid.push((value.span().start, INCLUDE_KEY.to_owned(), "invalid list of files")),
        }
        let remedy = r#"write it as include = ["routes/*.toml"]"#;
        self.problems.extend(invalid.into_iter().map(|(start, path, message)| IncludeProblem {
            file,
            start,
            path,
            message: message.to_owned(),
            remedy,
            is_warning: false,
        }));
        patterns
    }
}

impl IncludeProblem {
    pub(super) fn report(self, notes: &Diagnostics<'_>) {
        let start = notes.first_offset(self.file) + self.start;
        if self.is_warning {
            notes.warning(start, &self.path, self.message, self.remedy);
        } else {
            notes.error(start, &self.path, self.message, self.remedy);
        }
    }
}

/// A file's table with offsets of the whole document and without its references to variables.
pub(super) struct FileReader<'d, 'a> {
    /// Offset of the file's first byte.
    pub(super) first: usize,
    pub(super) lookup: VariableLookup<'d>,
    pub(super) notes: &'d mut Diagnostics<'a>,
}

impl FileReader<'_, '_> {
    pub(super) fn table<'t>(&mut self, table: DeTable<'t>, path: &str) -> DeTable<'t> {
        let member = |(key, value): (Spanned<Cow<'t, str>>, Spanned<DeValue<'t>>)| {
            let (span, key) = (self.shifted(key.span()), key.into_inner());
            let value = self.value(value, &join_path(path, &key));
            (Spanned::new(span, key), value)
        };
        table.into_iter().map(member).collect()
    }

    fn value<'t>(&mut self, value: Spanned<DeValue<'t>>, path: &str) -> Spanned<DeValue<'t>> {
        let span = self.shifted(value.span());
        let inner = match value.into_inner() {
            DeValue::String(text) => match expand(&text, self.lookup) {
                Ok(None) => DeValue::String(text),
                Ok(Some(expanded)) => {
                    self.notes.add_reference(span.start, text.into_owned(), expanded.is_one_reference);
                    DeValue::String(expanded.text.into())
                }
                Err(error) => {
                    self.notes.only_error(span.start, path, error.to_string(), error.remedy());
                    DeValue::String(text)
                }
            },
            DeValue::Array(list) => {
                let list = list.into_iter().enumerate();
                DeValue::Array(list.map(|(index, value)| self.value(value, &format!("{path}[{index}]"))).collect())
            }
            DeValue::Table(table) => DeValue::Table(self.table(table, path)),
            other => other,
        };
        Spanned::new(span, inner)
    }

    fn shifted(&self, span: Range<usize>) -> Range<usize> {
        span.start + self.first..span.end + self.first
    }
}

/// Adds a file's table to those before it: lists of tables and tables of tables are joined, and every other key is in one
/// file only.
pub(super) fn join<'t>(document: &mut DeTable<'t>, file: DeTable<'t>, notes: &Diagnostics<'_>) {
    for (key, value) in file {
        let name = key.get_ref().clone();
        let known = document.get_key_value(name.as_ref()).map(|(key, _)| key.span().start);
        let (Some(known), Some(place)) = (known, document.get_mut(name.as_ref())) else {
            document.insert(key, value);
            continue;
        };
        match (place.get_mut(), value.into_inner()) {
            (DeValue::Array(list), DeValue::Array(more)) if has_only_tables(list) && has_only_tables(&more) => {
                more.into_iter().for_each(|value| list.push(value));
            }
            (DeValue::Table(table), DeValue::Table(more)) if is_of_tables(table) && is_of_tables(&more) => {
                for (key, value) in more {
                    match table.get_key_value(key.get_ref().as_ref()) {
                        Some((known, _)) => {
                            let path = join_path(&name, key.get_ref());
                            duplicate(notes, key.span().start, &path, known.span().start);
                        }
                        None => drop(table.insert(key, value)),
                    }
                }
            }
            _ => duplicate(notes, key.span().start, &name, known),
        }
    }
}

fn has_only_tables(list: &[Spanned<DeValue<'_>>]) -> bool {
    list.iter().all(|value| value.get_ref().is_table())
}

fn is_of_tables(table: &DeTable<'_>) -> bool {
    table.values().all(|value| value.get_ref().is_table())
}

fn duplicate(notes: &Diagnostics<'_>, start: usize, path: &str, known: usize) {
    let what = format!("{path} is in another file, too: see {}", notes.place(known, start));
    notes.error(start, path, what, "write it in one of them");
}
