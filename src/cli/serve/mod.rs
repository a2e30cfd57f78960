//! `weir serve`: arguments -> a service that runs until it is told to stop.

mod body;
mod exchange;
mod functions;
mod sleep;
mod work;

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use super::exit;
use super::life::ServerLifecycle;
use super::manner::{SERVER, ServerArgs};
use super::messages::Messages;
use crate::server::{Logger, MAX_WORKERS, Options, RunningServer};

/// What `weir serve` takes.
#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, Subcommand)]
enum Service {
    /// Bodies to send and to take: /static /validate /echo /status/{code} /chunked /close /drip /headers
    Body(body::BodyArgs),
    /// An API that limits the rate of each key: /api/request /stats
    Exchange(Box<exchange::ExchangeArgs>),
    /// Functions behind URLs on a pool of threads, and your own in C: /square /cube /helloworld /pingpong /arithmetic/...
    Functions(Box<functions::FunctionsArgs>),
    /// A wait on a thread of a pool, and without a thread: /sync-loadtest /async-loadtest
    Sleep(Box<sleep::SleepArgs>),
    /// An unreliable upstream: GET /api/work takes its time, fails now and then, and may be overloaded
    Work(Box<work::WorkArgs>),
}

/// Where and how every service serves.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// The address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", help_heading = SERVER)]
    host: String,
    /// The port; 0 takes a free one. The first line on stdout says which
    #[arg(short, long, default_value_t = 0, help_heading = SERVER)]
    port: u16,
    /// Repeats all dice: request k has the same fate in every run. Services without dice take it, too
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
}

/// Event loops, for services that may have several.
#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// Event loops, one thread each
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_WORKERS)), help_heading = SERVER)]
    workers: u16,
}

impl ServiceArgs {
    fn options(&self, workers: Option<&WorkerArgs>, tell: Logger) -> Options {
        Options {
            host: self.host.clone(),
            port: self.port,
            workers: workers.map_or(1, |workers| workers.workers.into()),
            ..self.server_args.options(tell)
        }
    }
}

impl ServeArgs {
    fn service_args(&self) -> &ServiceArgs {
        match &self.service {
            Service::Body(asked) => asked.service_args(),
            Service::Exchange(asked) => asked.service_args(),
            Service::Functions(asked) => asked.service_args(),
            Service::Sleep(asked) => asked.service_args(),
            Service::Work(asked) => asked.service_args(),
        }
    }

    /// Starts the service inside this process.
    ///
    /// # Errors
    /// Why it cannot run, in one line.
    pub fn start(self, tell: Logger) -> Result<RunningServer, String> {
        match self.service {
            Service::Body(asked) => asked.start(tell),
            Service::Exchange(asked) => asked.start(tell),
            Service::Functions(asked) => asked.start(tell),
            Service::Sleep(asked) => asked.start(tell),
            Service::Work(asked) => asked.start(tell),
        }
    }
}

/// Reads the arguments that stand after `weir serve`.
///
/// # Errors
/// What is wrong with them, in one line.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<ServeArgs, String> {
    #[derive(Parser)]
    #[command(name = "weir serve", no_binary_name = true, disable_help_flag = true)]
    struct ServeCommand {
        #[command(flatten)]
        serve: ServeArgs,
    }
    ServeCommand::try_parse_from(args).map(|alone| alone.serve).map_err(|error| super::one_line(&error, "serve"))
}

pub(super) fn run(asked: ServeArgs, messages: &Messages) -> u8 {
    match try_run(asked, *messages) {
        Ok(code) => code,
        Err(why) => {
            messages.error(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: ServeArgs, messages: Messages) -> Result<u8, String> {
    let mut life = ServerLifecycle::new(&[])?;
    let grace = asked.service_args().server_args.grace;
    let running = asked.start(Logger::new(move |text| messages.note(text)))?;
    let end = life.run_until_signal(&running.url(), || ())?;
    let stopper = running.stop_handle();
    Ok(life.finish(end, || stopper.stop(Duration::ZERO), || running.stop(grace)))
}
