//! `weir serve functions`: functions behind URLs, run by a pool of threads.
//!
//! - `routes`: the seven functions of the document; `query`: what they are called with
//! - `library`: users' functions in C, through `include/weir.h`; `crash`: names the one that crashes
//! - `job`: one call, on a thread of the [`ThreadPool`] or, if it is brief, in the place of one that is free

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
use hyper::body::{Body as _, Incoming};
use prometheus_client::registry::Registry;

use self::job::LibraryOptions;
pub use self::job::{BuiltInCall, FunctionJob, FunctionResponse, LibraryCall};
use self::library::FunctionTable;
use self::routes::BuiltInFunction;
use super::answers::response;
use super::pool::{JobError, PoolHandle, PoolOverflow, ThreadPool};
use crate::server::{self, Logger, ReadBodyError, RequestContext, ResponseBody, ServiceReply, Timer};

const CONTENT_TYPE_HTML: HeaderValue = HeaderValue::from_static("text/html");
/// The longest body of a request.
const MAX_BODY_BYTES: usize = 1 << 20;

/// How the functions are served.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that run functions.
    pub threads: usize,
    /// Requests that may wait in the queue for a thread.
    pub queue: usize,
    /// What becomes of those who find it full.
    pub overflow: PoolOverflow,
    /// Users' functions.
    pub libraries: Vec<PathBuf>,
    /// The longest answer of a library's function, in bytes.
    pub max_response_bytes: usize,
    /// Who hears of functions that fail.
    pub logger: Logger,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    pool: ThreadPool<FunctionJob>,
    functions: FunctionTable,
    library_options: Arc<LibraryOptions>,
}

/// A library that cannot be served: which, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError(String, String);

/// Why the functions cannot be served.
#[derive(Debug)]
pub enum FunctionsError {
    /// A library is not as it should be.
    Library(LibraryError),
    /// The system has not so many threads for us.
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
        let terms = Arc::new(LibraryOptions { max_response_bytes: options.max_response_bytes, logger: options.logger });
        Ok(Self { pool, functions, library_options: terms })
    }

    /// The function that a request is for, and what it is called with; or the answer.
    async fn job(
        &self,
        request: Request<Incoming>,
        turn: &RequestContext,
    ) -> Result<FunctionJob, Response<ResponseBody>> {
        let path = query::path(request.uri().path());
        let route = BuiltInFunction::at(&path);
        let function = self.functions.get(&*path).map(Arc::clone);
        let (Parts { method, uri, .. }, body) = request.into_parts();
        // Read even if nobody wants it: the connection can then be used again.
        let body = if body.is_end_stream() { Ok(Bytes::new()) } else { turn.read_body(body, MAX_BODY_BYTES).await };
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
        let terms = Arc::clone(&self.library_options);
        Ok(FunctionJob::Library(Box::new(LibraryCall { function, method, uri, body, options: terms })))
    }
}

impl server::Service for Service {
    type Local = PoolHandle<FunctionJob>;

    fn init_thread(&self, _: &Timer) -> io::Result<PoolHandle<FunctionJob>> {
        Ok(self.pool.handle())
    }

    async fn handle(
        &self,
        desk: &PoolHandle<FunctionJob>,
        request: Request<Incoming>,
        turn: &RequestContext,
    ) -> ServiceReply {
        let job = match self.job(request, turn).await {
            Ok(job) => job,
            Err(answer) => return answer.into(),
        };
        let made = match desk.submit(job).await {
            Ok(made) => made,
            Err(JobError::Panicked) => {
                return response(StatusCode::INTERNAL_SERVER_ERROR, CONTENT_TYPE_HTML, "Sorry, this function failed")
                    .into();
            }
            Err(JobError::Rejected) => {
                return response(StatusCode::SERVICE_UNAVAILABLE, CONTENT_TYPE_HTML, "Sorry, too many requests wait")
                    .into();
            }
        };
        let mut answer = Response::new(ResponseBody::from(made.body));
        *answer.status_mut() = made.status;
        if let Some(headers) = made.headers {
            *answer.headers_mut() = *headers;
        }
        answer.headers_mut().entry(CONTENT_TYPE).or_insert(CONTENT_TYPE_HTML);
        answer.into()
    }

    /// Functions that have begun may end, also those whose client has left.
    async fn shutdown(&self, desk: &PoolHandle<FunctionJob>) {
        desk.wait_idle().await;
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
            Self::Threads(error) => write!(f, "cannot start the pool: {error}; try fewer --threads"),
        }
    }
}
