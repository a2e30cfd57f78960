//! Arguments of `weir serve hostile-h2`.

use std::io::{self, Write};

use clap::Args;

use super::ServiceArgs;
use weir_base::units;
use weir_serve::hostile_h2::{HostileServer, Options};
use weir_serve::running::RunningService;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve hostile-h2 --violation 20% --goaway 1% --port 8080
  weir serve hostile-h2 --violation 100% --only 'CONTINUATION'

Reference: docs/serve/hostile-h2.md")]
pub(super) struct HostileH2Args {
    /// requests that a violation of RFC 9113 is the response to, in percent
    #[arg(long, value_name = "PERCENT", default_value = "20%", value_parser = units::fraction, help_heading = FAULTS)]
    violation: f64,
    /// requests that GOAWAY leaves unprocessed, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    goaway: f64,
    /// requests whose stream is reset, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    reset: f64,
    /// requests whose connection is closed, in percent
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    close: f64,
    /// violations with this text in their name [default: all]
    #[arg(long, value_name = "TEXT", help_heading = FAULTS)]
    only: Option<String>,
    /// list the violations
    #[arg(long, help_heading = FAULTS)]
    list: bool,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const FAULTS: &str = "Faults";

impl HostileH2Args {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    /// Whether the violations are listed, and nothing is served.
    pub(super) fn lists(&self) -> bool {
        self.list
    }

    fn options(&self) -> Options {
        Options {
            seed: self.service_args.seed,
            violation: self.violation,
            goaway: self.goaway,
            reset: self.reset,
            close: self.close,
            only: self.only.clone(),
        }
    }

    /// Lists the violations on stdout.
    pub(super) fn list(&self) -> Result<(), String> {
        let names = self.options().violations().join("\n");
        writeln!(io::stdout(), "{names}").map_err(|error| format!("cannot write to stdout: {error}"))
    }

    pub(super) fn start(self) -> Result<RunningService, String> {
        let (host, port) = (self.service_args.host.clone(), self.service_args.port);
        let started = HostileServer::start(self.options(), &host, port);
        started.map(RunningService::HostileH2).map_err(|error| format!("cannot serve on {host}:{port}: {error}"))
    }
}
