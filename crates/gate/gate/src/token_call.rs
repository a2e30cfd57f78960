//! Calls on routes with a rate limit in tokens.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};

use super::routed::RoutedRequest;
use super::token_limit::{TokenCharge, UsageReader, estimated_tokens, tokens_of_length};
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
            OutgoingBody::Bytes(bytes) => estimated_tokens(bytes),
            _ => tokens_of_length(length.unwrap_or_default()),
        };
        let now = self.engine.timer().now();
        let (key, admitted, bucket) = policy.charge(now, &self.decision.caller, estimate);
        self.bucket.set(bucket);
        if let Err(retry_after) = admitted {
            let rejection = Rejection { reason: RejectionReason::RateLimited, retry_after };
            return Some(self.engine.reject(self.plan, priority, now, rejection));
        }
        let charge = TokenCharge {
            policy: Arc::clone(policy),
            clock: self.engine.timer().clock(),
            key,
            estimate,
            reader: UsageReader::default(),
            status: None,
            is_rejected: false,
        };
        self.tokens.charge.set(Some(charge));
        None
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
            charge.reader.read(bytes);
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
        match (&polled, &mut self.charge) {
            (Poll::Ready(Some(Ok(frame))), Some(charge)) => {
                frame.data_ref().into_iter().for_each(|data| charge.reader.read(data));
            }
            (Poll::Pending, _) | (_, None) => {}
            _ => self.charge = None,
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
