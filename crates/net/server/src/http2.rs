//! A connection of HTTP/2: hyper's, with a task for each stream. It does not depend on the service, so that it is compiled
//! once for all of them.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::body::ResponseBody;
use super::budgeted_stream::BudgetedStream;
use super::coarse_clock::CoarseClock;
use super::connection_state::{CloseMode, ConnectionState};
use super::served_stream::ServedStream;
use super::stream_progress::StreamProgress;
use super::thread_context::NoResponse;
use weir_machine::executor::BoxedFuture;
use weir_retry::grpc::is_grpc;

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http2End {
    /// The peer or the server closed it, or the network failed.
    Closed,
    /// The peer broke the protocol.
    Malformed,
    /// The peer exceeded the budget for frames that carry nothing.
    ControlFlood,
}

/// Response to a request, or none.
pub(super) type Http2Response = BoxedFuture<'static, Result<Response<ResponseBody>, NoResponse>>;

/// Handler of a request and its stream.
pub(super) type Http2Handler = Rc<dyn Fn(Request<Incoming>, Rc<StreamProgress>) -> Http2Response>;

/// Serves a connection until it ends.
pub(super) fn serve<'a>(
    stream: ServedStream,
    max_head_bytes: usize,
    watch: &'a Rc<ConnectionState>,
    coarse_clock: CoarseClock,
    respond: Http2Handler,
) -> BoxedFuture<'a, Http2End> {
    let stream = BudgetedStream::new(stream, Rc::clone(watch), coarse_clock.clone());
    let executor = StreamExecutor { connection: Rc::clone(watch), next: Rc::default() };
    let next = Rc::clone(&executor.next);
    let mut builder = http2::Builder::new(executor);
    builder.max_header_list_size(u32::try_from(max_head_bytes).unwrap_or(u32::MAX)).max_concurrent_streams(250);
    let handle = move |request: Request<Incoming>| {
        let is_grpc = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        let progress = Rc::new(StreamProgress::new(coarse_clock.clone(), is_grpc));
        next.set(Some(Rc::clone(&progress)));
        respond(request, progress)
    };
    let connection = builder.serve_connection(TokioIo::new(stream), service_fn(handle));
    Box::pin(async move {
        let mut connection = pin!(connection);
        let mut has_drained = false;
        let ended = poll_fn(|cx| {
            if watch.close_mode() == CloseMode::Drain && !has_drained {
                has_drained = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(cx)
        });
        match ended.await {
            Err(_) if watch.is_control_flood() => Http2End::ControlFlood,
            Err(error) if error.is_parse() => Http2End::Malformed,
            _ => Http2End::Closed,
        }
    })
}

/// Runs the streams of a connection on its thread, each until it is cut.
#[derive(Clone)]
struct StreamExecutor {
    connection: Rc<ConnectionState>,
    /// Stream of the request that was handed to the service last: its task comes next.
    next: Rc<Cell<Option<Rc<StreamProgress>>>>,
}

impl<F: Future + 'static> hyper::rt::Executor<F> for StreamExecutor
where
    F::Output: 'static,
{
    fn execute(&self, task: F) {
        let Some(progress) = self.next.take() else {
            tokio::task::spawn_local(task);
            return;
        };
        let key = self.connection.streams.add(Rc::clone(&progress));
        let open = OpenStreamGuard { connection: Rc::clone(&self.connection), key };
        tokio::task::spawn_local(async move {
            let _open = open;
            let mut task = pin!(task);
            poll_fn(|cx| {
                if progress.is_cut() {
                    return Poll::Ready(());
                }
                progress.set_task(cx);
                task.as_mut().poll(cx).map(|_| ())
            })
            .await;
        });
    }
}

/// Removes a stream from the open ones when dropped.
struct OpenStreamGuard {
    connection: Rc<ConnectionState>,
    key: usize,
}

impl Drop for OpenStreamGuard {
    fn drop(&mut self) {
        self.connection.streams.remove(self.key);
    }
}
