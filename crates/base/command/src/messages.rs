//! Messages on stderr: one line each, as text or JSON.

use std::io::{self, Write};

use crate::exit;
use weir_base::terminal_text::{json, single_line};
use weir_request::secret_mask::without_secrets;

/// Format of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    /// Text after the program's name.
    Text,
    /// A JSON object per message.
    Json,
}

/// Writer of messages.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    quiet: bool,
    format: MessageFormat,
}

impl Messages {
    /// Writer in this format; `quiet` writes errors only.
    pub fn new(quiet: bool, format: MessageFormat) -> Self {
        Self { quiet, format }
    }

    /// Whether only errors are written (`--quiet`).
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Writes an error, without the secrets of what it quotes: a URL, a header, a line of a file.
    pub fn error(&self, text: &str) {
        self.write("error", &without_secrets(&without_os_error(text)));
    }

    /// Writes errors, one a line; those of a file's lines, which are shown with them, are one message.
    pub fn errors(&self, text: &str) {
        let has_excerpts = text.lines().any(|line| line.starts_with(' '));
        if has_excerpts { self.error(text) } else { text.lines().for_each(|line| self.error(line)) }
    }

    /// Writes an error and returns its exit code.
    pub fn usage_error(&self, text: &str) -> u8 {
        self.error(text);
        exit::USAGE
    }

    /// Exit code of a command: its own, or that of its errors, which are written.
    pub fn exit_code(&self, done: Result<u8, String>) -> u8 {
        done.unwrap_or_else(|why| {
            self.errors(&why);
            exit::USAGE
        })
    }

    /// Writes a note.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.write("note", text);
        }
    }

    /// Writes a note also with `--quiet`.
    pub fn always(&self, text: &str) {
        self.write("note", text);
    }

    /// Writes lines that belong together, such as an attempt log; the first is a heading.
    pub fn block(&self, text: &str) {
        match self.format {
            MessageFormat::Text => {
                let lines: String = text.lines().map(|line| format!("{}\n", single_line(line))).collect();
                // One write, so that two blocks do not mix.
                let _ = io::stderr().lock().write_all(lines.as_bytes());
            }
            MessageFormat::Json => {
                let line = serde_json::json!({ "level": "trace", "message": text.trim_end() });
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }

    fn write(&self, level: &str, text: &str) {
        // Errors in a file have the lines that they are in.
        let text = match text.lines().nth(1).is_some_and(is_excerpt) {
            true => text.lines().map(single_line).collect::<Vec<_>>().join("\n"),
            false => single_line(text),
        };
        let line = match self.format {
            MessageFormat::Text => format!("weir: {text}"),
            MessageFormat::Json => {
                json(&serde_json::json!({ "level": level, "message": text }).to_string()).into_owned()
            }
        };
        // An unwritable stderr is ignored.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// Whether a line is that of a file with its number: `   12 | GET http://h`.
fn is_excerpt(line: &str) -> bool {
    let number = line.split_once(" | ").map(|(number, _)| number.trim_start());
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Error message of the system without its number.
fn without_os_error(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" (os error ") else { return text.to_owned() };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{after}")
}
