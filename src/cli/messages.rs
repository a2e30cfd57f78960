//! What goes to stderr: one line a message, as text or as JSON.

use std::ffi::OsString;
use std::io::{self, Write};

use super::{CommonArgs, LogFormat, exit};

/// Says things on stderr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Messages {
    quiet: bool,
    format: LogFormat,
}

impl Messages {
    pub(super) fn new(common: &CommonArgs) -> Self {
        Self { quiet: common.quiet, format: common.log_format }
    }

    /// For arguments that could not be read: as far as they say how.
    pub(super) fn for_invalid_args(args: &[OsString]) -> Self {
        let json = args.iter().any(|arg| arg == "--log-format=json")
            || args.windows(2).any(|pair| pair[0] == "--log-format" && pair[1] == "json");
        Self { quiet: false, format: if json { LogFormat::Json } else { LogFormat::Text } }
    }

    /// Whether nothing but errors is wanted.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What went wrong.
    pub(super) fn error(&self, text: &str) {
        self.write("error", &without_os_error(text));
    }

    /// What went wrong, as the exit code that it means.
    pub(super) fn usage_error(&self, text: &str) -> u8 {
        self.error(text);
        exit::USAGE
    }

    /// What is worth knowing.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.write("note", text);
        }
    }

    /// What was asked for with a flag: many lines that belong together, the first of them a heading.
    pub(super) fn block(&self, text: &str) {
        match self.format {
            LogFormat::Text => {
                let lines: String = text.lines().map(|line| format!("{}\n", replace_control(line))).collect();
                // One write, so that two tales do not mix.
                let _ = io::stderr().lock().write_all(lines.as_bytes());
            }
            LogFormat::Json => {
                let line = serde_json::json!({ "level": "trace", "message": text.trim_end() });
                let _ = writeln!(io::stderr(), "{line}");
            }
        }
    }

    fn write(&self, level: &str, text: &str) {
        let text = replace_control(text);
        let line = match self.format {
            LogFormat::Text => format!("weir: {text}"),
            LogFormat::Json => serde_json::json!({ "level": level, "message": text }).to_string(),
        };
        // A stderr that takes nothing is told nowhere, and is no reason to fail.
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// What a message quotes (a URL, a path) may hold line breaks or steer the terminal.
fn replace_control(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// The system's words on an error without its number, which nobody knows by heart.
fn without_os_error(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" (os error ") else { return text.to_owned() };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{after}")
}
