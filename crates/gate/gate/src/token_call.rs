//! Calls on routes with a rate limit in tokens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};

use super::routed::RoutedRequest;
use super::token_limit::{TokenCharge, TokenEstimate};
use weir_base::Nanos;
use weir_call::CallFailure;
use weir_net::client::OutgoingBody;
use weir_resilience::admission::{Priority, Rejection, RejectionReason};
use weir_server::ResponseBody;

impl RoutedRequest<'_> {
    /// Takes the tokens that the request asks for, if the route's rate limit is one of tokens; returns the failure of a
    /// call whose caller has too few.
    pub(super) fn charge_tokens(
        &self,
        body: &OutgoingBody,
        length: Option<u64>,
        priority: Priority,
    ) -> Option<CallFailure> {
        let policy = &self.route.caller_policy;
        if !policy.counts_tokens() {
            return None;
        }
        let estimate = match body {
            OutgoingBody::Bytes(bytes) => TokenEstimate::of_body(bytes),
            OutgoingBody::Empty => TokenEstimate::of_length(0),
            // A body of unknown length is longer than the buffer.
            OutgoingBody::Stream(_) => TokenEstimate::of_length(length.unwrap_or(self.route.buffer as u64)),
        };
        let now = self.engine.timer().now();
        let (key, admitted, bucket) = policy.charge(now, &self.decision.caller, estimate.total);
        self.bucket.set(bucket);
        if let Err(retry_after) = admitted {
            self.tokens.too_many.set((retry_after == Nanos::NEVER).then_some(estimate.total));
            let rejection = Rejection { reason: RejectionReason::RateLimited, retry_after };
            return Some(self.engine.reject(self.plan, priority, now, rejection));
        }
        let charge = TokenCharge::new(Arc::clone(policy), self.engine.timer().clock(), key, estimate);
        self.tokens.charge.set(Some(charge));
        None
    }

    /// Body of the response to a call that asks for more tokens than its caller can ever have at once.
    pub(super) fn too_many_tokens(&self) -> Option<ResponseBody> {
        let (asked, burst) = (self.tokens.too_many.get()?, self.route.caller_policy.burst()?);
        let line = format!(
            "the call asks for {asked} tokens, its text and max_tokens; its caller's rate limit allows {burst} at once \
             (rate_limited)\n"
        );
        Some(ResponseBody::from(line))
    }

    /// Notes that the upstream gave no response to the call.
    pub(super) fn note_no_response(&self) {
        if let Some(mut charge) = self.tokens.charge.take() {
            charge.status = Some(StatusCode::BAD_GATEWAY);
            self.tokens.charge.set(Some(charge));
        }
    }

    /// Notes that the call was rejected after it was charged.
    pub(super) fn return_tokens(&self) {
        if let Some(mut charge) = self.tokens.charge.take() {
            charge.is_rejected = true;
            self.report_corrected(&mut charge);
        }
    }

    /// Corrects the charge by a response: at once if its body is there, otherwise at its end.
    pub(super) fn count_tokens(&self, status: StatusCode, body: ResponseBody) -> ResponseBody {
        let Some(mut charge) = self.tokens.charge.take() else { return body };
        charge.status = Some(status);
        if let Some(bytes) = body.as_bytes() {
            charge.read(bytes);
            charge.is_complete = true;
            self.report_corrected(&mut charge);
            return body;
        }
        ResponseBody::from_stream(CountedBody { body, charge: Some(charge) })
    }

    fn report_corrected(&self, charge: &mut TokenCharge) {
        if let Some(bucket) = charge.correct().filter(|_| self.bucket.get().is_some()) {
            self.bucket.set(Some(bucket));
        }
    }
}

/// Body of a response whose tokens are counted as it passes.
struct CountedBody {
    body: ResponseBody,
    charge: Option<TokenCharge>,
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Self { body, charge: held } = &mut *self;
        let Some(charge) = held else { return polled };
        let is_over = match &polled {
            Poll::Pending => return polled,
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(frame))) => {
                frame.data_ref().into_iter().for_each(|data| charge.read(data));
                body.is_end_stream()
            }
            Poll::Ready(Some(Err(_))) => {
                *held = None;
                return polled;
            }
        };
        if is_over {
            charge.is_complete = true;
            *held = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
