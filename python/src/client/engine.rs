//! A stand-in for the core's engine.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use weir::decide::Nanos;
use weir::machine::timer::Timer;

use super::event_loop::clock;
use super::request::Request;

pub(crate) struct Engine { _timer: Timer }

/// How a call ended.
pub(crate) struct Outcome {
    pub(crate) why: Ended,
    pub(crate) head: Option<Head>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) began: Nanos,
    pub(crate) done: Nanos,
}

pub(crate) struct Head { pub(crate) status: u16, pub(crate) version: http::Version, pub(crate) headers: HeaderMap, pub(crate) body: Bytes }

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended { Answered, AllFailed, Late, Cancelled }

pub(crate) struct Attempt { pub(crate) why: &'static str, pub(crate) upstream: String, pub(crate) end: String, pub(crate) launched: Nanos, pub(crate) ended: Nanos }

impl Engine {
    pub(crate) fn new(timer: Timer) -> Self { Self { _timer: timer } }
    pub(crate) async fn call(&self, request: &Arc<Request>) -> Outcome {
        let began = clock().now();
        tokio::task::yield_now().await;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", http::HeaderValue::from_static("text/plain"));
        headers.insert("content-length", http::HeaderValue::from_static("1024"));
        let done = clock().now();
        Outcome { why: Ended::Answered, head: Some(Head { status: 200, version: http::Version::HTTP_11, headers, body: Bytes::from_static(&[b'x'; 1024]) }),
            attempts: vec![Attempt { why: "first", upstream: request.upstream.clone(), end: "won".into(), launched: began, ended: done }], began, done }
    }
}
