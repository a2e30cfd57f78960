//! What goes to stderr: one line a message, as text or as JSON.

use super::{Common, LogFormat};

/// Says things on stderr.
#[derive(Clone, Copy, Debug)]
pub(super) struct Messages {
    quiet: bool,
    format: LogFormat,
}

impl Messages {
    pub(super) fn new(common: &Common) -> Self {
        Self { quiet: common.quiet, format: common.log_format }
    }

    /// Whether nothing but errors is wanted.
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// What went wrong.
    pub(super) fn error(&self, text: &str) {
        self.say("error", &without_number(text));
    }

    /// What is worth knowing.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            self.say("note", text);
        }
    }

    fn say(&self, level: &str, text: &str) {
        // What a message quotes (a URL, a path) may hold line breaks or steer the terminal.
        let text = text.replace(char::is_control, " ");
        match self.format {
            LogFormat::Text => eprintln!("weir: {text}"),
            LogFormat::Json => eprintln!("{}", serde_json::json!({ "level": level, "message": text })),
        }
    }
}

/// The system's words on an error without its number, which nobody knows by heart.
fn without_number(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" (os error ") else { return text.to_owned() };
    let after = rest.split_once(')').map_or("", |(_, after)| after);
    format!("{before}{after}")
}
