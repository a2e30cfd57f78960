//! Arguments of `weir serve`, and the service's process: it runs until a signal.

mod functions;
mod httpbin;
mod llm;
mod ratelimit;
mod shop;
mod sleep;
mod stream;
mod work;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::exit;
use super::server_args::{SERVER, ServerArgs};
use super::server_lifecycle::ServerLifecycle;
use weir_machine::logger::Logger;
use weir_server::{MAX_WORKERS, Options, RunningServer};
use weir_session::messages::Messages;

/// Arguments of `weir serve`: one service with its own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve work --mix good=9,error=1 --delay 5ms..50ms --seed 1
  weir serve ratelimit --limit 20/1s --limit-headers all

Reference: docs/serve.md")]
pub struct ServeArgs {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, Subcommand)]
enum Service {
    /// unreliable upstream: slow, failing, overloaded: /api/work /stats
    Work(Box<work::WorkArgs>),
    /// API with rate limits per key: /api/request /stats
    Ratelimit(Box<ratelimit::RatelimitArgs>),
    /// thread-pool server of functions, also in C: /square /cube /arithmetic/...
    Functions(Box<functions::FunctionsArgs>),
    /// shop with login, items, cart, purchase: /login /items /cart /buy /logout /stats
    Shop(Box<shop::ShopArgs>),
    /// blocking and non-blocking delays: /sync-loadtest /async-loadtest
    Sleep(Box<sleep::SleepArgs>),
    /// server-sent events, lines of JSON, chunks with known gaps: /sse /ndjson /chunks /record /stats
    Stream(Box<stream::StreamArgs>),
    /// language model of known times, with the APIs of OpenAI and Anthropic: /v1/chat/completions /v1/messages ...
    Llm(Box<llm::LlmArgs>),
    /// request and response bodies: /static /validate /echo /status/{code} /chunked /close /drip /headers
    Httpbin(httpbin::HttpbinArgs),
}

/// Arguments that all services share.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// listen address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", help_heading = SERVER)]
    host: String,
    /// listen port; 0 picks a free one, printed on stdout
    #[arg(short, long, default_value_t = 0, help_heading = SERVER)]
    port: u16,
    /// seed of all random choices, per request number
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
}

/// Number of event loops, for services that can have several.
#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// event-loop threads
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)), help_heading = SERVER)]
    workers: u16,
}

impl ServiceArgs {
    fn options(&self, workers: Option<&WorkerArgs>, logger: Logger) -> Options {
        Options {
            host: self.host.clone(),
            port: self.port,
            workers: workers.map_or(1, |workers| workers.workers.into()),
            ..self.server_args.options(logger)
        }
    }
}

impl ServeArgs {
    fn service_args(&self) -> &ServiceArgs {
        match &self.service {
            Service::Httpbin(args) => args.service_args(),
            Service::Ratelimit(args) => args.service_args(),
            Service::Functions(args) => args.service_args(),
            Service::Shop(args) => args.service_args(),
            Service::Sleep(args) => args.service_args(),
            Service::Work(args) => args.service_args(),
            Service::Stream(args) => args.service_args(),
            Service::Llm(args) => args.service_args(),
        }
    }

    /// Starts the service inside this process.
    ///
    /// # Errors
    /// Reason why it cannot start, in one line.
    pub fn start(self, logger: Logger) -> Result<RunningServer, String> {
        match self.service {
            Service::Httpbin(args) => args.start(logger),
            Service::Ratelimit(args) => args.start(logger),
            Service::Functions(args) => args.start(logger),
            Service::Shop(args) => args.start(logger),
            Service::Sleep(args) => args.start(logger),
            Service::Work(args) => args.start(logger),
            Service::Stream(args) => args.start(logger),
            Service::Llm(args) => args.start(logger),
        }
    }
}

/// Parses arguments, as they follow `weir serve`.
///
/// # Errors
/// First invalid argument, in one line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<ServeArgs, String> {
    #[derive(Parser)]
    #[command(name = "weir serve", no_binary_name = true, disable_help_flag = true)]
    struct ServeCommand {
        #[command(flatten)]
        serve: ServeArgs,
    }
    ServeCommand::try_parse_from(args).map(|command| command.serve).map_err(|error| super::one_line(&error, "serve"))
}

pub(super) fn run(args: ServeArgs, messages: &Messages) -> u8 {
    match try_run(args, *messages) {
        Ok(code) => code,
        Err(reason) => {
            messages.error(&reason);
            exit::USAGE
        }
    }
}

fn try_run(args: ServeArgs, messages: Messages) -> Result<u8, String> {
    let mut lifecycle = ServerLifecycle::new(&[])?;
    let grace = args.service_args().server_args.grace;
    let running = args.start(Logger::new(move |text| messages.note(text)))?;
    let end = lifecycle.run_until_signal(&running.url())?;
    let stopper = running.stop_handle();
    let at_once = move || stopper.stop(Duration::ZERO);
    Ok(lifecycle.finish(end, at_once, || {
        running.stop(grace);
    }))
}
