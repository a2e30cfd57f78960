//! Flags of the load and of its result.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::super::load::StagesFlag;
use crate::agent_args::AgentArgs;
use crate::capacity::SearchArgs;
use crate::live_args::LiveArgs;
use crate::run_file_args::RunFileArgs;
use weir_base::units;
use weir_llm::load::{LlmLoadOptions, SearchedLoad, SweepValues};
use weir_measure::slo::Slo;
use weir_pace::notation;
use weir_pace::schedule::Arrivals;
use weir_report::llm::LlmReportFormat;
use weir_session::SessionOptions;

const LOAD: &str = "Load";
const RESULT: &str = "Result";

/// Load, and what is made of its result.
#[derive(Clone, Debug, Args)]
pub(super) struct LlmLoadArgs {
    /// hold N conversations at once [default: 8]; open loop: at most N [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    concurrency: Option<u64>,
    /// start conversations evenly over TIME (closed loop) [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    ramp_up: Option<Duration>,
    /// start conversations at this rate (open loop): 4, 0.5, 30/m
    #[arg(short, long, value_name = "RATE", value_parser = units::rate, help_heading = LOAD)]
    rate: Option<f64>,
    /// space arrivals as constant, poisson or gamma:BURSTINESS [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = LOAD)]
    arrivals: Option<Arrivals>,
    /// change the rate over time (open loop), e.g. 0-8/1m,8/5m
    #[arg(long, value_name = "STAGES", value_parser = StagesFlag::read, help_heading = LOAD)]
    stages: Option<StagesFlag>,
    /// run once per value, e.g. rate=1,2,4,8 or concurrency=1,4,16
    #[arg(long, value_name = "FLAG=VALUES", value_parser = str::parse::<SweepValues>, help_heading = LOAD)]
    sweep: Option<SweepValues>,
    /// find the highest concurrency or rate that meets the objectives
    #[arg(long, value_name = "FLAG", value_parser = str::parse::<SearchedLoad>, help_heading = LOAD)]
    capacity: Option<SearchedLoad>,
    /// stop after N conversations
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    num_prompts: Option<u64>,
    /// run for TIME; bare numbers are seconds [default: 30s without -n]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    duration: Option<Duration>,
    /// exclude the first TIME from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    warmup: Option<Duration>,
    /// generate load on N threads [default: 1]
    #[arg(short, long, value_name = "N", help_heading = LOAD)]
    threads: Option<u64>,
    /// seed all random choices [default: 0]
    #[arg(long, value_name = "N", help_heading = LOAD)]
    seed: Option<u64>,

    #[command(flatten)]
    pub(super) search_args: SearchArgs,

    /// set the objectives of a good request, e.g. "ttft:500ms tpot:50ms e2e:5s"
    #[arg(long, value_name = "OBJECTIVES", num_args = 1.., help_heading = RESULT)]
    goodput: Vec<String>,
    /// set an objective, e.g. "ttft.p99<500ms"; exit with 1 if missed; repeatable
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    slos: Vec<Slo>,
    /// count tokens with the model's tokenizer.json where the server reports none
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    tokenizer: Option<PathBuf>,
    /// exit with 3 if the run is not trusted
    #[arg(long, help_heading = RESULT)]
    strict: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = LlmReportFormat::Text, help_heading = RESULT)]
    pub(super) format: LlmReportFormat,
    #[command(flatten)]
    file_args: RunFileArgs,

    #[command(flatten)]
    live_args: LiveArgs,
}

impl LlmLoadArgs {
    /// Options of the load's display and of its result, with this fraction of requests that are traced.
    pub(super) fn session(&self, trace: Option<f64>) -> SessionOptions {
        SessionOptions {
            files: self.file_args.clone().into_options(),
            live: self.live_args.clone().into_options(trace),
            strict: self.strict,
        }
    }

    /// Checks that nothing is given that is of one run where there are several, or of a search where there is none.
    ///
    /// # Errors
    /// One line with the flag.
    pub(super) fn check(&self, session: &SessionOptions) -> Result<(), String> {
        if session.live.trace.is_some() && session.live.outputs.otlp.is_empty() {
            return Err("--trace FRACTION needs --out-otlp, where the spans go".to_owned());
        }
        let of_one_run = session.files.of_one_run().or_else(|| session.live.of_one_run());
        if self.sweep.is_some() {
            if let Some(flag) = of_one_run {
                return Err(format!("{flag} is for one run; a sweep has --out and --html"));
            }
            if session.live.outputs.has_any() {
                return Err(
                    "outputs while it runs (--out-...) are for one run; a sweep has --out and --html".to_owned()
                );
            }
        }
        if self.capacity.is_none() {
            let unused = self.search_args.given().map(|flag| format!("{flag} needs --capacity"));
            return unused.map_or(Ok(()), Err);
        }
        if let Some(flag) = of_one_run {
            return Err(format!("{flag} is for one run; a search has --out and --html"));
        }
        if self.format == LlmReportFormat::Vllm {
            return Err("--format vllm and --capacity cannot be combined; see --from, --to, --step-time".to_owned());
        }
        Ok(())
    }

    /// Options of the load.
    pub(super) fn options(&self) -> LlmLoadOptions {
        LlmLoadOptions {
            concurrency: self.concurrency,
            ramp_up: self.ramp_up,
            rate: self.rate,
            arrivals: self.arrivals,
            stages: self.stages.clone().map(|stages| stages.0).unwrap_or_default(),
            sweep: self.sweep.clone(),
            capacity: self.capacity,
            num_prompts: self.num_prompts,
            duration: self.duration,
            warmup: self.warmup,
            threads: self.threads,
            seed: self.seed,
            goodput: self.goodput.clone(),
            slos: self.slos.clone(),
            tokenizer: self.tokenizer.clone(),
        }
    }

    /// Checks what does not go with agents.
    ///
    /// # Errors
    /// One line with the flag.
    pub(super) fn check_agents(&self, agent_args: &AgentArgs, session: &SessionOptions) -> Result<(), String> {
        if agent_args.are_remote() {
            return Err("weir llm keeps its prompts on this machine; write --on local --agents N".to_owned());
        }
        if self.tokenizer.is_some() {
            return Err("--tokenizer and --on cannot be combined; agents report counts, not each response".to_owned());
        }
        if session.live.trace.is_some() {
            return Err("--trace and --on cannot be combined; agents report counts, not each request".to_owned());
        }
        if session.files.jtl.is_some() {
            return Err("--jtl and --on cannot be combined; agents report counts, not each request".to_owned());
        }
        Ok(())
    }
}
