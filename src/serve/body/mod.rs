//! `weir serve body`: bodies to send and to take, a small httpbin for load tests.

use std::io;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;

use super::answers::{bad_request, not_found};
use crate::server::{self, Body, Page, Reply, RequestBody, Timer, Turn};

/// What /static sends unless asked for another length.
const STATIC_BYTES: u64 = 5 << 20;
const MOST_BYTES: u64 = 1 << 40;

/// The service.
#[derive(Debug)]
pub struct Service {
    page: Arc<Page>,
}

impl Service {
    /// A service with its page filled.
    ///
    /// # Errors
    /// When the system has no memory file for us.
    pub fn new() -> io::Result<Self> {
        let line = b"weir: sixty-four bytes of a body that is the same in every line\n";
        Ok(Self { page: Arc::new(Page::new(line.repeat((1 << 20) / line.len()))?) })
    }
}

impl server::Service for Service {
    type Local = ();

    fn settle(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    fn page(&self) -> Option<Arc<Page>> {
        Some(Arc::clone(&self.page))
    }

    async fn answer(&self, (): &(), request: Request<Incoming>, _: &Turn) -> Reply {
        let answer = match request.uri().path() {
            "/echo" => {
                let (head, body) = request.into_parts();
                let mut answer = Response::new(Body::from(RequestBody(body)));
                if let Some(kind) = head.headers.get(CONTENT_TYPE) {
                    answer.headers_mut().insert(CONTENT_TYPE, kind.clone());
                }
                answer
            }
            "/static" => {
                let bytes = match request.uri().query().and_then(|query| query.strip_prefix("bytes=")) {
                    None => Some(STATIC_BYTES),
                    Some(text) => text.parse().ok().filter(|bytes| *bytes <= MOST_BYTES),
                };
                match bytes {
                    Some(bytes) => {
                        let mut answer = Response::new(Body::repeated(&self.page, bytes));
                        let kind = HeaderValue::from_static("application/octet-stream");
                        answer.headers_mut().insert(CONTENT_TYPE, kind);
                        answer
                    }
                    None => bad_request("bytes: a whole number up to 2^40"),
                }
            }
            _ => not_found(),
        };
        answer.into()
    }
}
