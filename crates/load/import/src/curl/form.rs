//! Parts of `-F`, read as curl reads them.

use super::marks::MarkTable;
use crate::multipart::{ImportedPart, PartContent};

/// Most files of a part.
const MAX_FILES: usize = 1_000;

/// Part of a multipart body before its files are read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FormPart {
    pub(super) name: String,
    pub(super) source: FormSource,
    pub(super) content_type: Option<String>,
    pub(super) file_name: Option<String>,
    pub(super) headers: Vec<String>,
    /// Parts of the form that are not understood, as written.
    pub(super) unknown: Vec<String>,
}

/// Source of a part's content.
#[derive(Debug, PartialEq)]
pub(super) enum FormSource {
    Text(String),
    /// `@file`: an upload under the name of the file.
    Upload(String),
    /// `<file`: a text.
    TextOf(String),
}

impl Default for FormSource {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl FormPart {
    /// Part with its content.
    pub(super) fn with(self, content: PartContent, marks: &MarkTable) -> ImportedPart {
        ImportedPart {
            name: marks.template(&self.name),
            content,
            content_type: self.content_type.map(|kind| marks.template(&kind)),
            file_name: self.file_name.map(|name| marks.shown(&name)),
            headers: self.headers.iter().map(|line| marks.template(line)).collect(),
        }
    }
}

/// Parts of `name=value`; several for `name=@a,b`.
///
/// # Errors
/// Reason why curl, or this reader, takes none of it.
pub(super) fn parts(text: &str) -> Result<Vec<FormPart>, &'static str> {
    let (name, value) = text.split_once('=').ok_or("without a '='")?;
    if value.starts_with('(') || (name.is_empty() && value.starts_with(')')) {
        return Err("of parts within a part");
    }
    let mut made = Vec::new();
    match value.chars().next() {
        Some('@') => {
            let mut rest = &value[1..];
            loop {
                let (path, part, after) = attributes(rest, Some(','))?;
                if made.len() >= MAX_FILES {
                    return Err("of more files than are read");
                }
                made.push(FormPart { name: name.to_owned(), source: FormSource::Upload(path), ..part });
                match after.strip_prefix(',') {
                    Some(after) => rest = after,
                    None => break,
                }
            }
            if let [first, _, ..] = made.as_mut_slice() {
                first.unknown.push("that the files are parts of one part".to_owned());
            }
        }
        Some('<') => {
            let (path, part, _) = attributes(&value[1..], None)?;
            made.push(FormPart { name: name.to_owned(), source: FormSource::TextOf(path), ..part });
        }
        _ => {
            let (content, part, _) = attributes(value, None)?;
            made.push(FormPart { name: name.to_owned(), source: FormSource::Text(content), ..part });
        }
    }
    Ok(made)
}

/// Content up to the first attribute, a part with the attributes, and what follows.
fn attributes(text: &str, end: Option<char>) -> Result<(String, FormPart, &str), &'static str> {
    let (content, mut rest) = word(text.trim_start(), end);
    let mut part = FormPart::default();
    let mut is_in_type = false;
    while let Some(after) = rest.strip_prefix(';') {
        let attribute = after.trim_start();
        let name_end = attribute.find(['=', ';']).filter(|at| attribute[*at..].starts_with('='));
        let length = name_end.map_or(0, |at| at + 1);
        let key = attribute[..length].to_ascii_lowercase();
        let value = attribute[length..].trim_start();
        let is_type = key == "type=" && !is_in_type;
        if is_type || (is_in_type && !matches!(key.as_str(), "filename=" | "headers=" | "encoder=")) {
            let whole = if is_type { value } else { attribute };
            let length = whole.find(|c| c == ';' || Some(c) == end).unwrap_or(whole.len());
            let kind = whole[..length].trim_end();
            if is_type && !kind.split_once('/').is_some_and(|(major, minor)| !major.is_empty() && !minor.is_empty()) {
                return Err("with a type that curl rejects");
            }
            let known = part.content_type.take().filter(|_| !is_type);
            part.content_type = Some(match known {
                None => kind.to_owned(),
                Some(mut known) => {
                    known.push(';');
                    known.push_str(&after[..after.len() - attribute.len()]);
                    known.push_str(kind);
                    known
                }
            });
            is_in_type = true;
            rest = &whole[length..];
            continue;
        }
        is_in_type = false;
        let (found, next) = word(value, end);
        match key.as_str() {
            "filename=" => part.file_name = Some(found),
            "headers=" if !found.starts_with(['@', '<']) => part.headers.push(found),
            "headers=" | "encoder=" => part.unknown.push(format!("{key}{found}")),
            // curl skips it with a warning.
            _ => {
                let (_, next) = word(attribute, end);
                rest = next;
                continue;
            }
        }
        rest = next;
    }
    Ok((content, part, rest))
}

/// Word up to `;` or the end character, in quotes or not, and what follows it.
fn word(text: &str, end: Option<char>) -> (String, &str) {
    let is_end = |c: char| c == ';' || Some(c) == end;
    if let Some(inner) = text.strip_prefix('"') {
        let mut content = String::new();
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if inner[at + 1..].starts_with(['\\', '"']) => content.extend(chars.next().map(|(_, c)| c)),
                '"' => {
                    let after = &inner[at + 1..];
                    return (content, &after[after.find(is_end).unwrap_or(after.len())..]);
                }
                c => content.push(c),
            }
        }
    }
    let length = text.find(is_end).unwrap_or(text.len());
    (text[..length].trim_end().to_owned(), &text[length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> FormPart {
        parts(text).unwrap_or_default().pop().unwrap_or_default()
    }

    #[test]
    fn parts_are_read_as_curl_reads_them() {
        let text = |text: &str| FormSource::Text(text.to_owned());
        assert_eq!(one("a=\"x;y\"").source, text("x;y"));
        assert_eq!(one("a= b ;foo").source, text("b"));
        let typed = one("m={\"a\":1};type=application/json; charset=utf-8;filename=\"q\\\"b\"");
        assert_eq!(typed.source, text("{\"a\":1}"));
        assert_eq!(typed.content_type.as_deref(), Some("application/json; charset=utf-8"));
        assert_eq!(typed.file_name.as_deref(), Some("q\"b"));
        assert_eq!(one("a=b;headers=\"X: 1\"").headers, ["X: 1"]);
        assert_eq!(one("n=<note.txt").source, FormSource::TextOf("note.txt".into()));
        let files = parts("f=@a.png;type=image/png,b.txt").unwrap_or_default();
        assert_eq!(files.len(), 2);
        assert_eq!(files[1].source, FormSource::Upload("b.txt".into()));
        assert!(parts("a").is_err() && parts("a=(").is_err() && parts("a=b;type=x").is_err());
    }
}
