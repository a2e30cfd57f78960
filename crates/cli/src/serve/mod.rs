//! Arguments of `weir serve`, and the service's process: it runs until a signal.

mod functions;
mod grpc;
mod httpbin;
mod llm;
mod ratelimit;
mod shop;
mod sleep;
mod stream;
mod work;
mod ws;

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::server_args::{SERVER, ServerArgs};
use weir_command::Messages;
use weir_command::ServerLifecycle;
use weir_machine::logger::Logger;
use weir_serve::{ServeOptions, TestService};
use weir_server::Options;

/// Arguments of `weir serve`: one service with its own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir serve work --mix good=9,error=1 --delay 5ms..50ms --seed 1
  weir serve ratelimit --limit 20/1s --limit-headers all")]
pub(super) struct ServeArgs {
    #[command(subcommand)]
    service: Service,
}

#[derive(Debug, Subcommand)]
enum Service {
    /// Run an unreliable upstream: slow, failing, overloaded (/api/work /stats)
    Work(Box<work::WorkArgs>),
    /// Run an API with rate limits per key (/api/request /stats)
    Ratelimit(Box<ratelimit::RatelimitArgs>),
    /// Run functions, also in C, on a thread pool (/square /cube /arithmetic/...)
    Functions(Box<functions::FunctionsArgs>),
    /// Run a shop with login, items, cart and purchase (/login /items /cart /buy /logout /stats)
    Shop(Box<shop::ShopArgs>),
    /// Delay responses, blocking threads or not (/sync-loadtest /async-loadtest)
    Sleep(Box<sleep::SleepArgs>),
    /// Stream events, JSON lines or chunks with known gaps (/sse /ndjson /chunks /record /stats)
    Stream(Box<stream::StreamArgs>),
    /// Imitate OpenAI's and Anthropic's APIs with known token times (/v1/chat/completions /v1/messages ...)
    Llm(Box<llm::LlmArgs>),
    /// Serve gRPC with reflection, and faults on request (weir.test.v1.Test /stats)
    Grpc(grpc::GrpcServiceArgs),
    /// Serve and check bodies (/static /validate /echo /status/{code} /chunked /close /drip /headers)
    Httpbin(httpbin::HttpbinArgs),
    /// Serve WebSocket with faults (/echo /push /silent /close/{code} /hostile/{name} /stats)
    Ws(Box<ws::WsArgs>),
}

/// Arguments that all services share.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    /// listen on this address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", help_heading = SERVER)]
    host: String,
    /// listen on this port; 0 picks a free one, printed on stdout
    #[arg(short, long, default_value_t = 0, help_heading = SERVER)]
    port: u16,
    /// seed all random choices, per request number
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SERVER)]
    seed: u64,
    #[command(flatten)]
    server_args: ServerArgs,
}

/// Number of event loops, for services that can have several.
#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// run N event-loop threads
    #[arg(short, long, value_name = "N", default_value_t = 1, help_heading = SERVER)]
    workers: usize,
}

impl ServeArgs {
    /// Options of the flags, and the timeout of a stop for requests in flight.
    fn into_options(self, logger: Logger) -> Result<(ServeOptions, Duration), String> {
        let (service, args, workers): (TestService, ServiceArgs, usize) = match self.service {
            Service::Work(args) => args.into_options(),
            Service::Ratelimit(args) => args.into_options()?,
            Service::Functions(args) => args.into_options(),
            Service::Shop(args) => args.into_options(),
            Service::Sleep(args) => args.into_options(),
            Service::Stream(args) => args.into_options(),
            Service::Llm(args) => args.into_options(),
            Service::Grpc(args) => args.into_options(),
            Service::Httpbin(args) => args.into_options(),
            Service::Ws(args) => args.into_options(),
        };
        let server = Options { host: args.host, port: args.port, workers, ..args.server_args.options(logger) };
        Ok((ServeOptions { service, server }, args.server_args.grace))
    }
}

/// Parser of a name, one of `names`.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = String> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

pub(super) fn run(args: ServeArgs, messages: Messages) -> Result<u8, String> {
    let mut lifecycle = ServerLifecycle::new(&[])?;
    let (options, grace) = args.into_options(Logger::new(move |text| messages.note(text)))?;
    let scheme = options.service.scheme();
    let running = options.start().map_err(|error| error.to_string())?;
    let end = lifecycle.run_until_signal(&format!("{scheme}://{}", running.address()))?;
    let stopper = running.stop_handle();
    let at_once = move || stopper.stop(Duration::ZERO);
    Ok(lifecycle.finish(end, at_once, || {
        running.stop(grace);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use weir_serve::{functions, grpc, httpbin, llm, ratelimit, shop, sleep, stream, work, ws};

    #[derive(Parser)]
    struct ServeCommand {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn defaults_of_flags_are_those_of_the_options() {
        let limit = weir_limits::models::LimitWindow::read("20/1s", weir_limits::models::LimitModel::SlidingLog);
        assert_eq!(ratelimit::Options::default().limits, vec![limit.unwrap()]);
        for (name, service) in [
            ("work", TestService::Work(work::Options::default())),
            ("ratelimit", TestService::Ratelimit(ratelimit::Options::default())),
            ("functions", TestService::Functions(functions::Options::default())),
            ("shop", TestService::Shop(shop::Options::default())),
            ("sleep", TestService::Sleep(sleep::Options::default())),
            ("stream", TestService::Stream(stream::Options::default())),
            ("llm", TestService::Llm(llm::Options::default())),
            ("grpc", TestService::Grpc(grpc::Options::default())),
            ("httpbin", TestService::Httpbin(httpbin::Options::default())),
            ("ws", TestService::Ws(ws::Options::default())),
        ] {
            let args = ServeCommand::try_parse_from(["serve", name]).unwrap_or_else(|error| panic!("{error}")).serve;
            let (options, _) = args.into_options(Logger::new(|_| {})).unwrap();
            assert_eq!(format!("{options:?}"), format!("{:?}", ServeOptions { service, server: Options::default() }));
        }
    }
}
