//! Flags of HTTP/2, shared by `load` and `capacity`.

use clap::Args;

use super::connection_args::CONNECTION;
use weir_load::http2::{Http2Options, Http2Preference};

/// HTTP/2 of connections.
#[derive(Clone, Debug, Args)]
pub(super) struct Http2Args {
    /// use HTTP/2 over TLS, else HTTP/1.1; =only: fail without HTTP/2
    #[arg(
        long,
        value_name = "only",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = preference,
        help_heading = CONNECTION
    )]
    http2: Option<Http2Preference>,
    /// use HTTP/2 without TLS (prior knowledge)
    #[arg(long, help_heading = CONNECTION)]
    h2c: bool,
    /// run N streams per connection: concurrent requests, or users [default: 1]
    #[arg(long, value_name = "N", help_heading = CONNECTION)]
    streams: Option<u64>,
    /// set the flow-control window of each stream [default: 6291456]
    #[arg(long = "h2-window", value_name = "BYTES", help_heading = CONNECTION)]
    h2_window: Option<u64>,
}

impl Http2Args {
    pub(super) fn into_options(self) -> Http2Options {
        Http2Options { over_tls: self.http2, cleartext: self.h2c, streams: self.streams, window_bytes: self.h2_window }
    }
}

fn preference(text: &str) -> Result<Http2Preference, String> {
    match text {
        "" => Ok(Http2Preference::Preferred),
        Http2Preference::ONLY => Ok(Http2Preference::Required),
        _ => Err("write --http2 or --http2=only".to_owned()),
    }
}
