//! Flags that each request has, shared by `load`, `capacity`, `run` and `replay`.

use std::time::Duration;

use clap::Args;

use weir_base::units;

/// Heading of the flags of requests in the help.
pub(super) const REQUEST: &str = "Request";

/// Credentials and timeout of each request.
#[derive(Clone, Debug, Args)]
pub(super) struct AuthTimeoutArgs {
    /// send basic authentication
    #[arg(short, long, value_name = "USER:PASSWORD", help_heading = REQUEST)]
    pub(super) auth: Option<String>,
    /// time out a request, or its wait for a connection [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = REQUEST)]
    pub(super) timeout: Option<Duration>,
}
