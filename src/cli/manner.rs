//! How everything that serves does it: its patience and its access log.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::decide::patience::Timeouts;
use crate::decide::words;
use crate::server::{Logger, Options};

/// The heading of these flags in the help.
pub(super) const SERVER: &str = "Server";

/// How to serve, wherever that is.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Append a line of JSON per request to this file; '-' is stderr
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    access_log: Option<PathBuf>,
    /// How long answers that are owed have at the end
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = words::time, help_heading = SERVER)]
    pub(super) grace: Duration,
    /// How long a connection may ask for nothing
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = words::time, help_heading = SERVER)]
    idle_timeout: Duration,
    /// How long a request's head may take to arrive
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = words::time, help_heading = SERVER)]
    head_timeout: Duration,
    /// How long a peer may send nothing of a body, or take nothing of an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = words::time, help_heading = SERVER)]
    stall_timeout: Duration,
    /// The longest head of a request; beyond it the answer is 431
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(8192..=1_048_576), help_heading = SERVER)]
    max_head: u32,
    /// The most header fields of a request; beyond it the answer is 431
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=4096), help_heading = SERVER)]
    max_headers: u32,
}

impl ServerArgs {
    /// The place is the caller's to say.
    pub(super) fn options(&self, tell: Logger) -> Options {
        Options {
            timeouts: Timeouts {
                idle: self.idle_timeout.into(),
                head: self.head_timeout.into(),
                body: self.stall_timeout.into(),
                write: self.stall_timeout.into(),
                ..Timeouts::default()
            },
            max_head_bytes: self.max_head as usize,
            max_header_fields: self.max_headers as usize,
            access_log: self.access_log.clone(),
            logger: tell,
            ..Options::default()
        }
    }
}
