//! Data of `-d` and its kin, as curl puts them together.

use super::marks::{self, MarkTable};
use super::shell_command::ShellInput;
use crate::session::ImportSession;
use weir_base::percent::percent_encode_byte;

/// Piece of the data of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct DataPiece {
    /// Name before encoded data.
    pub(super) name: Option<String>,
    pub(super) source: CurlDataSource,
    /// Whether an `&` stands between it and data before it.
    pub(super) is_joined: bool,
    /// Whether line ends of a file are taken out.
    pub(super) is_stripped: bool,
    /// Whether it is percent-encoded.
    pub(super) is_encoded: bool,
}

/// Source of data.
#[derive(Clone, Debug)]
pub(super) enum CurlDataSource {
    Text(String),
    /// File, by its name; `-` is standard input.
    File(String),
}

impl Default for CurlDataSource {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl DataPiece {
    /// Data of `-d` (`is_stripped`), `--data-binary` or `--json` (not `is_joined`): a text, or a file after `@`.
    pub(super) fn plain(value: String, is_joined: bool, is_stripped: bool) -> Self {
        let source = match value.strip_prefix('@') {
            Some(file) => CurlDataSource::File(file.to_owned()),
            None => CurlDataSource::Text(value),
        };
        Self { source, is_joined, is_stripped, ..Self::default() }
    }

    /// Data of `--data-raw`.
    pub(super) fn raw(value: String) -> Self {
        Self { source: CurlDataSource::Text(value), is_joined: true, ..Self::default() }
    }

    /// Data of `--data-urlencode`: `content`, `=content`, `name=content`, `@file` or `name@file`.
    pub(super) fn encoded(value: &str) -> Self {
        let at = value.find('=').or_else(|| value.find('@'));
        let (name, rest) = at.map_or(("", value), |at| (&value[..at], &value[at + 1..]));
        let is_file = at.is_some_and(|at| value[at..].starts_with('@'));
        let source =
            if is_file { CurlDataSource::File(rest.to_owned()) } else { CurlDataSource::Text(rest.to_owned()) };
        let name = (!name.is_empty()).then(|| name.to_owned());
        Self { name, source, is_joined: true, is_stripped: false, is_encoded: true }
    }

    /// File that is the data as a whole, if nothing of it changes.
    pub(super) fn whole_file(&self) -> Option<&str> {
        match &self.source {
            CurlDataSource::File(file) if !self.is_encoded => Some(file),
            _ => None,
        }
    }

    /// Text of the piece.
    ///
    /// # Errors
    /// Name of a file that cannot be read here.
    pub(super) fn text(&self, reader: &DataReader<'_>) -> Result<String, String> {
        let content = match &self.source {
            CurlDataSource::Text(text) => text.clone(),
            CurlDataSource::File(file) => {
                let mut content = reader.content(file)?;
                if self.is_stripped {
                    content.retain(|c| !matches!(c, '\r' | '\n' | '\0'));
                }
                content
            }
        };
        let content = if self.is_encoded { encode(&content) } else { content };
        Ok(match &self.name {
            Some(name) => format!("{name}={content}"),
            None => content,
        })
    }
}

/// Access to files and to the standard input of a command.
#[derive(Debug)]
pub(super) struct DataReader<'a> {
    pub(super) input: Option<&'a ShellInput>,
    pub(super) session: &'a ImportSession,
    pub(super) marks: &'a MarkTable,
}

impl DataReader<'_> {
    /// Content of a file.
    ///
    /// # Errors
    /// Its name, if it cannot be read here.
    pub(super) fn content(&self, file: &str) -> Result<String, String> {
        let name = match (file, self.input) {
            ("-", Some(ShellInput::Text(text))) => return Ok(text.clone()),
            ("-", Some(ShellInput::Output(command))) => return Err(format!("the output of {command}")),
            ("-", Some(ShellInput::File(file))) => file.clone(),
            ("-", None) => return Err("standard input".to_owned()),
            (file, _) => self.marks.shown(file),
        };
        let Some(bytes) = self.session.read_file(&name) else { return Err(name) };
        let mut content = String::new();
        marks::push_bytes(&mut content, &bytes);
        Ok(content)
    }

    /// Path of a file that has a name.
    pub(super) fn path(&self, file: &str) -> Option<String> {
        match (file, self.input) {
            ("-", Some(ShellInput::File(file))) => Some(file.clone()),
            ("-", _) => None,
            (file, _) => Some(self.marks.shown(file)),
        }
    }
}

/// Percent-encoded text, with a plus for a space, as curl encodes data.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' => out.push('+'),
            c if c.is_ascii_alphanumeric() || "-_.~".contains(c) || marks::is_expression(c) => out.push(c),
            c => match marks::byte_of(c) {
                Some(byte) => out.push_str(percent_encode_byte(byte)),
                None => c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| out.push_str(percent_encode_byte(byte))),
            },
        }
    }
    out
}
