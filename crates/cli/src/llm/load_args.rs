//! Flags of the load and of its result.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::super::load::StagesFlag;
use super::searched_load::SearchedLoad;
use super::sweep_values::SweepValues;
use super::token_counter::TokenCounter;
use crate::capacity::SearchArgs;
use crate::live_session::LiveArgs;
use crate::run_files::RunFileArgs;
use weir_base::units;
use weir_load::Options;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::slo::Slo;
use weir_pace::notation;
use weir_pace::schedule::Arrivals;
use weir_report::llm::LlmReportFormat;

const LOAD: &str = "Load";
const RESULT: &str = "Result";

/// Default number of conversations at a time.
const DEFAULT_CONCURRENCY: u64 = 8;
/// Default duration.
const DEFAULT_DURATION: Duration = Duration::from_secs(30);

/// Load, and what is made of its result.
#[derive(Clone, Debug, Args)]
pub(super) struct LlmLoadArgs {
    /// closed loop: conversations at a time [default: 8]; open loop: maximum [default: 1000]
    #[arg(short, long, value_name = "N", visible_alias = "max-concurrency", value_parser = units::count, help_heading = LOAD)]
    concurrency: Option<u64>,
    /// closed loop: time over which conversations start, evenly [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    ramp_up: Option<Duration>,
    /// open loop: conversations per second, independent of responses: 4, 0.5, 30/m
    #[arg(short, long, value_name = "RATE", visible_alias = "request-rate", value_parser = units::rate, help_heading = LOAD)]
    rate: Option<f64>,
    /// arrival process: constant, poisson, gamma:BURSTINESS [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = LOAD)]
    arrivals: Option<Arrivals>,
    /// arrival rate over time, e.g. 0-8/1m,8/5m
    #[arg(long, value_name = "STAGES", value_parser = StagesFlag::read, help_heading = LOAD)]
    stages: Option<StagesFlag>,
    /// one run for each value, e.g. rate=1,2,4,8 or concurrency=1,4,16
    #[arg(long, value_name = "FLAG=VALUES", value_parser = str::parse::<SweepValues>, help_heading = LOAD)]
    sweep: Option<SweepValues>,
    /// search for the highest concurrency, or rate, that meets the objectives
    #[arg(long, value_name = "FLAG", value_parser = str::parse::<SearchedLoad>, help_heading = LOAD)]
    capacity: Option<SearchedLoad>,
    /// number of conversations
    #[arg(short = 'n', long, value_name = "N", visible_alias = "request-count", value_parser = units::count, help_heading = LOAD)]
    num_prompts: Option<u64>,
    /// duration; bare numbers are seconds [default: 30s without -n]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    duration: Option<Duration>,
    /// initial time excluded from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    warmup: Option<Duration>,
    /// generator threads [default: 1]
    #[arg(short, long, value_name = "N", help_heading = LOAD)]
    threads: Option<u64>,
    /// seed of all random choices [default: 0]
    #[arg(long, value_name = "N", help_heading = LOAD)]
    seed: Option<u64>,

    #[command(flatten)]
    pub(super) search_args: SearchArgs,

    /// objectives of each request, e.g. "ttft:500ms tpot:50ms e2e:5s"
    #[arg(long, value_name = "OBJECTIVES", num_args = 1.., help_heading = RESULT)]
    goodput: Vec<String>,
    /// objective of the run, e.g. "errors<1%"; repeatable; exit code 1
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    pub(super) slos: Vec<Slo>,
    /// model's tokenizer.json, for tokens that the server does not report
    #[arg(long, value_name = "FILE", help_heading = RESULT)]
    tokenizer: Option<PathBuf>,
    /// exit code 3 if the run is not trusted
    #[arg(long, help_heading = RESULT)]
    pub(super) strict: bool,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = LlmReportFormat::Text, help_heading = RESULT)]
    pub(super) format: LlmReportFormat,
    #[command(flatten)]
    pub(super) file_args: RunFileArgs,

    #[command(flatten)]
    pub(super) live_args: LiveArgs,
}

