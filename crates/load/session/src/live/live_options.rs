//! Live page, view in the terminal, and outputs while a load runs.

use std::io;
use std::path::Path;

use rustix::process::{Signal, getpid, kill_process};

use super::out_options::OutOptions;
use weir_web::WebAddress;

/// Live page, view in the terminal, and outputs while a load runs.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// Whether there is a page, and its address.
    pub web: Option<Option<WebAddress>>,
    /// Token of the page's address; random without one.
    pub web_token: Option<String>,
    /// Whether the load ends when stdin does, as a run of `weir ui`.
    pub until_stdin_ends: bool,
    /// Whether the view takes the whole screen.
    pub tui: bool,
    /// Outputs.
    pub outputs: OutOptions,
    /// Fraction of requests with a trace.
    pub trace: Option<f64>,
}

impl LiveOptions {
    /// Ends the run when stdin ends, if the page of `weir ui` has started it: also after that was killed.
    pub(crate) fn watch_stdin(&self) {
        if self.until_stdin_ends {
            std::thread::spawn(|| {
                let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
                // As Ctrl-C: what was measured is kept.
                let _ = kill_process(getpid(), Signal::INT);
            });
        }
    }

    /// File of the lines while the run goes on, if it is asked for.
    pub(crate) fn jsonl(&self) -> Option<&Path> {
        self.outputs.jsonl.as_deref()
    }

    /// First given option, named as a flag, of what is of one run.
    pub fn of_one_run(&self) -> Option<&'static str> {
        match () {
            () if self.web.is_some() => Some("--web"),
            () if self.tui => Some("--tui"),
            () if self.trace.is_some() => Some("--trace"),
            () => None,
        }
    }

    /// Token of the page and credentials of outputs, which messages and results leave out.
    pub fn secrets(&self) -> Vec<String> {
        self.web_token.iter().cloned().chain(self.outputs.secrets()).collect()
    }
}
