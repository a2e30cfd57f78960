//! The task of a call: makes it, and receives the body of its response as far as there is room.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use http_body_util::BodyExt;
use weir::base::Nanos;
use weir::call::{CallBody, CallBodyError};
use weir::net::client::{OutgoingBody, WireOptions};

use super::exchange::{BodyEnd, Exchange, ExchangeState};
use super::upload::QueuedBody;
use crate::client::engine::{ClientCallOptions, ClientEngine};
use crate::client::request::ClientRequest;
use crate::client::upstream_plan::UpstreamPlan;

/// A call that is ready to begin.
pub(crate) struct ExchangeStart {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) request: Arc<ClientRequest>,
    pub(crate) planned: Arc<UpstreamPlan>,
    /// Whether the request's body comes in pieces.
    pub(crate) is_upload_streamed: bool,
    pub(crate) timeouts: weir::net::client::StepTimeouts,
    /// Longest wait for a permit.
    pub(crate) permit_timeout: Nanos,
}

/// Exchanges of an event loop that Python waits for by futures, and that have changed.
pub(crate) type ChangedExchanges = Rc<RefCell<Vec<Arc<Exchange>>>>;

/// How a task tells Python of a change: by a list, for futures that are set after the turn, or by a signal.
#[derive(Clone, Default)]
pub(crate) struct ChangeNotice {
    changed: Option<ChangedExchanges>,
}

impl ChangeNotice {
    /// A notice for futures.
    pub(crate) fn by(changed: ChangedExchanges) -> Self {
        Self { changed: Some(changed) }
    }

    /// Changes an exchange's state.
    pub(crate) fn change(&self, exchange: &Arc<Exchange>, change: impl FnOnce(&mut ExchangeState)) {
        if exchange.change(change)
            && let Some(changed) = &self.changed
        {
            changed.borrow_mut().push(Arc::clone(exchange));
        }
    }
}

/// Makes the call.
pub(crate) async fn run(engine: Rc<ClientEngine>, start: ExchangeStart, notice: ChangeNotice) {
    let ExchangeStart { exchange, request, planned, is_upload_streamed, timeouts, permit_timeout } = start;
    // A panic would otherwise leave Python waiting.
    let guard = TaskGuard { exchange: &exchange, notice: &notice };
    let body = if is_upload_streamed {
        let queued = QueuedBody { exchange: Arc::clone(&exchange), notice: notice.clone() };
        OutgoingBody::Stream(Box::pin(queued))
    } else if request.body.is_empty() {
        OutgoingBody::Empty
    } else {
        OutgoingBody::Bytes(request.body.clone())
    };
    let options = ClientCallOptions {
        wire: WireOptions { header_lines: request.header_lines.as_deref(), timeouts, keeps_head: true },
        permit_timeout,
    };
    let ended = engine.begin(&request, &planned, body, options).await;
    let max_bytes = planned.plan.success.max_body_bytes;
    let (outcome, rest, permit) = ended.split(engine.timer());
    notice.change(&exchange, |state| {
        state.outcome = Some(outcome);
        if rest.is_none() {
            state.end = Some(BodyEnd::Complete(None));
        }
    });
    if let Some(rest) = rest {
        pump(&exchange, &notice, rest, max_bytes).await;
    }
    drop(permit);
    drop(guard);
}

/// Receives a body piece by piece.
async fn pump(exchange: &Arc<Exchange>, notice: &ChangeNotice, mut body: CallBody, max_bytes: usize) {
    let mut received = 0_usize;
    let mut trailers = None;
    let end = loop {
        poll_fn(|cx| exchange.poll_room(cx)).await;
        let frame = match body.frame().await {
            None => break BodyEnd::Complete(trailers),
            Some(Ok(frame)) => frame,
            Some(Err(CallBodyError::DeadlineExceeded)) => {
                break BodyEnd::Failed("deadline", CallBodyError::DeadlineExceeded.to_string());
            }
            Some(Err(CallBodyError::Upstream(error))) => break BodyEnd::Failed(error.kind.name(), error.text.into()),
        };
        match frame.into_data() {
            Ok(data) => {
                received = received.saturating_add(data.len());
                if received > max_bytes {
                    break BodyEnd::Failed("body", format!("the response is longer than {max_bytes} bytes"));
                }
                if !data.is_empty() {
                    notice.change(exchange, |state| state.push_chunk(data));
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
    };
    drop(body);
    notice.change(exchange, |state| state.end = Some(end));
}

/// Ends an exchange whose task ends before the call does.
struct TaskGuard<'a> {
    exchange: &'a Arc<Exchange>,
    notice: &'a ChangeNotice,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.notice.change(self.exchange, |state| {
            if state.end.is_none() {
                state.end = Some(BodyEnd::Failed("closed", "the call was cancelled".to_owned()));
            }
        });
    }
}
