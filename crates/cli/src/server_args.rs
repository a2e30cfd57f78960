//! The server flags of `weir serve` and `weir gate`: timeouts, limits and the access log.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_machine::logger::Logger;
use weir_server::timeouts::Timeouts;
use weir_server::{AccessLogOptions, Options};

/// Heading of these flags in the help.
pub(super) const SERVER: &str = "Server";

/// Server flags.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// log each request to FILE as a JSON line; - is stderr
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    access_log: Option<PathBuf>,
    /// wait at most this long for requests in flight at shutdown
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::time, help_heading = SERVER)]
    pub(super) grace: Duration,
    /// close keep-alive connections idle this long
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = units::time, help_heading = SERVER)]
    idle_timeout: Duration,
    /// allow this long for reading a request head
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time, help_heading = SERVER)]
    head_timeout: Duration,
    /// time out a body that makes no progress for this long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::time, help_heading = SERVER)]
    stall_timeout: Duration,
    /// require body rates of at least BYTES per second; 0: none
    #[arg(long, value_name = "BYTES", default_value_t = 240, help_heading = SERVER)]
    min_rate: u64,
    /// limit request heads, in bytes; larger ones get 431
    #[arg(long, value_name = "BYTES", default_value_t = 65_536, value_parser = clap::value_parser!(u64).range(Options::HEAD_BYTES), help_heading = SERVER)]
    max_head: u64,
    /// limit header fields per request; more get 431
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u64).range(Options::HEADER_FIELDS), help_heading = SERVER)]
    max_headers: u64,
}

impl ServerArgs {
    /// Server options without a listen address.
    pub(super) fn options(&self, logger: Logger) -> Options {
        Options {
            timeouts: Timeouts {
                idle: self.idle_timeout.into(),
                head: self.head_timeout.into(),
                body: self.stall_timeout.into(),
                write: self.stall_timeout.into(),
                min_bytes_per_s: self.min_rate,
                ..Timeouts::default()
            },
            max_head_bytes: self.max_head as usize,
            max_header_fields: self.max_headers as usize,
            access_log: self.access_log.clone().map(AccessLogOptions::json),
            logger,
            ..Options::default()
        }
    }
}
