//! Flags of the load that a log becomes, of its requests and of its result.

use std::time::Duration;

use clap::Args;

use super::super::connection_args::{CONNECTION, ConnectionArgs};
use super::super::http2_args::Http2Args;
use crate::live_args::{LiveArgs, SpanArgs};
use crate::run_file_args::RunFileArgs;
use weir_base::units;
use weir_load::Options;
use weir_measure::slo::Slo;
use weir_replay::log::log_factor;
use weir_report::ReportFormat;
use weir_session::SessionOptions;

const LOAD: &str = "Load";
const REQUEST: &str = "Request";
const RESULT: &str = "Result";

/// Load that a log becomes, its requests, and its result.
#[derive(Clone, Debug, Args)]
pub(super) struct ReplayLoadArgs {
    /// service's URL; its path is put before those of the log
    #[arg(long, value_name = "URL", required_unless_present = "dry_run", help_heading = REQUEST)]
    target: Option<String>,
    /// request header; repeatable; 'NAME:' removes a default one
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = REQUEST)]
    headers: Vec<String>,
    /// basic authentication
    #[arg(short, long, value_name = "USER:PASSWORD", help_heading = REQUEST)]
    auth: Option<String>,
    /// timeout of a request, and of waiting for a connection [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = REQUEST)]
    timeout: Option<Duration>,

    /// speed, e.g. 2x, 0.5 [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = log_factor, help_heading = LOAD)]
    pub(super) speed: Option<f64>,
    /// begin again at the end of the log, until -d or -n
    #[arg(long = "loop", help_heading = LOAD)]
    pub(super) repeats: bool,
    /// number of requests [default: all of the log]
    #[arg(short = 'n', long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    requests: Option<u64>,
    /// duration; bare numbers are seconds [default: that of the log]
    #[arg(short, long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    duration: Option<Duration>,
    /// maximum of connections [default: 1000]
    #[arg(short, long, value_name = "N", value_parser = units::count, help_heading = LOAD)]
    connections: Option<u64>,
    /// generator threads [default: one per 20,000 requests/s]
    #[arg(short, long, value_name = "N", help_heading = LOAD)]
    threads: Option<u64>,
    /// busy-wait for exact send times; one core per thread
    #[arg(long, help_heading = LOAD)]
    spin: bool,
    /// initial time excluded from the result [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = LOAD)]
    warmup: Option<Duration>,
    /// seed of times within a second [default: 0]
    #[arg(long, value_name = "N", help_heading = LOAD)]
    seed: Option<u64>,

    /// new connection for each request
    #[arg(long = "no-keepalive", help_heading = CONNECTION)]
    no_keep_alive: bool,
    #[command(flatten)]
    http2_args: Http2Args,
    #[command(flatten)]
    connection_args: ConnectionArgs,
    /// TLS server name [default: the URL's host]
    #[arg(long, value_name = "NAME", help_heading = CONNECTION)]
    sni: Option<String>,

    /// objective, e.g. "p99<200ms", "errors<1%"; repeatable; exit code 1
    #[arg(long = "slo", value_name = "OBJECTIVE", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    pub(super) slos: Vec<Slo>,
    /// condition that ends the run with exit code 1, e.g. "errors>20%"
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Slo>, help_heading = RESULT)]
    pub(super) abort: Option<Slo>,
    /// time that --abort looks back [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = RESULT)]
    pub(super) abort_after: Option<Duration>,
    /// exit code 3 if the run is not trusted
    #[arg(long, help_heading = RESULT)]
    strict: bool,
    /// report format on stdout
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
    /// What becomes of the load and its result.
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
            auth: self.auth.clone(),
            timeout: self.timeout,
            connections: self.connections,
            threads: self.threads,
            requests: self.requests,
            duration: self.duration,
            spin: self.spin,
            warmup: self.warmup,
            seed: self.seed,
            no_keepalive: self.no_keep_alive,
            http2: self.http2_args.clone().into_options(),
            sni: self.sni.clone(),
            ..self.connection_args.clone().into_options()
        }
    }
}
