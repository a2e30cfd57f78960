//! A response's body with a timeout of its pieces.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::body::IncomingBody;
use super::error::SendError;
use super::step_timer::ExchangeStep;
use super::wire_options::StepTimeouts;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::timer::{Sleep, Timer};

/// A body that fails when its next piece is not there within the timeout of reads, and nothing of its request is taken;
/// or, once it is whole, when nothing of its request is taken within that of writes.
#[derive(Debug)]
pub struct TimedBody<'t> {
    body: IncomingBody,
    timer: &'t Timer,
    timeouts: StepTimeouts,
    sleep: Option<(ExchangeStep, Sleep)>,
    /// Bytes of the request that were sent when the wait began.
    sent_bytes: u64,
}

impl<'t> TimedBody<'t> {
    /// Wraps a body; a timeout of [`Nanos::NEVER`] is none.
    pub fn new(body: IncomingBody, timer: &'t Timer, timeouts: StepTimeouts) -> Self {
        Self { body, timer, timeouts, sleep: None, sent_bytes: 0 }
    }

    /// The rest of the body, without a timeout.
    pub fn into_inner(self) -> IncomingBody {
        self.body
    }
}

impl Body for TimedBody<'_> {
    type Data = Bytes;
    type Error = SendError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, SendError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.sleep = None;
            return Poll::Ready(frame);
        }
        let (step, timeout) = match self.body.awaits_request() {
            true => (ExchangeStep::Write, self.timeouts.write),
            false => (ExchangeStep::Read, self.timeouts.read),
        };
        if timeout == Nanos::NEVER {
            return Poll::Pending;
        }
        let (timer, sent_bytes) = (self.timer, self.body.sent_bytes());
        let has_sent = std::mem::replace(&mut self.sent_bytes, sent_bytes) != sent_bytes;
        self.sleep = self.sleep.take().filter(|(of, _)| *of == step && !has_sent);
        let (_, sleep) = self.sleep.get_or_insert_with(|| (step, timer.sleep(timeout)));
        match (Pin::new(sleep).poll(cx), step) {
            (Poll::Pending, _) => Poll::Pending,
            (Poll::Ready(()), ExchangeStep::Write) => Poll::Ready(Some(Err(SendError::not_taken(timeout)))),
            (Poll::Ready(()), ExchangeStep::Read) => {
                let text = format!("nothing more of the response within {timeout}");
                Poll::Ready(Some(Err(SendError::new(FailureKind::Timeout, text))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
