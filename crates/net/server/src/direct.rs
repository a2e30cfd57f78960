//! Requests that a service handles as values, without a future.

use std::fmt;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use weir_machine::executor::BoxedFuture;
use weir_net::wire::PassedFields;

use super::ServiceReply;

/// A request over HTTP/1.1 whose service needs no future for it, as long as nothing unusual happens: it is polled by its
/// connection. Dropping it cancels it.
pub trait DirectRequest: fmt::Debug {
    /// The response, if it comes whole. After None the request goes on as a future.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<WholeResponse>>;

    /// Goes on as a future, from where the request is.
    fn into_future(self: Box<Self>) -> BoxedFuture<'static, ServiceReply>;
}

/// What a service makes of a request at once.
#[expect(clippy::large_enum_variant, reason = "a reply is passed on once; a box would be an allocation per call")]
pub enum DirectReply {
    /// Its reply.
    Ready(ServiceReply),
    /// A request in flight.
    Pending(Box<dyn DirectRequest>),
    /// A future after all.
    Future(BoxedFuture<'static, ServiceReply>),
}

/// A response whose body is there.
#[derive(Debug)]
pub struct WholeResponse {
    /// Status; none of 1xx.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Further headers: see [`ResponseBody::with_passed_fields`](super::ResponseBody::with_passed_fields).
    pub passed: PassedFields,
    /// The body.
    pub body: Bytes,
}

impl fmt::Debug for DirectReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(reply) => f.debug_tuple("Ready").field(reply).finish(),
            Self::Pending(request) => f.debug_tuple("Pending").field(request).finish(),
            Self::Future(_) => f.write_str("Future"),
        }
    }
}
