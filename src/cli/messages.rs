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
        self.say("error", text);
    }

    fn say(&self, level: &str, text: &str) {
        match self.format {
            LogFormat::Text => eprintln!("weir: {text}"),
            LogFormat::Json => eprintln!("{}", serde_json::json!({ "level": level, "message": text })),
        }
    }
}
