//! Arguments of `weir serve llm`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{ServiceArgs, WorkerArgs};
use weir_base::units;
use weir_serve::llm::pace::LlmPace;
use weir_serve::llm::{Options, TokenRange};
use weir_serve::{TestService, read_delay};
use weir_workload::delay::Delay;
use weir_workload::mix::Mix;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve llm --prefill 50ms --decode 20ms --slots 8 --port 8000
  weir serve llm --model gpt-4o --api-key secret --tokens-per-minute 10000 --mix error=5%")]
pub(super) struct LlmArgs {
    /// serve this model, * for any; repeatable
    #[arg(long = "model", value_name = "NAME", default_value = Options::DEFAULT_MODEL, help_heading = MODEL)]
    models: Vec<String>,
    /// accept this API key; repeatable [default: any, or none]
    #[arg(long = "api-key", value_name = "KEY", help_heading = MODEL)]
    api_keys: Vec<String>,
    /// generate e.g. 64 or 16..128 tokens, up to the request's maximum
    #[arg(long, value_name = "TOKENS", default_value = "16..128", value_parser = TokenRange::parse, help_heading = MODEL)]
    output_tokens: TokenRange,
    /// stream N tokens per event
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MODEL)]
    tokens_per_chunk: u64,
    /// limit prompt and response together to N tokens
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_MAX_CONTEXT, help_heading = MODEL)]
    max_context: u64,
    /// record each response in FILE as a JSON line
    #[arg(long, value_name = "FILE", help_heading = MODEL)]
    record: Option<PathBuf>,
    /// record a prompt's blocks of N tokens, and those seen before
    #[arg(long, value_name = "N", default_value_t = Options::DEFAULT_BLOCK_TOKENS, help_heading = MODEL)]
    block_tokens: u64,
    /// run N requests at once; further ones queue
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = TIMES)]
    slots: usize,
    /// take this long per prefill, plus --prefill-per-token
    #[arg(long, value_name = "DELAY", default_value = "20ms", value_parser = read_delay, help_heading = TIMES)]
    prefill: Delay,
    /// add this prefill time per prompt token
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = units::time, help_heading = TIMES)]
    prefill_per_token: Duration,
    /// take this long per response token when a request runs alone
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = units::time, help_heading = TIMES)]
    decode: Duration,
    /// slow decoding by this percentage per further running request
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = units::fraction, help_heading = TIMES)]
    batch_effect: f64,
    /// vary a token's time by up to this percentage
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = units::fraction, help_heading = TIMES)]
    jitter: f64,
    /// allow N requests per minute and key [default: unlimited]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    requests_per_minute: Option<u64>,
    /// allow N tokens per minute and key [default: unlimited]
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    tokens_per_minute: Option<u64>,
    /// set weights or percentages of good, garbage, error, limited, slow, reset, hang
    #[arg(long, value_name = "WEIGHTS", default_value = "good=1", value_parser = Mix::read, help_heading = FAULTS)]
    mix: Mix,
    /// delay slow responses this long
    #[arg(long, value_name = "DELAY", default_value = "10s", value_parser = read_delay, help_heading = FAULTS)]
    slow_delay: Delay,
    /// stall before this percentage of tokens
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    stall: f64,
    /// stall this long
    #[arg(long, value_name = "DELAY", default_value = "1s", value_parser = read_delay, help_heading = FAULTS)]
    stall_time: Delay,
    /// break off this percentage of streamed responses
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = units::fraction, help_heading = FAULTS)]
    cut: f64,
    #[command(flatten)]
    service_args: ServiceArgs,
    #[command(flatten)]
    workers: WorkerArgs,
}

const MODEL: &str = "Model";
const TIMES: &str = "Times";
const LIMITS: &str = "Rate limits";
const FAULTS: &str = "Faults";

impl LlmArgs {
    pub(super) fn into_options(self) -> (TestService, ServiceArgs, usize) {
        let options = Options {
            seed: self.service_args.seed,
            models: self.models,
            api_keys: self.api_keys,
            pace: LlmPace {
                prefill: self.prefill,
                prefill_per_token: self.prefill_per_token.into(),
                decode: self.decode.into(),
                batch_effect: self.batch_effect,
                jitter: self.jitter,
                stall: self.stall,
                stall_time: self.stall_time,
            },
            slots: self.slots,
            output_tokens: self.output_tokens,
            tokens_per_chunk: self.tokens_per_chunk,
            max_context: self.max_context,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            mix: self.mix,
            slow_delay: self.slow_delay,
            cut: self.cut,
            record: self.record,
            block_tokens: self.block_tokens,
        };
        (TestService::Llm(options), self.service_args, self.workers.workers)
    }
}
