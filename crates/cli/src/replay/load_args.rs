//! Flags of the load that a log becomes, of its requests and of its result.

use std::time::Duration;

use clap::Args;

use crate::auth_timeout_args::{AuthTimeoutArgs, REQUEST};
use crate::live_args::{LiveArgs, SpanArgs};
use crate::run_file_args::RunFileArgs;
use crate::service_connection_args::ServiceConnectionArgs;
use weir_base::units;
use weir_load::Options;
use weir_measure::slo::Slo;
use weir_replay::log::log_factor;
use weir_report::ReportFormat;
use weir_session::SessionOptions;

const LOAD: &str = "Load";
const RESULT: &str = "Result";

/// Load that a log becomes, its requests, and its result.
#[derive(Clone, Debug, Args)]
pub(super) struct ReplayLoadArgs {
    /// send requests to this URL; its path precedes those of the log
    #[arg(long, value_name = "URL", required_unless_present = "dry_run", help_heading = REQUEST)]
    target: Option<String>,
    /// add a request header; 'NAME:' removes a default one; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = REQUEST)]
    headers: Vec<String>,
    #[command(flatten)]
    auth_timeout_args: AuthTimeoutArgs,

    /// replay faster or slower, e.g. 2x, 0.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, help_heading = LOAD)]
    pub(super) speed: Option<f64>,
    /// start over at the end of the log, until -d or -n
    #[arg(long = "loop", help_heading = LOAD)]
    pub(super) repeats: bool,
    /// stop after N requests [default: all of the log]
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    requests: Option<u64>,
    /// run for TIME; bare numbers are seconds [default: as long as the log]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    duration: Option<Duration>,
    /// open at most N connections [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    connections: Option<u64>,
    /// generate load on N threads [default: one per 20,000 requests/s]
    #[arg(short, long, value_name = "N", help_heading = LOAD)]
    threads: Option<u64>,
    /// busy-wait for exact send times; occupies one core per thread
    #[arg(long, help_heading = LOAD)]
    spin: bool,
    /// exclude the first TIME from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    warmup: Option<Duration>,
    /// seed the times within a second [default: 0]
    #[arg(long, value_name = "N", help_heading = LOAD)]
    seed: Option<u64>,

    #[command(flatten)]
    connection_args: ServiceConnectionArgs,

    /// set an objective, e.g. "p99<200ms", "errors<1%"; exit with 1 if missed; repeatable
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    pub(super) slos: Vec<Slo>,
    /// stop the run and exit with 1 on a condition, e.g. "errors>20%"
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    pub(super) abort: Option<Slo>,
    /// evaluate --abort over the last TIME [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    pub(super) abort_after: Option<Duration>,
    /// exit with 3 if the run is not trusted
    #[arg(long, help_heading = RESULT)]
    strict: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text, help_heading = RESULT)]
    pub(super) format: ReportFormat,
    #[command(flatten)]
    file_args: RunFileArgs,

    #[command(flatten)]
    live_args: LiveArgs,
    #[command(flatten)]
    span_args: SpanArgs,
}

impl ReplayLoadArgs {
    /// Options of the load's display and of its result.
    pub(super) fn session(&self) -> SessionOptions {
        SessionOptions {
            files: self.file_args.clone().into_options(),
            live: self.live_args.clone().into_options(self.span_args.trace),
            strict: self.strict,
        }
    }

    /// Service, headers, connections, and the bounds of the load.
    pub(super) fn options(&self) -> Options {
        Options {
            url: self.target.clone().unwrap_or_default(),
            headers: self.headers.clone(),
            auth: self.auth_timeout_args.auth.clone(),
            timeout: self.auth_timeout_args.timeout,
            connections: self.connections,
            threads: self.threads,
            requests: self.requests,
            duration: self.duration,
            spin: self.spin,
            warmup: self.warmup,
            seed: self.seed,
            ..self.connection_args.clone().into_options()
        }
    }
}