impl LlmLoadArgs {
    /// Seed of all random choices.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Counter of tokens that the server does not report; none without the flag.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub(super) fn token_counter(&self) -> Result<Option<TokenCounter>, String> {
        self.tokenizer.as_deref().map(TokenCounter::open).transpose()
    }

    /// Values of the sweep, if there is one.
    ///
    /// # Errors
    /// One line, if another flag says the same.
    pub(super) fn sweep(&self) -> Result<Option<SweepValues>, String> {
        let Some(sweep) = &self.sweep else { return Ok(None) };
        let given = [
            ("--stages", self.stages.is_some()),
            ("--rate", sweep.is_of_rate() && self.rate.is_some()),
            ("--concurrency", !sweep.is_of_rate() && self.concurrency.is_some()),
        ];
        if let Some(flag) = self.file_args.of_one_run().or_else(|| self.live_args.flag_of_one_run()) {
            return Err(format!("{flag} is for one run; a sweep has --out and --html"));
        }
        if self.live_args.out_flags.has_any() {
            return Err("outputs while it runs (--out-...) are for one run; a sweep has --out and --html".to_owned());
        }
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} and --sweep do not go together; the sweep has the values")),
            None => Ok(Some(sweep.clone())),
        }
    }

    /// Variable of the capacity search; None without a search.
    ///
    /// # Errors
    /// One line, if another flag does not go with it.
    pub(super) fn capacity(&self) -> Result<Option<SearchedLoad>, String> {
        let Some(searched) = self.capacity else {
            let unused = self.search_args.given().map(|flag| format!("{flag} needs --capacity"));
            return unused.map_or(Ok(None), Err);
        };
        let given = [
            ("--sweep", self.sweep.is_some()),
            ("--stages", self.stages.is_some()),
            ("--rate", self.rate.is_some()),
            ("--concurrency", self.concurrency.is_some() && !searched.is_of_rate()),
            ("--ramp-up", self.ramp_up.is_some()),
            ("--num-prompts", self.num_prompts.is_some()),
            ("--duration", self.duration.is_some()),
            ("--format vllm", self.format == LlmReportFormat::Vllm),
        ];
        if self.tokenizer.is_some() {
            return Err("--tokenizer counts after a run, and --capacity judges each second; leave one out".to_owned());
        }
        if let Some(flag) = self.file_args.of_one_run().or_else(|| self.live_args.flag_of_one_run()) {
            return Err(format!("{flag} is for one run; a search has --out and --html"));
        }
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} and --capacity do not go together; see --from, --to, --step-time")),
            None => Ok(Some(searched)),
        }
    }

    /// Whether the load is an open loop.
    fn is_open(&self) -> bool {
        self.rate.is_some()
            || self.stages.is_some()
            || self.sweep.as_ref().is_some_and(SweepValues::is_of_rate)
            || self.capacity.is_some_and(SearchedLoad::is_of_rate)
    }

    /// Checks that conversations that start over a time are those of a closed loop.
    ///
    /// # Errors
    /// One line, if they are not.
    pub(super) fn check_ramp_up(&self) -> Result<(), String> {
        if self.ramp_up.is_some() && self.is_open() {
            return Err("--ramp-up is for a closed loop; write a rising rate as --stages 0-8/1m".to_owned());
        }
        Ok(())
    }

    /// Objectives of each request; none without the flag.
    ///
    /// # Errors
    /// One line with the invalid objective.
    pub(super) fn goodput(&self) -> Result<GoodputObjectives, String> {
        if self.goodput.is_empty() {
            return Ok(GoodputObjectives::default());
        }
        GoodputObjectives::parse(&self.goodput.join(" ")).map_err(|why| format!("--goodput: {why}"))
    }

    /// Options of a load to an endpoint.
    pub(super) fn options(&self, endpoint: Options) -> Options {
        let default_concurrency = (!self.is_open()).then_some(DEFAULT_CONCURRENCY);
        let concurrency = self.concurrency.or(default_concurrency);
        // Only users start over a time.
        let (connections, users) = if self.ramp_up.is_some() { (None, concurrency) } else { (concurrency, None) };
        let has_end = self.duration.is_some() || self.num_prompts.is_some() || self.stages.is_some();
        Options {
            connections,
            users,
            ramp_up: self.ramp_up,
            threads: Some(self.threads.unwrap_or(1)),
            requests: self.num_prompts,
            duration: self.duration.or((!has_end).then_some(DEFAULT_DURATION)),
            rate: self.rate,
            arrivals: self.arrivals.unwrap_or(Arrivals::Poisson),
            stages: self.stages.clone().map(|stages| stages.0).unwrap_or_default(),
            warmup: self.warmup,
            seed: Some(self.seed()),
            ..endpoint
        }
    }
}
