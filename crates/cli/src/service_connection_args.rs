//! Flags of the connections to one service without pipelining, shared by `llm` and `replay`.

use clap::Args;

use super::connection_args::{CONNECTION, ConnectionArgs};
use super::http2_args::Http2Args;
use weir_load::Options;

/// Reuse, protocol, address and server name of connections.
#[derive(Clone, Debug, Args)]
pub(super) struct ServiceConnectionArgs {
    /// open a new connection for each request
    #[arg(long = "no-keepalive", help_heading = CONNECTION)]
    no_keep_alive: bool,
    #[command(flatten)]
    http2_args: Http2Args,
    #[command(flatten)]
    connection_args: ConnectionArgs,
    /// send this TLS server name [default: the URL's host]
    #[arg(long, value_name = "NAME", help_heading = CONNECTION)]
    sni: Option<String>,
}

impl ServiceConnectionArgs {
    /// Options with these alone.
    pub(super) fn into_options(self) -> Options {
        Options {
            no_keepalive: self.no_keep_alive,
            http2: self.http2_args.into_options(),
            sni: self.sni,
            ..self.connection_args.into_options()
        }
    }
}
