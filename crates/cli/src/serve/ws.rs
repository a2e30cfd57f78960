//! Arguments of `weir serve ws`.

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_base::units;
use weir_serve::ws::{Options, WebSocketFaults};
use weir_serve::{TestService, read_delay};
use weir_workload::delay::Delay;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve ws --delay 5ms..50ms --port 8080
  weir serve ws --gap 100ms --messages 50 --close 1% --cut 1% --seed 1")]
pub(super) struct WsArgs {
    /// delay each reply of /echo, e.g. 20ms, 5ms..50ms, @FILE
    #[arg(long, value_name = "DELAY", default_value = "0ms", value_parser = read_delay, help_heading = MESSAGES)]
    delay: Delay,
    /// send replies in the order in which their delays end
    #[arg(long, help_heading = MESSAGES)]
    unordered: bool,
    /// wait this long between messages of /push
    #[arg(long, value_name = "DELAY", default_value = "20ms", value_parser = read_delay, help_heading = MESSAGES)]
    gap: Delay,
    /// close /push after N messages; 0: never
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = MESSAGES)]
    messages: u64,
    /// send texts of this length on /push, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Options::DEFAULT_MESSAGE_BYTES, help_heading = MESSAGES)]
    message_bytes: usize,
    /// send each message in N frames
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MESSAGES)]
    fragments: usize,
    /// send a ping between the frames of a message
    #[arg(long, help_heading = MESSAGES)]
    pings: bool,
    /// accept messages up to this length, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Options::DEFAULT_MAX_MESSAGE_BYTES, help_heading = MESSAGES)]
    max_message: u64,
    /// support this subprotocol; repeatable [default: none]
    #[arg(long, value_name = "NAME", help_heading = UPGRADE)]
    subprotocol: Vec<String>,
    /// accept permessage-deflate
    #[arg(long, help_heading = UPGRADE)]
    deflate: bool,
    /// compress each message by itself
    #[arg(long, requires = "deflate", help_heading = UPGRADE)]
    no_context: bool,
    /// reject this percentage of upgrades with 503
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    reject: f64,
    /// break off the connection after this percentage of messages
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    cut: f64,
    /// close the connection after this percentage of messages
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    close: f64,
    /// use this close code for --close
    #[arg(long, value_name = "CODE", default_value_t = Options::DEFAULT_CLOSE_CODE, help_heading = FAULTS)]
    close_code: u16,
    /// ignore this percentage of messages
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    ignore: f64,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const MESSAGES: &str = "Messages";
const UPGRADE: &str = "Upgrade";
const FAULTS: &str = "Faults";

impl WsArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            seed: self.service_args.seed,
            delay: self.delay,
            unordered: self.unordered,
            gap: self.gap,
            messages: self.messages,
            message_bytes: self.message_bytes,
            fragments: self.fragments,
            pings: self.pings,
            subprotocols: self.subprotocol,
            deflate: self.deflate,
            no_context: self.no_context,
            max_message_bytes: self.max_message,
            faults: WebSocketFaults {
                reject: self.reject,
                cut: self.cut,
                close: self.close,
                close_code: self.close_code,
                ignore: self.ignore,
            },
        };
        (TestService::Ws(options), self.service_args, self.workers.workers)
    }
}
