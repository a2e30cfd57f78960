//! Arguments of `weir serve functions`.

use std::path::PathBuf;

use clap::Args;

use super::{ServiceArgs, named};
use weir_serve::TestService;
use weir_serve::functions::Options;
use weir_serve::pool::PoolOverflow;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve functions --threads 4 --port 8080
  weir serve functions --library ./mine.so --overflow reject")]
pub(super) struct FunctionsArgs {
    /// run N pool threads, and N event loops
    #[arg(short, long, value_name = "N", default_value_t = 3, help_heading = FUNCTIONS)]
    threads: usize,
    /// queue at most N requests
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = FUNCTIONS)]
    max_queue: usize,
    /// wait for room when the queue is full, or reject with 503
    #[arg(long, default_value = "wait", value_parser = named::<PoolOverflow>(&PoolOverflow::NAMES), help_heading = FUNCTIONS)]
    overflow: PoolOverflow,
    /// load this shared library of functions, see include/weir.h; repeatable
    #[arg(long, value_name = "FILE.so", help_heading = FUNCTIONS)]
    library: Vec<PathBuf>,
    /// limit responses of library functions, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, help_heading = FUNCTIONS)]
    max_response: usize,
    #[command(flatten)]
    service_args: ServiceArgs,
}

const FUNCTIONS: &str = "Functions";

impl FunctionsArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            threads: self.threads,
            queue: self.max_queue,
            overflow: self.overflow,
            libraries: self.library,
            max_response_bytes: self.max_response,
            ..Options::default()
        };
        (TestService::Functions(options), self.service_args, 1)
    }
}
