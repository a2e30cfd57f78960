//! Flags of the live page, of the view in the terminal, and of outputs while a load runs.

use std::ffi::OsString;

use clap::Args;

use crate::out_args::{OUTPUTS, OutArgs};
use weir_base::units;
use weir_session::live::LiveOptions;
use weir_web::WebAddress;

pub(crate) const LIVE: &str = "Live";

/// Flags of the live page, and of outputs while the load runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LiveArgs {
    /// serve a page to watch and change the running load [default address: 127.0.0.1:8089]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, help_heading = LIVE)]
    web: Option<Option<WebAddress>>,
    /// set the token in the page's address [default: random]; required unless on loopback
    #[arg(long, value_name = "TOKEN", requires = "web", help_heading = LIVE)]
    web_token: Option<String>,
    /// end when stdin does, as a run of weir ui
    #[arg(long, hide = true, requires = "web")]
    until_stdin_ends: bool,
    /// show a full-screen view in the terminal while the load runs
    #[arg(long, help_heading = LIVE)]
    tui: bool,
    #[command(flatten)]
    out_args: OutArgs,
}

/// Sample of the requests that are traced.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SpanArgs {
    /// trace this fraction of requests, e.g. 1%; spans go to --out-otlp
    #[arg(long, value_name = "FRACTION", value_parser = units::fraction, requires = "out_otlp", help_heading = OUTPUTS)]
    pub(crate) trace: Option<f64>,
}

/// Arguments that `weir ui` adds, without dashes; the command of a run does not have them.
const UI_ARGS: [&str; 6] = ["label", "log-format", "out", "save", "until-stdin-ends", "web"];

impl LiveArgs {
    /// Command line of the run, without what `weir ui` has added.
    pub(crate) fn own_args(&self, args: &[OsString]) -> Vec<OsString> {
        if self.until_stdin_ends {
            let is_added = |arg: &&OsString| {
                let name = arg.to_str().and_then(|arg| arg.strip_prefix("--")?.split('=').next());
                name.is_some_and(|name| UI_ARGS.contains(&name))
            };
            let own = args.iter().skip(1).filter(|arg| !is_added(arg)).cloned();
            return [OsString::from("weir")].into_iter().chain(own).collect();
        }
        args.to_vec()
    }

    /// Options of the flags, with this fraction of requests that are traced.
    pub(crate) fn into_options(self, trace: Option<f64>) -> LiveOptions {
        LiveOptions {
            web: self.web,
            web_token: self.web_token,
            until_stdin_ends: self.until_stdin_ends,
            tui: self.tui,
            outputs: self.out_args.into_options(),
            trace,
        }
    }
}
