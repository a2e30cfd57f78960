//! `weir serve functions`: functions behind URLs, run by a thread pool.
//!
//! - `routes`: built-in functions, those of the reference function server; `query`: their arguments
//! - `library`: users' functions in C, through `include/weir.h`; `crash`: logs crashes
//! - `job`: one call, on a thread of the [`ThreadPool`] or, if it is brief, in place of a free one

mod crash;
mod job;
mod library;
mod query;
mod routes;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use prometheus_client::registry::Registry;

use self::job::LibraryOptions;
pub use self::job::{BuiltInCall, FunctionJob, FunctionResponse, LibraryCall};
use self::library::FunctionTable;
use self::routes::BuiltInFunction;
use super::pool::{JobError, PoolHandle, PoolOverflow, ThreadPool};
use super::responses::response;
use crate::number_range::check_number;
use weir_machine::logger::Logger;
use weir_server::{
    self as server, MAX_WORKERS, ReadBodyError, RequestBody, RequestContext, ResponseBody, ServiceReply, Timer,
};

const CONTENT_TYPE_HTML: HeaderValue = HeaderValue::from_static("text/html");
/// Maximum body of a request, in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Options of the service.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that run functions; a server has as many event loops.
    pub threads: usize,
    /// Maximum queued requests.
    pub queue: usize,
    /// Behaviour of a full queue.
    pub overflow: PoolOverflow,
    /// Shared libraries of users' functions.
    pub libraries: Vec<PathBuf>,
    /// Maximum response of a library's function, in bytes.
    pub max_response_bytes: usize,
    /// Log of failing functions.
    pub logger: Logger,
}

impl Options {
    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("threads", self.threads, 1..=MAX_WORKERS.into())?;
        check_number("max-queue", self.queue, 1..=1_000_000)?;
        check_number("max-response", self.max_response_bytes, 1..=u32::MAX.into())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 3,
            queue: 20,
            overflow: PoolOverflow::Wait,
            libraries: Vec::new(),
            max_response_bytes: 1 << 20,
            logger: Logger::new(|_| {}),
        }
    }
}

/// Service with built-in functions and those of libraries.
#[derive(Debug)]
pub struct Service {
    pool: ThreadPool<FunctionJob>,
    functions: FunctionTable,
    library_options: Arc<LibraryOptions>,
}

/// Library that cannot be served: its name and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError(String, String);

/// Error at the start of the service.
#[derive(Debug)]
pub enum FunctionsError {
    /// Invalid library.
    Library(LibraryError),
    /// Thread that the system cannot start.
    Threads(io::Error),
}

impl Service {
    /// Loads the libraries and starts the pool.
    ///
    /// # Errors
    /// See [`FunctionsError`].
    pub fn new(options: Options) -> Result<Self, FunctionsError> {
        let mut functions = FunctionTable::new();
        for file in &options.libraries {
            library::load(file, &mut functions).map_err(FunctionsError::Library)?;
        }
        let pool =
            ThreadPool::new(options.threads, options.queue, options.overflow).map_err(FunctionsError::Threads)?;
        let library_options =
            Arc::new(LibraryOptions { max_response_bytes: options.max_response_bytes, logger: options.logger });
        Ok(Self { pool, functions, library_options })
    }

    /// Job of a request; otherwise an error response.
    async fn job(
        &self,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> Result<FunctionJob, Response<ResponseBody>> {
        let path = query::path(request.uri().path());
        let route = BuiltInFunction::at(&path);
        let function = self.functions.get(&*path).map(Arc::clone);
        let (Parts { method, uri, .. }, body) = request.into_parts();
        // Read even if it is ignored, so that the connection can be reused.
        let body = if body.is_end_stream() { Ok(Bytes::new()) } else { context.read_body(body, MAX_BODY_BYTES).await };
        if let Some(route) = route {
            return Ok(FunctionJob::BuiltIn(BuiltInCall { function: route, uri }));
        }
        let Some(function) = function else {
            return Err(response(
                StatusCode::NOT_FOUND,
                CONTENT_TYPE_HTML,
                "Sorry, requested url/function not found:)",
            ));
        };
        let body = body.map_err(|unread| match unread {
            ReadBodyError::TooLong => response(
                StatusCode::PAYLOAD_TOO_LARGE,
                CONTENT_TYPE_HTML,
                "Sorry, a request's body may have 1 MiB at most",
            ),
            ReadBodyError::Broken => {
                response(StatusCode::BAD_REQUEST, CONTENT_TYPE_HTML, "Sorry, the request's body is broken")
            }
        })?;
        let library_options = Arc::clone(&self.library_options);
        Ok(FunctionJob::Library(Box::new(LibraryCall { function, method, uri, body, options: library_options })))
    }
}

impl server::Service for Service {
    type Local = PoolHandle<FunctionJob>;

    fn init_thread(&self, _: &Timer) -> io::Result<PoolHandle<FunctionJob>> {
        Ok(self.pool.handle())
    }

    async fn handle(
        &self,
        pool: &PoolHandle<FunctionJob>,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        let job = match self.job(request, context).await {
            Ok(job) => job,
            Err(reply) => return reply.into(),
        };
        let output = match pool.submit(job).await {
            Ok(output) => output,
            Err(JobError::Panicked) => {
                return response(StatusCode::INTERNAL_SERVER_ERROR, CONTENT_TYPE_HTML, "Sorry, this function failed")
                    .into();
            }
            Err(JobError::Rejected) => {
                return response(StatusCode::SERVICE_UNAVAILABLE, CONTENT_TYPE_HTML, "Sorry, too many requests wait")
                    .into();
            }
        };
        let mut reply = Response::new(ResponseBody::from(output.body));
        *reply.status_mut() = output.status;
        if let Some(headers) = output.headers {
            *reply.headers_mut() = *headers;
        }
        reply.headers_mut().entry(CONTENT_TYPE).or_insert(CONTENT_TYPE_HTML);
        reply.into()
    }

    /// Waits for running functions, also those whose client has disconnected.
    async fn shutdown(&self, pool: &PoolHandle<FunctionJob>) {
        pool.wait_idle().await;
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.pool.register_metrics(registry);
    }
}

impl std::error::Error for LibraryError {}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot serve {}: {}", self.0, self.1)
    }
}

impl std::error::Error for FunctionsError {}

impl fmt::Display for FunctionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Threads(error) => write!(f, "cannot start the pool: {error}; use fewer --threads"),
        }
    }
}
