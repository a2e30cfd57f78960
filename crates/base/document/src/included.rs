//! Documents of several files: a key `include` names further ones, and all of them together are one document.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document_file::DocumentFile;
use super::problem::Diagnostics;
use super::read::join_path;
use super::variables::{VariableLookup, expand};

/// Key of the list of files.
pub(super) const INCLUDE_KEY: &str = "include";

/// Maximum files of a document.
const MAX_FILES: usize = 1000;

/// Files that a pattern names, in order; the file has the key. An error is a message without position.
pub type FindFiles<'f> = &'f dyn Fn(&DocumentFile, &str) -> Result<Vec<DocumentFile>, String>;

/// Place of a key `include`, or of one of its patterns.
#[derive(Clone, Debug)]
struct IncludeKey {
    /// Index of its file.
    file: usize,
    /// Offset in it.
    start: usize,
    /// Path of keys.
    path: String,
}

/// Error or warning about a key `include`.
#[derive(Debug)]
pub(super) struct IncludeProblem {
    at: IncludeKey,
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
        for (text, at) in self.patterns(file) {
            // A reference without a value is reported with all others.
            let Ok(expanded) = expand(&text, lookup) else { continue };
            let text = expanded.map_or(text, |expanded| expanded.text);
            match find(&self.files[file], &text) {
                Err(message) => self.problems.push(at.error(message, "")),
                Ok(found) if found.is_empty() => self.problems.push(at.warning(format!("no file matches {text:?}"))),
                Ok(found) => found.into_iter().for_each(|next| self.include(next, &at, chain, lookup, find)),
            }
        }
    }

    /// Adds a file, and what it includes, unless it is there already.
    fn include(
        &mut self,
        next: DocumentFile,
        at: &IncludeKey,
        chain: &mut Vec<usize>,
        lookup: VariableLookup<'_>,
        find: FindFiles<'_>,
    ) {
        let is_same = |known: &DocumentFile| !known.path.as_os_str().is_empty() && known.path == next.path;
        if let Some(known) = self.files.iter().position(is_same) {
            if let Some(first) = chain.iter().position(|index| *index == known) {
                let names = chain[first..].iter().map(|index| self.files[*index].name.as_str());
                let names: Vec<&str> = names.filter(|name| !name.is_empty()).chain([&*next.name]).collect();
                let message = format!("a file includes itself: {}", names.join(" -> "));
                self.problems.push(at.error(message, "leave one of them out"));
            }
        } else if self.files.len() == MAX_FILES {
            self.problems.push(at.error(format!("more than {MAX_FILES} files"), "include fewer"));
        } else {
            self.files.push(next);
            chain.push(self.files.len() - 1);
            self.read_from(self.files.len() - 1, chain, lookup, find);
            chain.pop();
        }
    }

    /// The patterns of a file, and where they are. Invalid ones are reported.
    fn patterns(&mut self, file: usize) -> Vec<(String, IncludeKey)> {
        const REMEDY: &str = r#"write it as include = ["routes/*.toml"]"#;
        // Syntax errors are reported with all others.
        let (document, _) = DeTable::parse_recoverable(&self.files[file].text);
        let Some(value) = document.get_ref().get(INCLUDE_KEY) else { return Vec::new() };
        let DeValue::Array(list) = value.get_ref() else {
            let at = IncludeKey { file, start: value.span().start, path: INCLUDE_KEY.to_owned() };
            self.problems.push(at.error("invalid list of files".to_owned(), REMEDY));
            return Vec::new();
        };
        let mut patterns = Vec::new();
        for (index, value) in list.iter().enumerate() {
            let at = IncludeKey { file, start: value.span().start, path: format!("{INCLUDE_KEY}[{index}]") };
            match value.get_ref() {
                DeValue::String(text) if !text.is_empty() => patterns.push((text.to_string(), at)),
                _ => self.problems.push(at.error("invalid file name".to_owned(), REMEDY)),
            }
        }
        patterns
    }
}

impl IncludeKey {
    fn error(&self, message: String, remedy: &'static str) -> IncludeProblem {
        IncludeProblem { at: self.clone(), message, remedy, is_warning: false }
    }

    fn warning(&self, message: String) -> IncludeProblem {
        IncludeProblem { at: self.clone(), message, remedy: "", is_warning: true }
    }
}

impl IncludeProblem {
    pub(super) fn report(self, notes: &Diagnostics<'_>) {
        let IncludeKey { file, start, path } = &self.at;
        let start = notes.first_offset(*file) + start;
        if self.is_warning {
            notes.warning(start, path, self.message, self.remedy);
        } else {
            notes.error(start, path, self.message, self.remedy);
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
