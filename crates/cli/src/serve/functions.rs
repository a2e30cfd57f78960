//! Arguments of `weir serve functions`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ServiceArgs;
use weir_machine::logger::Logger;
use weir_serve::functions;
use weir_serve::pool::PoolOverflow;
use weir_server::{self as server, Options, RunningServer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve functions --threads 4 --port 8080
  weir serve functions --library ./mine.so --overflow reject

Reference: docs/serve/functions.md")]
pub(super) struct FunctionsArgs {
    /// threads of the pool, and as many event loops
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = FUNCTIONS)]
    threads: u16,
    /// maximum queued requests
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = FUNCTIONS)]
    max_queue: u32,
    /// full queue: wait for room, or reject with 503
    #[arg(long, value_enum, default_value_t = PoolOverflowFlag::Wait, help_heading = FUNCTIONS)]
    overflow: PoolOverflowFlag,
    /// shared library of functions, see include/weir.h; repeatable
    #[arg(long, value_name = "FILE.so", help_heading = FUNCTIONS)]
    library: Vec<PathBuf>,
    /// maximum response of a library function in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..), help_heading = FUNCTIONS)]
    max_response: u32,
    #[command(flatten)]
    service_args: ServiceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PoolOverflowFlag {
    Wait,
    Reject,
}

const FUNCTIONS: &str = "Functions";

impl FunctionsArgs {
    pub(super) fn service_args(&self) -> &ServiceArgs {
        &self.service_args
    }

    pub(super) fn start(self, logger: Logger) -> Result<RunningServer, String> {
        let options = Options { workers: self.threads.into(), ..self.service_args.options(None, logger.clone()) };
        let service = functions::Service::new(functions::Options {
            threads: self.threads.into(),
            queue: self.max_queue as usize,
            overflow: match self.overflow {
                PoolOverflowFlag::Wait => PoolOverflow::Wait,
                PoolOverflowFlag::Reject => PoolOverflow::Reject,
            },
            libraries: self.library,
            max_response_bytes: self.max_response as usize,
            logger,
        });
        server::start(service.map_err(|error| error.to_string())?, &options).map_err(|error| error.to_string())
    }
}
