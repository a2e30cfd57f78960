//! Logger for the operator of a program.

use std::fmt;
use std::sync::Arc;

/// Logger for the operator of a program.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&str) + Send + Sync>);

impl Logger {
    /// A logger that calls `log` with each message.
    pub fn new(log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(log))
    }

    /// Logs a message.
    pub fn log(&self, text: &str) {
        (self.0)(text);
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logger")
    }
}
