//! `weir serve functions`: functions behind URLs, run by a pool of threads.
//!
//! - `routes`: the seven functions of the document; `query`: what they are called with
//! - `library`: users' functions in C, through `include/weir.h`; `crash`: names the one that crashes
//! - `job`: one call, on a thread of the [`Pool`] or, if it is brief, in the place of one that is free

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

use self::job::Terms;
pub use self::job::{Answer, Call, Document, Job};
use self::library::Functions;
use self::routes::Route;
use super::answers::answer;
use super::pool::{Desk, Missed, Overflow, Pool};
use crate::server::{self, Body, Reply, Tell, Timer, Turn, Unread};

const HTML: HeaderValue = HeaderValue::from_static("text/html");
/// The longest body of a request.
const MOST_BODY: usize = 1 << 20;

/// How the functions are served.
#[derive(Clone, Debug)]
pub struct Options {
    /// Threads that run functions.
    pub threads: usize,
    /// Requests that may wait in the queue for a thread.
    pub queue: usize,
    /// What becomes of those who find it full.
    pub overflow: Overflow,
    /// Users' functions.
    pub libraries: Vec<PathBuf>,
    /// The longest answer of a library's function, in bytes.
    pub most_answer: usize,
    /// Who hears of functions that fail.
    pub tell: Tell,
}

/// The service.
#[derive(Debug)]
pub struct Service {
    pool: Pool<Job>,
    functions: Functions,
    terms: Arc<Terms>,
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
        let mut functions = Functions::new();
        for file in &options.libraries {
            library::load(file, &mut functions).map_err(FunctionsError::Library)?;
        }
        let pool = Pool::new(options.threads, options.queue, options.overflow).map_err(FunctionsError::Threads)?;
        let terms = Arc::new(Terms { most_answer: options.most_answer, tell: options.tell });
        Ok(Self { pool, functions, terms })
    }

    /// The function that a request is for, and what it is called with; or the answer.
    async fn job(&self, request: Request<Incoming>, turn: &Turn) -> Result<Job, Response<Body>> {
        let path = query::path(request.uri().path());
        let route = Route::at(&path);
        let function = self.functions.get(&*path).map(Arc::clone);
        let (Parts { method, uri, .. }, body) = request.into_parts();
        // Read even if nobody wants it: the connection can then be used again.
        let body = if body.is_end_stream() { Ok(Bytes::new()) } else { turn.read(body, MOST_BODY).await };
        if let Some(route) = route {
            return Ok(Job::Document(Document { route, uri }));
        }
        let Some(function) = function else {
            return Err(answer(StatusCode::NOT_FOUND, HTML, "Sorry, requested url/function not found:)"));
        };
        let body = body.map_err(|unread| match unread {
            Unread::TooLong => {
                answer(StatusCode::PAYLOAD_TOO_LARGE, HTML, "Sorry, a request's body may have 1 MiB at most")
            }
            Unread::Broken => answer(StatusCode::BAD_REQUEST, HTML, "Sorry, the request's body is broken"),
        })?;
        let terms = Arc::clone(&self.terms);
        Ok(Job::Library(Box::new(Call { function, method, uri, body, terms })))
    }
}

impl server::Service for Service {
    type Local = Desk<Job>;

    fn settle(&self, _: &Timer) -> io::Result<Desk<Job>> {
        Ok(self.pool.desk())
    }

    async fn answer(&self, desk: &Desk<Job>, request: Request<Incoming>, turn: &Turn) -> Reply {
        let job = match self.job(request, turn).await {
            Ok(job) => job,
            Err(answer) => return answer.into(),
        };
        let made = match desk.ask(job).await {
            Ok(made) => made,
            Err(Missed::Broken) => {
                return answer(StatusCode::INTERNAL_SERVER_ERROR, HTML, "Sorry, this function failed").into();
            }
            Err(Missed::Refused) => {
                return answer(StatusCode::SERVICE_UNAVAILABLE, HTML, "Sorry, too many requests wait").into();
            }
        };
        let mut answer = Response::new(Body::from(made.body));
        *answer.status_mut() = made.status;
        if let Some(headers) = made.headers {
            *answer.headers_mut() = *headers;
        }
        answer.headers_mut().entry(CONTENT_TYPE).or_insert(HTML);
        answer.into()
    }

    /// Functions that have begun may end, also those whose client has left.
    async fn rest(&self, desk: &Desk<Job>) {
        desk.rest().await;
    }

    fn count(&self, registry: &mut Registry) {
        self.pool.count(registry);
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
