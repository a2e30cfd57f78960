//! Arguments of `weir serve stream`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ServiceArgs, WorkerArgs, named};
use weir_base::units;
use weir_serve::stream::{LineEnd, Options, SseOptions, StreamFaults};
use weir_serve::{TestService, read_delay};
use weir_workload::delay::Delay;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve stream --events 100 --gap 10ms..30ms --port 8080
  weir serve stream --split 3 --line-end mixed --bom --comments 20% --cut 5%")]
pub(super) struct StreamArgs {
    /// send N events per response; ?events=N overrides
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_EVENTS, help_heading = STREAM)]
    events: u64,
    /// delay the first event, e.g. 20ms, 100ms..600ms, @FILE
    #[arg(long, value_name = "DELAY", default_value = "20ms", value_parser = read_delay, help_heading = STREAM)]
    first_delay: Delay,
    /// wait this long between events
    #[arg(long, value_name = "DELAY", default_value = "20ms", value_parser = read_delay, help_heading = STREAM)]
    gap: Delay,
    /// send at least this much data per event, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Options::DEFAULT_EVENT_BYTES, help_heading = STREAM)]
    event_bytes: usize,
    /// pack N events into a packet
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = STREAM)]
    pack: u64,
    /// split an event into N packets
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = STREAM)]
    split: u64,
    /// wait this long between packets of one event
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::time, help_heading = STREAM)]
    split_gap: Duration,
    /// record each response in FILE as a JSON line
    #[arg(long, value_name = "FILE", help_heading = STREAM)]
    record: Option<PathBuf>,
    /// use this line ending
    #[arg(long, default_value = "lf", value_parser = named::<LineEnd>(&LineEnd::NAMES), help_heading = SSE)]
    line_end: LineEnd,
    /// send a byte order mark before the first event
    #[arg(long, help_heading = SSE)]
    bom: bool,
    /// put a comment before this percentage of events
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = SSE)]
    comments: f64,
    /// set the event type [default: none]
    #[arg(long, value_name = "NAME", help_heading = SSE)]
    event_name: Option<String>,
    /// give each event an ID
    #[arg(long, help_heading = SSE)]
    ids: bool,
    /// send a `retry` field before the first event [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = SSE)]
    retry_field: Option<Duration>,
    /// send N lines of data per event
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = SSE)]
    data_lines: u64,
    /// break off this percentage of responses within an event
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    cut: f64,
    /// end this percentage of responses within an event
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    half: f64,
    /// pause before an event in this percentage of responses
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    stall: f64,
    /// pause this long
    #[arg(long, value_name = "DELAY", default_value = "5s", value_parser = read_delay, help_heading = FAULTS)]
    stall_time: Delay,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const STREAM: &str = "Stream";
const SSE: &str = "Server-sent events";
const FAULTS: &str = "Faults";

impl StreamArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            seed: self.service_args.seed,
            events: self.events,
            first_delay: self.first_delay,
            gap: self.gap,
            event_bytes: self.event_bytes,
            pack: self.pack,
            split: self.split,
            split_gap: self.split_gap.into(),
            sse: SseOptions {
                line_end: self.line_end,
                has_bom: self.bom,
                comments: self.comments,
                event_name: self.event_name,
                has_ids: self.ids,
                retry: self.retry_field.map(Into::into),
                data_lines: self.data_lines,
            },
            faults: StreamFaults { cut: self.cut, half: self.half, stall: self.stall, stall_time: self.stall_time },
            record: self.record,
        };
        (TestService::Stream(options), self.service_args, self.workers.workers)
    }
}
