//! A service of the test server with its server.

use std::error::Error;
use std::fmt;

use crate::number_range::check_number;
use crate::{functions, grpc, httpbin, llm, ratelimit, shop, sleep, stream, work, ws};
use weir_server::{self as server, MAX_WORKERS, Options, RunningServer};

/// Options of a service and of its server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Service.
    pub service: TestService,
    /// Server; its event loops are as many as `functions` has threads, and one for `sleep`.
    pub server: Options,
}

/// Service of the test server.
#[derive(Clone, Debug)]
pub enum TestService {
    /// Unreliable upstream.
    Work(work::Options),
    /// API with rate limits per key.
    Ratelimit(ratelimit::Options),
    /// Thread-pool server of functions.
    Functions(functions::Options),
    /// Shop.
    Shop(shop::Options),
    /// Blocking and non-blocking delays.
    Sleep(sleep::Options),
    /// Streams of events.
    Stream(stream::Options),
    /// Language model.
    Llm(llm::Options),
    /// Calls of gRPC.
    Grpc(grpc::Options),
    /// Request and response bodies.
    Httpbin(httpbin::Options),
    /// WebSocket server.
    Ws(ws::Options),
}

/// Reason why a service did not start, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeError {
    /// Invalid option, by its flag.
    Options(String),
    /// What the system, a file or the address does not allow.
    Start(String),
}

impl TestService {
    /// Scheme of URLs of its clients.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Grpc(_) => "grpc",
            Self::Ws(_) => "ws",
            _ => "http",
        }
    }
}

impl ServeOptions {
    /// Starts the service inside this process.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(self) -> Result<RunningServer, ServeError> {
        self.check().map_err(ServeError::Options)?;
        self.start_checked().map_err(ServeError::Start)
    }

    fn check(&self) -> Result<(), String> {
        check_number("workers", self.server.workers, 1..=MAX_WORKERS.into())?;
        check_number("max-head", self.server.max_head_bytes, Options::HEAD_BYTES)?;
        check_number("max-headers", self.server.max_header_fields, Options::HEADER_FIELDS)?;
        match &self.service {
            TestService::Work(options) => options.check(),
            TestService::Ratelimit(options) => options.check(),
            TestService::Functions(options) => options.check(),
            TestService::Shop(options) => options.check(),
            TestService::Sleep(options) => options.check(),
            TestService::Stream(options) => options.check(),
            TestService::Llm(options) => options.check(),
            TestService::Grpc(_) => Ok(()),
            TestService::Httpbin(options) => options.check(),
            TestService::Ws(options) => options.check(),
        }
    }

    fn start_checked(self) -> Result<RunningServer, String> {
        let Self { service, server } = self;
        match service {
            TestService::Work(options) => start(text_of(work::Service::new(options))?, &server),
            TestService::Ratelimit(options) => start(ratelimit::Service::new(options), &server),
            TestService::Functions(options) => {
                let server = Options { workers: options.threads, ..server };
                let options = functions::Options { logger: server.logger.clone(), ..options };
                start(text_of(functions::Service::new(options))?, &server)
            }
            TestService::Shop(options) => start(shop::Service::new(options), &server),
            TestService::Sleep(options) => {
                let service = sleep::Service::new(options)
                    .map_err(|error| format!("cannot start the pool: {error}; use fewer --threads"))?;
                start(service, &Options { workers: 1, ..server })
            }
            TestService::Stream(options) => start(stream::Service::new(options)?, &server),
            TestService::Llm(options) => start(llm::Service::new(options)?, &server),
            TestService::Grpc(options) => start(grpc::Service::new(options)?, &server),
            TestService::Httpbin(options) => start(text_of(httpbin::Service::new(options))?, &server),
            TestService::Ws(options) => start(ws::Service::new(options), &server),
        }
    }
}

fn start<S: server::Service>(service: S, options: &Options) -> Result<RunningServer, String> {
    text_of(server::start_boxed(service, options))
}

fn text_of<T>(result: Result<T, impl Error>) -> Result<T, String> {
    result.map_err(|error| error.to_string())
}

impl Error for ServeError {}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(reason) | Self::Start(reason) => f.write_str(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_option_is_named_and_a_taken_address_is_another_error() {
        let of = |server: Options| ServeOptions { service: TestService::Httpbin(httpbin::Options::default()), server };
        let many = Options { workers: 257, ..Options::default() };
        let why = "invalid value '257' for '--workers': 257 is not in 1..=256".to_owned();
        assert_eq!(of(many).start().err(), Some(ServeError::Options(why)));
        let running = of(Options::default()).start().expect("a free port");
        let taken = Options { port: running.address().port(), ..Options::default() };
        let why = of(taken).start().err();
        assert!(matches!(&why, Some(ServeError::Start(why)) if why.contains("cannot listen on")), "{why:?}");
    }
}
