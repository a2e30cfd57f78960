//! The task of a call: makes it, and receives the body of its response as far as there is room.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::Body;
use weir::base::Nanos;
use weir::call::{CallBody, CallBodyError};
use weir::machine::timer::{Sleep, Timer};
use weir::net::client::buffered_body::too_long;
use weir::net::client::{OutgoingBody, SendError, WireOptions};

use super::change_notice::ChangeNotice;
use super::streamed_call::{BodyEnd, BodyFailure, StreamedCall};
use super::upload::QueuedBody;
use crate::client::engine::{ClientCallOptions, ClientEngine};
use crate::client::request::ClientRequest;
use crate::client::upstream_plan::UpstreamPlan;
use crate::limiter::keyed_rate::RateKey;

/// A call that is ready to begin.
pub(crate) struct StreamedCallStart {
    pub(crate) streamed: Arc<StreamedCall>,
    pub(crate) request: Arc<ClientRequest>,
    pub(crate) planned: Arc<UpstreamPlan>,
    /// Whether the request's body comes in pieces.
    pub(crate) is_upload_streamed: bool,
    pub(crate) timeouts: weir::net::client::StepTimeouts,
    /// Longest wait for a permit.
    pub(crate) permit_timeout: Nanos,
    /// Limit of the rate of its attempts.
    pub(crate) rate: Option<RateKey>,
}

/// Makes the call.
pub(crate) async fn run(engine: Rc<ClientEngine>, start: StreamedCallStart, notice: ChangeNotice) {
    let StreamedCallStart { streamed, request, planned, is_upload_streamed, timeouts, permit_timeout, rate } = start;
    // A panic would otherwise leave Python waiting.
    let guard = TaskGuard { streamed: &streamed, notice: &notice };
    let body = if is_upload_streamed {
        let queued = QueuedBody { streamed: Arc::clone(&streamed), notice: notice.clone() };
        OutgoingBody::Stream(Box::pin(queued))
    } else if request.body.is_empty() {
        OutgoingBody::Empty
    } else {
        OutgoingBody::Bytes(request.body.clone())
    };
    let options = ClientCallOptions {
        wire: WireOptions {
            header_lines: request.header_lines.as_deref(),
            timeouts,
            keeps_head: true,
            ..WireOptions::default()
        },
        permit_timeout,
        rate: rate.as_ref(),
    };
    let until = engine.timer().now() + planned.plan.policy.deadline;
    let ended = engine.begin(&request, &planned, body, options).await;
    let max_bytes = planned.plan.success.max_body_bytes;
    let (outcome, rest, permit) = ended.split(engine.timer());
    notice.change(&streamed, |state| {
        state.outcome = Some(outcome);
        if rest.is_none() {
            state.end = Some(BodyEnd::Complete(None));
        }
    });
    if let Some(rest) = rest {
        let deadline = (until != Nanos::NEVER).then(|| engine.timer().sleep_until(until));
        let write = WriteWait { timer: engine.timer(), timeout: timeouts.write, sleep: None };
        let end = pump(&streamed, &notice, rest, max_bytes, deadline, write).await;
        notice.change(&streamed, |state| state.end = Some(end));
    }
    drop(permit);
    drop(guard);
}

/// Wait of a whole response for the other end to take more of its request.
struct WriteWait<'a> {
    timer: &'a Timer,
    /// Longest wait; [`Nanos::NEVER`] for none.
    timeout: Nanos,
    sleep: Option<Sleep>,
}

impl WriteWait<'_> {
    /// The failure, once the wait was too long.
    fn poll(&mut self, cx: &mut Context<'_>) -> Option<SendError> {
        if self.timeout == Nanos::NEVER {
            return None;
        }
        let sleep = self.sleep.get_or_insert_with(|| self.timer.sleep(self.timeout));
        Pin::new(sleep).poll(cx).is_ready().then(|| SendError::not_taken(self.timeout))
    }
}

/// Receives a body piece by piece, until the deadline also if it is not read. Python is told when no more is there for
/// now, or there is no room: each wake-up of a thread costs as much as a piece.
async fn pump(
    streamed: &Arc<StreamedCall>,
    notice: &ChangeNotice,
    mut body: CallBody,
    max_bytes: usize,
    mut deadline: Option<Sleep>,
    mut write: WriteWait<'_>,
) -> BodyEnd {
    let mut received = 0_usize;
    let mut trailers = None;
    let mut sent_bytes = 0;
    loop {
        if !streamed.has_room() {
            notice.change(streamed, |_| ());
            let has_room = poll_fn(|cx| match (streamed.poll_room(cx), &mut deadline) {
                (Poll::Ready(()), _) => Poll::Ready(true),
                (Poll::Pending, Some(deadline)) => Pin::new(deadline).poll(cx).map(|()| false),
                (Poll::Pending, None) => Poll::Pending,
            });
            if !has_room.await {
                break BodyEnd::Failed(CallBodyError::DeadlineExceeded.into());
            }
        }
        let frame = poll_fn(|cx| {
            let polled = Pin::new(&mut body).poll_frame(cx);
            if polled.is_pending() {
                let sent = body.sent_bytes();
                if std::mem::replace(&mut sent_bytes, sent) != sent {
                    streamed.set_sent_bytes(sent);
                    write.sleep = None;
                }
                if body.awaits_request() {
                    streamed.set_whole();
                    if let Some(error) = write.poll(cx) {
                        return Poll::Ready(Some(Err(CallBodyError::Upstream(error))));
                    }
                }
            }
            if polled.is_pending() && streamed.has_chunks() {
                notice.change(streamed, |_| ());
            }
            polled
        });
        let frame = match frame.await {
            None => break BodyEnd::Complete(trailers),
            Some(Ok(frame)) => frame,
            Some(Err(error)) => break BodyEnd::Failed(error.into()),
        };
        match frame.into_data() {
            Ok(data) => {
                received = received.saturating_add(data.len());
                if received > max_bytes {
                    break BodyEnd::Failed(CallBodyError::Upstream(too_long(max_bytes)).into());
                }
                if !data.is_empty() {
                    streamed.push_chunk(data);
                }
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
    }
}

/// Ends a streamed call whose task ends before the call does.
struct TaskGuard<'a> {
    streamed: &'a Arc<StreamedCall>,
    notice: &'a ChangeNotice,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.notice.change(self.streamed, |state| {
            if state.end.is_none() {
                state.end = Some(BodyEnd::Failed(BodyFailure::new("cancelled", "the call was cancelled")));
            }
        });
    }
}
