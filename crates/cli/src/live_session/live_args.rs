//! Flags of the live page, of the view in the terminal, and of outputs while a load runs.

use std::ffi::OsString;
#[cfg(feature = "web")]
use std::io;
use std::path::Path;

use clap::Args;
#[cfg(feature = "web")]
use rustix::process::{Signal, getpid, kill_process};

#[cfg(feature = "outputs")]
use super::out_args::OUTPUTS;
use super::out_session::OutFlags;
#[cfg(feature = "outputs")]
use weir_base::units;
#[cfg(feature = "web")]
use weir_web::WebAddress;

const LIVE: &str = "Live";

/// Flags of the live page, and of outputs while the load runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LiveArgs {
    /// page to watch and change the load while it runs [default address: 127.0.0.1:8089]
    #[cfg(feature = "web")]
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, require_equals = true, help_heading = LIVE)]
    pub(super) web: Option<Option<WebAddress>>,
    /// token of the page's address [default: random]; needed for addresses of other machines
    #[cfg(feature = "web")]
    #[arg(long, value_name = "TOKEN", requires = "web", help_heading = LIVE)]
    pub(super) web_token: Option<String>,
    /// end when stdin does, as a run of weir ui
    #[cfg(feature = "web")]
    #[arg(long, hide = true, requires = "web")]
    until_stdin_ends: bool,
    /// full-screen view in the terminal while the load runs
    #[cfg(feature = "tui")]
    #[arg(long, help_heading = LIVE)]
    pub(super) tui: bool,
    #[command(flatten)]
    pub(crate) out_flags: OutFlags,
    /// fraction of requests with a traceparent; spans go to --out-otlp, e.g. 1%
    #[cfg(feature = "outputs")]
    #[arg(long, value_name = "FRACTION", value_parser = units::fraction, requires = "out_otlp", help_heading = OUTPUTS)]
    pub(super) trace: Option<f64>,
}

/// Arguments that `weir ui` adds, without dashes; the command of a run does not have them.
#[cfg(feature = "web")]
const UI_ARGS: [&str; 6] = ["label", "log-format", "out", "save", "until-stdin-ends", "web"];

impl LiveArgs {
    /// Whether there is a page.
    pub(super) fn has_page(&self) -> bool {
        #[cfg(feature = "web")]
        return self.web.is_some();
        #[cfg(not(feature = "web"))]
        false
    }

    /// Ends the run when stdin ends, if the page of `weir ui` has started it: also after that was killed.
    pub(crate) fn watch_stdin(&self) {
        #[cfg(feature = "web")]
        if self.until_stdin_ends {
            std::thread::spawn(|| {
                let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
                // As Ctrl-C: what was measured is kept.
                let _ = kill_process(getpid(), Signal::INT);
            });
        }
    }

    /// Command line of the run, without what `weir ui` has added.
    pub(crate) fn own_args(&self, args: &[OsString]) -> Vec<OsString> {
        #[cfg(feature = "web")]
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

    /// File of JSON lines during the run, if one is given.
    pub(crate) fn jsonl(&self) -> Option<&Path> {
        self.out_flags.jsonl()
    }

    /// Whether requests are traced.
    pub(crate) fn has_traces(&self) -> bool {
        #[cfg(feature = "outputs")]
        return self.trace.is_some();
        #[cfg(not(feature = "outputs"))]
        false
    }

    /// First given flag, if there is any, of what is of one run.
    pub(crate) fn flag_of_one_run(&self) -> Option<&'static str> {
        match () {
            () if self.has_page() => Some("--web"),
            () if self.has_tui() => Some("--tui"),
            () if self.has_traces() => Some("--trace"),
            () => None,
        }
    }

    /// Whether the view takes the whole screen.
    pub(crate) fn has_tui(&self) -> bool {
        #[cfg(feature = "tui")]
        return self.tui;
        #[cfg(not(feature = "tui"))]
        false
    }

    /// Token of the page and credentials of outputs, which messages and results leave out.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = Vec::new();
        #[cfg(feature = "web")]
        secrets.extend(self.web_token.clone());
        secrets.extend(self.out_flags.secrets());
        secrets
    }
}
