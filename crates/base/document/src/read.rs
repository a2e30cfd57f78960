//! Typed access to a TOML document. Type errors are reported with their position, and reading continues.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Diagnostics, one_of, suggestion};
use super::units;
use weir_base::Nanos;

/// Value with its position.
#[derive(Clone, Debug)]
pub struct DocumentNode<'a> {
    value: &'a DeValue<'a>,
    start: usize,
    /// Path of keys.
    pub path: String,
    diagnostics: &'a Diagnostics<'a>,
}

impl<'a> DocumentNode<'a> {
    fn new(value: &'a Spanned<DeValue<'a>>, path: String, diagnostics: &'a Diagnostics<'a>) -> Self {
        Self { value: value.get_ref(), start: value.span().start, path, diagnostics }
    }

    /// Folder to which paths in this value are relative.
    pub fn folder(&self) -> &'a Path {
        self.diagnostics.folder_at(self.start)
    }

    /// Text of a value that was one reference to a variable, and may stand for a number or a boolean.
    fn variable_text(&self) -> Option<&'a str> {
        if self.diagnostics.is_one_reference(self.start) { self.value.as_str() } else { None }
    }

    /// Errors and warnings so far.
    pub fn diagnostics(&self) -> &'a Diagnostics<'a> {
        self.diagnostics
    }

    /// Reports an error at this value.
    pub fn error(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.diagnostics.error(self.start, &self.path, what, remedy);
    }

    /// Records that the value is not a valid `kind`: `invalid time "x"; write ...`.
    pub fn expected(&self, kind: &str, remedy: impl Into<String>) {
        let colon = if self.value.is_array() || self.value.is_table() { ":" } else { "" };
        self.error(format!("invalid {kind}{colon} {}", self.display()), remedy);
    }

    /// Reports a warning at this value.
    pub fn warn(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.diagnostics.warning(self.start, &self.path, what, remedy);
    }

    /// Byte offset.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Whether the value is a table.
    pub fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// Whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.value.is_str()
    }

    /// Whether the value is a whole number, or a variable with one.
    pub fn is_integer(&self) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        self.value.is_integer() || self.variable_text().is_some_and(is_number)
    }

    /// Value as parsed.
    pub fn value(&self) -> &'a DeValue<'a> {
        self.value
    }

    /// Value as text for messages; long strings are truncated. A string with references to variables is shown as it was
    /// written: the variable may be a secret.
    pub fn display(&self) -> String {
        match self.value {
            DeValue::String(text) => {
                let text = self.diagnostics.written(self.start).unwrap_or(text);
                let short: String = text.chars().take(60).collect();
                let dots = if short.len() < text.len() { "..." } else { "" };
                format!("{short:?}{dots}")
            }
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(yes) => yes.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    /// String; None, with an error, if the value is another.
    pub fn string(&self) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.expected("string", "write it in quotes");
        }
        text
    }

    /// Boolean; None, with an error, if the value is another.
    pub fn boolean(&self) -> Option<bool> {
        let yes = self.as_boolean();
        if yes.is_none() {
            self.expected("boolean", "write true or false");
        }
        yes
    }

    /// Boolean; None if the value is another.
    pub fn as_boolean(&self) -> Option<bool> {
        self.value.as_bool().or_else(|| self.variable_text()?.parse().ok())
    }

    /// Whole number of this range; None, with an error, if the value is another.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let number = match self.variable_text() {
            Some(text) => Some(text).filter(|_| self.is_integer()).and_then(|text| text.parse().ok()),
            None => self.value.as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok()),
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let kind = if self.is_integer() { "number" } else { "whole number" };
            self.expected(kind, format!("write one from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// Number of this range; None, with an error, if the value is another.
    pub fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.value {
            DeValue::Integer(n) if n.radix() == 10 => n.as_str().parse::<f64>().ok(),
            DeValue::Float(n) => n.as_str().parse().ok(),
            _ => self.variable_text().and_then(|text| text.parse().ok()),
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.expected("number", format!("write one from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// Time, possibly 0.
    pub fn time_or_zero(&self) -> Option<Nanos> {
        let time = self.value.as_str().and_then(units::time);
        if time.is_none() {
            self.expected("time", r#"write it as "300ms", "1.5s", "2m" or "1h""#);
        }
        time
    }

    /// Time above 0.
    pub fn time(&self) -> Option<Nanos> {
        let time = self.time_or_zero()?;
        if time == Nanos::ZERO {
            self.error("the time has to be above zero", r#"write it as "300ms", "1.5s", "2m" or "1h""#);
        }
        Some(time)
    }

    /// Size in bytes.
    pub fn size(&self, range: RangeInclusive<usize>) -> Option<usize> {
        let size = self.value.as_str().and_then(units::size);
        let Some(size) = size else {
            self.expected("size", r#"write it as "512B", "64KiB" or "1MiB""#);
            return None;
        };
        if !range.contains(&size) {
            let (least, most) = (units::format_size(*range.start()), units::format_size(*range.end()));
            self.expected("size", format!("write one from \"{least}\" to \"{most}\""));
        }
        Some(size)
    }

    /// Value of one of these words.
    pub fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let found = self.value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
        if found.is_none() {
            self.error(format!("unknown value {}", self.display()), one_of(&known));
        }
        found.map(|(_, value)| *value)
    }

    /// Ranges of statuses; None, with errors, if there are none.
    pub fn statuses(&self) -> Option<Vec<RangeInclusive<u16>>> {
        let nodes = if self.value.is_array() { self.list()? } else { vec![self.clone()] };
        if nodes.is_empty() {
            self.error(
                "the list of statuses is empty",
                r#"write it as "200-299,304", as a number, or as a list of such"#,
            );
            return None;
        }
        let mut all = Vec::new();
        for node in nodes {
            match node.status_words() {
                Some(statuses) => all.extend(statuses),
                None => node.expected("status", r#"write it as 304, "200-299" or "2xx", with numbers from 100 to 599"#),
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// Ranges of statuses of one string or number; None if it has none.
    pub fn status_words(&self) -> Option<Vec<RangeInclusive<u16>>> {
        match self.value {
            DeValue::String(text) => units::statuses(text),
            DeValue::Integer(number) if number.radix() == 10 => units::statuses(number.as_str()),
            _ => None,
        }
    }

    /// Members of a list; None, with an error, if the value is another.
    pub fn list(&self) -> Option<Vec<Self>> {
        let Some(list) = self.value.as_array() else {
            self.expected("list", "write it in brackets, [ ... ]");
            return None;
        };
        // A list may be from several files, and is counted in each.
        let (mut file, mut index) = (None, 0);
        let node = |value: &'a Spanned<DeValue<'a>>| {
            let of = self.diagnostics.file_index(value.span().start);
            index = if file.replace(of) == Some(of) { index + 1 } else { 0 };
            Self::new(value, format!("{}[{index}]", self.path), self.diagnostics)
        };
        Some(list.iter().map(node).collect())
    }

    /// Table; None, with an error, if the value is another.
    pub fn table(&self) -> Option<DocumentTable<'a>> {
        let Some(inner) = self.value.as_table() else {
            self.expected("table", "write it in braces, { key = value }");
            return None;
        };
        Some(DocumentTable {
            inner,
            start: self.start,
            path: self.path.clone(),
            diagnostics: self.diagnostics,
            read_keys: RefCell::default(),
        })
    }
}

/// Table with its position. It records the keys that are read; all others are unknown.
#[derive(Debug)]
pub struct DocumentTable<'a> {
    inner: &'a DeTable<'a>,
    start: usize,
    path: String,
    diagnostics: &'a Diagnostics<'a>,
    read_keys: RefCell<Vec<&'static str>>,
}

/// Key that the file's author has chosen, and its value.
#[derive(Debug)]
pub struct NamedNode<'a> {
    /// The key.
    pub key: &'a str,
    /// Byte offset of the key.
    pub start: usize,
    /// Value.
    pub node: DocumentNode<'a>,
}

impl<'a> DocumentTable<'a> {
    /// Root table of a document.
    pub fn root(inner: &'a DeTable<'a>, diagnostics: &'a Diagnostics<'a>) -> Self {
        Self { inner, start: 0, path: String::new(), diagnostics, read_keys: RefCell::default() }
    }

    /// Value of a key, which counts as read from now on.
    pub fn get(&self, key: &'static str) -> Option<DocumentNode<'a>> {
        self.read_keys.borrow_mut().push(key);
        self.inner.get(key).map(|value| DocumentNode::new(value, join_path(&self.path, key), self.diagnostics))
    }

    /// All members, by position.
    pub fn members(&self) -> Vec<NamedNode<'a>> {
        let named = |(key, value): (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>)| {
            let node = DocumentNode::new(value, join_path(&self.path, key.get_ref()), self.diagnostics);
            NamedNode { key: key.get_ref(), start: key.span().start, node }
        };
        let mut members: Vec<NamedNode<'a>> = self.inner.iter().map(named).collect();
        members.sort_by_key(|member| member.start);
        members
    }

    /// Folder to which paths in this table are relative.
    pub fn folder(&self) -> &'a Path {
        self.diagnostics.folder_at(self.start)
    }

    /// Reports an error at this table.
    pub fn error(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.diagnostics.error(self.start, &self.path, what, remedy);
    }

    /// Reports a warning at this table.
    pub fn warn(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.diagnostics.warning(self.start, &self.path, what, remedy);
    }

    /// Reports keys that were not read.
    pub fn check_unknown_keys(&self) {
        // Some keys are read twice.
        let mut known: Vec<&str> = Vec::new();
        for key in self.read_keys.borrow().iter() {
            if !known.contains(key) {
                known.push(key);
            }
        }
        for member in self.members().iter().filter(|member| !known.contains(&member.key)) {
            self.diagnostics.error(member.start, &member.node.path, "unknown key", suggestion(member.key, &known));
        }
    }
}

/// Members of a table of tables. Their names become metric labels, log fields and file names, so they are simple.
pub fn named_nodes<'a>(node: Option<&DocumentNode<'a>>) -> Vec<NamedNode<'a>> {
    let members = node.and_then(DocumentNode::table).map(|table| table.members()).unwrap_or_default();
    for it in &members {
        let simple = it.key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if it.key.is_empty() || it.key.len() > 64 || !simple {
            let what = format!("invalid name {:?}", it.key);
            it.node.diagnostics.error(it.start, &it.node.path, what, "take up to 64 letters, digits, \"-\" and \"_\"");
        }
    }
    members
}

/// `at.key`, with quotes where TOML requires them.
pub(crate) fn join_path(at: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let dot = if at.is_empty() { "" } else { "." };
    if bare { format!("{at}{dot}{key}") } else { format!("{at}{dot}{key:?}") }
}
