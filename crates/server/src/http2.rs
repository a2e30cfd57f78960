//! A connection of HTTP/2: hyper's, with a task for each stream. It does not depend on the service, so that it is compiled
//! once for all of them.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::body::ResponseBody;
use super::connection_state::{CloseMode, ConnectionState};
use super::served_stream::ServedStream;
use super::thread_context::NoResponse;
use weir_machine::executor::{BoxedFuture, LocalExecutor};

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http2End {
    /// The peer or the server closed it, or the network failed.
    Closed,
    /// The peer broke the protocol.
    Malformed,
}

/// Response to a request, or none.
pub(super) type Http2Response = BoxedFuture<'static, Result<Response<ResponseBody>, NoResponse>>;

/// Serves a connection until it ends.
pub(super) fn serve<'a>(
    stream: ServedStream,
    max_head_bytes: usize,
    watch: &'a ConnectionState,
    respond: Rc<dyn Fn(Request<Incoming>) -> Http2Response>,
) -> BoxedFuture<'a, Http2End> {
    let mut builder = http2::Builder::new(LocalExecutor);
    builder.max_header_list_size(u32::try_from(max_head_bytes).unwrap_or(u32::MAX)).max_concurrent_streams(250);
    let connection = builder.serve_connection(TokioIo::new(stream), service_fn(move |request| respond(request)));
    Box::pin(async move {
        let mut connection = pin!(connection);
        let mut told = false;
        let ended = poll_fn(|cx| {
            if watch.close_mode() == CloseMode::Drain && !told {
                told = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(cx)
        });
        match ended.await {
            Err(error) if error.is_parse() => Http2End::Malformed,
            _ => Http2End::Closed,
        }
    })
}
