//! `weir serve functions`: its arguments.

use std::path::PathBuf;

use clap::Args;

use super::Place;
use crate::serve::functions;
use crate::serve::pool::Overflow;
use crate::server::{self, Options, Running, Tell};

#[derive(Debug, Args)]
pub(super) struct FunctionsArgs {
    /// Threads that read requests and answer with what is brief, and as many that run functions that are not
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = FUNCTIONS)]
    threads: u16,
    /// Requests that may wait in the queue for a thread; more wait in front of it
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = FUNCTIONS)]
    queue: u32,
    /// Refuse who finds the queue full, with 503, instead of having it wait
    #[arg(long, help_heading = FUNCTIONS)]
    refuse: bool,
    /// A shared library with functions of your own, see include/weir.h; may be given several times
    #[arg(long, value_name = "FILE.so", help_heading = FUNCTIONS)]
    library: Vec<PathBuf>,
    /// The longest answer of a library's function
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = FUNCTIONS)]
    max_answer: u32,
    #[command(flatten)]
    place: Place,
}

const FUNCTIONS: &str = "Functions";

impl FunctionsArgs {
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn start(self, tell: Tell) -> Result<Running, String> {
        let options = Options { workers: self.threads.into(), ..self.place.options(None, tell.clone()) };
        let service = functions::Service::new(functions::Options {
            threads: self.threads.into(),
            queue: self.queue as usize,
            overflow: if self.refuse { Overflow::Refuse } else { Overflow::Wait },
            libraries: self.library,
            most_answer: self.max_answer as usize,
            tell,
        });
        server::start(service.map_err(|error| error.to_string())?, &options).map_err(|error| error.to_string())
    }
}
