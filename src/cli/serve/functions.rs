//! `weir serve functions`: its arguments.

use std::path::PathBuf;

use clap::Args;

use super::ServiceArgs;
use crate::serve::functions;
use crate::serve::pool::PoolOverflow;
use crate::server::{self, Logger, Options, RunningServer};

#[derive(Debug, Args)]
pub(super) struct FunctionsArgs {
    /// Threads that read requests and answer with what is brief, and as many that run functions that are not
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = FUNCTIONS)]
    threads: u16,
    /// Requests that may wait in the queue for a thread; more wait in front of it
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = FUNCTIONS)]
    queue: u32,
    /// Refuse who finds the queue full, with 503, instead of having it wait
    #[arg(long = "refuse", help_heading = FUNCTIONS)]
    shed: bool,
    /// A shared library with functions of your own, see include/weir.h; may be given several times
    #[arg(long, value_name = "FILE.so", help_heading = FUNCTIONS)]
    library: Vec<PathBuf>,
    /// The longest answer of a library's function
    #[arg(long = "max-answer", value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = FUNCTIONS)]
    max_response: u32,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const FUNCTIONS: &str = "Functions";

impl FunctionsArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, tell: Logger) -> Result<RunningServer, String> {
        let options = Options { workers: self.threads.into(), ..self.service_args.options(None, tell.clone()) };
        let service = functions::Service::new(functions::Options {
            threads: self.threads.into(),
            queue: self.queue as usize,
            overflow: if self.shed { PoolOverflow::Reject } else { PoolOverflow::Wait },
            libraries: self.library,
            max_response_bytes: self.max_response as usize,
            logger: tell,
        });
        server::start(service.map_err(|error| error.to_string())?, &options).map_err(|error| error.to_string())
    }
}
