//! Arguments of `weir serve grpc`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_base::units;
use weir_serve::grpc::Options;
use weir_serve::{TestService, read_delay};
use weir_workload::delay::Delay;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve grpc --port 50051
  weir serve grpc --delay 5ms..50ms --unavailable 1%")]
pub(super) struct GrpcServiceArgs {
    /// delay the first message of a response, e.g. 5ms, 5ms..20ms
    #[arg(long, value_name = "DELAY", default_value = "0ms", value_parser = read_delay, help_heading = CALLS)]
    delay: Delay,
    /// end this percentage of calls with UNAVAILABLE
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = CALLS)]
    unavailable: f64,
    /// disable reflection: clients need the .proto file
    #[arg(long, help_heading = CALLS)]
    no_reflection: bool,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const CALLS: &str = "Calls";

impl GrpcServiceArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            seed: self.service_args.seed,
            delay: self.delay,
            unavailable: self.unavailable,
            has_reflection: !self.no_reflection,
        };
        (TestService::Grpc(options), self.service_args, self.workers.workers)
    }
}
