//! `weir serve`: arguments -> a service that runs until it is told to stop.

mod body;
mod exchange;
mod functions;
mod sleep;
mod work;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::exit;
use super::messages::Messages;
use crate::decide::patience::Limits;
use crate::decide::words;
use crate::server::{Options, Pages, Running, Tell};

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
pub(super) struct Place {
    /// The address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", help_heading = SERVER)]
    host: String,
    /// The port; 0 takes a free one. The first line on stdout says which
    #[arg(short, long, default_value_t = 0, help_heading = SERVER)]
    port: u16,
    /// Repeats all dice: request k has the same fate in every run. Services without dice take it, too
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    /// Append a line of JSON per request to this file; '-' is stderr
    #[arg(long, value_name = "FILE", help_heading = SERVER)]
    access_log: Option<PathBuf>,
    /// How long answers that are owed have at the end
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = words::time, help_heading = SERVER)]
    grace: Duration,
    /// How long a connection may ask for nothing
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = words::time, help_heading = SERVER)]
    idle_timeout: Duration,
    /// How long a request's head may take to arrive
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = words::time, help_heading = SERVER)]
    head_timeout: Duration,
    /// How long a peer may send nothing of a body, or take nothing of an answer
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = words::time, help_heading = SERVER)]
    stall_timeout: Duration,
    /// The longest head of a request; beyond it the answer is 431
    #[arg(long, value_name = "BYTES", default_value_t = 32_768, value_parser = clap::value_parser!(u32).range(8192..=1_048_576), help_heading = SERVER)]
    max_head: u32,
}

/// Event loops, for services that may have several.
#[derive(Debug, Args)]
pub(super) struct Workers {
    /// Event loops, one thread each
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = SERVER)]
    workers: u16,
}

const SERVER: &str = "Server";

impl Place {
    fn options(&self, workers: Option<&Workers>, tell: Tell) -> Options {
        Options {
            host: self.host.clone(),
            port: self.port,
            workers: workers.map_or(1, |workers| workers.workers.into()),
            limits: Limits {
                idle: self.idle_timeout.into(),
                head: self.head_timeout.into(),
                body: self.stall_timeout.into(),
                write: self.stall_timeout.into(),
                ..Limits::default()
            },
            most_head: self.max_head as usize,
            access_log: self.access_log.clone(),
            pages: Pages::default(),
            tell,
        }
    }
}

impl ServeArgs {
    fn place(&self) -> &Place {
        match &self.service {
            Service::Body(asked) => asked.place(),
            Service::Exchange(asked) => asked.place(),
            Service::Functions(asked) => asked.place(),
            Service::Sleep(asked) => asked.place(),
            Service::Work(asked) => asked.place(),
        }
    }

    /// Starts the service inside this process.
    ///
    /// # Errors
    /// Why it cannot run, in one line.
    pub fn start(self, tell: Tell) -> Result<Running, String> {
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
    struct Alone {
        #[command(flatten)]
        serve: ServeArgs,
    }
    Alone::try_parse_from(args).map(|alone| alone.serve).map_err(|error| super::one_line(&error))
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
    // Before the service says that it is there: whoever reads that may send a signal at once.
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let grace = asked.place().grace;
    let running = asked.start(Tell::new(move |text| messages.note(text)))?;
    let line = serde_json::json!({ "listening": running.url() });
    writeln!(io::stdout(), "{line}")
        .and_then(|()| io::stdout().flush())
        .map_err(|error| format!("cannot write to stdout: {error}"))?;
    let signal = signals.forever().next();
    let (handle, stopper) = (signals.handle(), running.stopper());
    thread::scope(|scope| {
        // The second signal ends it at once.
        scope.spawn(move || {
            if signals.forever().next().is_some() {
                stopper.stop(Duration::ZERO);
            }
        });
        running.stop(grace);
        handle.close();
    });
    Ok(if signal == Some(SIGINT) { exit::INTERRUPTED } else { exit::OK })
}
