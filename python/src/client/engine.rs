//! Call engine of an event loop, and outcomes of calls: whole bodies and attempts, without connections.

use std::borrow::Cow;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use http::header::ACCEPT_ENCODING;
use http::response::Parts;
use http::{HeaderMap, StatusCode, Version};
use http_body_util::BodyExt;
use tokio::sync::SemaphorePermit;
use weir::base::Nanos;
use weir::call::attempt_log::{self, AttemptCause, AttemptStatus, CallTrace};
use weir::call::attempt_rate::AttemptRate;
use weir::call::{
    CallBody, CallBodyError, CallEngine, CallFailure, CallFailureReason, CallRequest, CallResponse, UnsentAttempts,
};
use weir::machine::timer::Timer;
use weir::net::client::{Client, Options, OutgoingBody, ReceivedHead, WireOptions};
use weir::retry::policy::AttemptFailure;

use super::request::ClientRequest;
use super::upstream_plan::UpstreamPlan;
use crate::limiter::keyed_rate::{KeyedRate, RateKey};

/// Interval between sweeps for unused connections.
const SWEEP_INTERVAL: Nanos = Nanos::from_secs(5);

/// Number of times that connections became unused: a client was closed or dropped, or dropped its hosts.
static CLEANUPS_REQUESTED: AtomicU64 = AtomicU64::new(0);

/// Requests a sweep for unused connections from the engines of all threads.
pub(crate) fn request_cleanup() {
    CLEANUPS_REQUESTED.fetch_add(1, Ordering::Relaxed);
}

/// Call engine of one event loop.
pub(crate) struct ClientEngine {
    core: CallEngine,
    /// Value of `CLEANUPS_REQUESTED` at the last sweep.
    cleanups_done: Cell<u64>,
}

/// Outcome of a call.
#[derive(Debug)]
pub(crate) struct ClientCallOutcome {
    pub(crate) end: ClientCallEnd,
    pub(crate) response: Option<ClientResponse>,
    pub(crate) attempts: Vec<ClientAttempt>,
    pub(crate) upstream: Arc<str>,
    pub(crate) unsent: UnsentAttempts,
    pub(crate) duration: Nanos,
    /// Maximum body in bytes.
    pub(crate) max_response: usize,
}

/// Response with its whole body.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// Head as received over HTTP/1.1, if it was kept.
    pub(crate) received: Option<Bytes>,
    pub(crate) body: Bytes,
    /// Whether that is all of it.
    pub(crate) is_whole: bool,
}

/// Class of a call's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientCallEnd {
    Responded,
    AllFailed,
    DeadlineExceeded,
    /// No permit in time: nothing was sent.
    NoPermit,
}

/// Attempt of a call; times count from the start of the call.
#[derive(Debug)]
pub(crate) struct ClientAttempt {
    pub(crate) reason: &'static str,
    pub(crate) end: AttemptStatus,
    pub(crate) started: Nanos,
    pub(crate) duration: Nanos,
}

impl ClientEngine {
    /// An engine without connections.
    pub(crate) fn new(timer: Timer) -> Self {
        let client = Client::new(timer.clone(), Options::default());
        let core = CallEngine::new(client, timer, RandomState::new().build_hasher().finish());
        Self { core, cleanups_done: Cell::new(CLEANUPS_REQUESTED.load(Ordering::Relaxed)) }
    }

    /// Closes unused connections, if a sweep was requested since the last one.
    pub(crate) fn close_unused(&self) {
        let requested = CLEANUPS_REQUESTED.load(Ordering::Relaxed);
        if self.cleanups_done.replace(requested) != requested {
            self.core.client().sweep(self.core.timer().now());
        }
    }

    /// Closes unused connections every [`SWEEP_INTERVAL`], without end.
    pub(crate) async fn sweep_loop(calls: CallEngine) {
        loop {
            calls.client().sweep(calls.timer().now());
            calls.timer().sleep(SWEEP_INTERVAL).await;
        }
    }

    /// The core's engine, for [`ClientEngine::sweep_loop`].
    pub(crate) fn core(&self) -> CallEngine {
        self.core.clone()
    }

    /// Timer of the event loop.
    pub(crate) fn timer(&self) -> &Timer {
        self.core.timer()
    }

    /// Makes a call, with the whole body of its response. Dropping the future cancels it.
    pub(crate) async fn call(&self, request: &ClientRequest, planned: &UpstreamPlan) -> ClientCallOutcome {
        let body =
            if request.body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(request.body.clone()) };
        self.begin(request, planned, body, ClientCallOptions::default()).await.finish(self.core.timer()).await
    }

    /// Makes a call, but for what is left of the body of its response. Dropping the future cancels it.
    pub(crate) async fn begin<'a>(
        &self,
        request: &ClientRequest,
        planned: &'a UpstreamPlan,
        body: OutgoingBody,
        options: ClientCallOptions<'_>,
    ) -> EndedCall<'a> {
        let timer = self.core.timer();
        let began = timer.now();
        let plan = &planned.plan;
        let deadline = began + plan.policy.deadline;
        let mut ended = EndedCall {
            end: ClientCallEnd::DeadlineExceeded,
            began,
            trace: CallTrace::default(),
            planned,
            response: None,
            permit: None,
        };
        if let Some(permits) = &planned.permits {
            let until = deadline.min(began + options.permit_timeout);
            tokio::select! {
                biased;
                acquired = permits.acquire() => ended.permit = acquired.ok(),
                () = timer.sleep_until(until), if until != Nanos::NEVER => {
                    if until < deadline {
                        ended.end = ClientCallEnd::NoPermit;
                    }
                    ended.trace.began = began;
                    return ended;
                }
            }
        }
        // Bodies that are inspected must not be compressed.
        let (mut headers, mut wire) = (Cow::Borrowed(&request.headers), options.wire);
        if plan.success.inspects_bodies() && headers.contains_key(ACCEPT_ENCODING) {
            headers.to_mut().remove(ACCEPT_ENCODING);
            wire.header_lines = None;
        }
        let rate = options.rate.map(|rate_key| KeyedRate { rate_key, timer });
        let rate = rate.as_ref().map(|rate| rate as &dyn AttemptRate);
        let call =
            CallRequest { deadline, wire, rate, ..CallRequest::new(plan, &request.method, &request.target, &headers) };
        match self.core.call(&call, body).await {
            Ok(CallResponse { head, body, call_trace: trace, .. }) => {
                EndedCall { end: ClientCallEnd::Responded, trace, response: Some((head, body)), ..ended }
            }
            Err(CallFailure { reason, last_response, call_trace: trace }) => {
                let end = match reason {
                    _ if last_response.is_some() && !planned.strict => ClientCallEnd::Responded,
                    // Without admission control there are no rejections.
                    CallFailureReason::AllFailed => ClientCallEnd::AllFailed,
                    CallFailureReason::Rejected(_) => ClientCallEnd::NoPermit,
                    CallFailureReason::DeadlineExceeded => ClientCallEnd::DeadlineExceeded,
                };
                EndedCall { end, trace, response: last_response.map(|last| (last.head, last.body)), ..ended }
            }
        }
    }
}

/// Options of one call beside its policy; by default none.
#[derive(Clone, Copy)]
pub(crate) struct ClientCallOptions<'a> {
    pub(crate) wire: WireOptions<'a>,
    /// Longest wait for a permit.
    pub(crate) permit_timeout: Nanos,
    /// Limit of the rate of its attempts.
    pub(crate) rate: Option<&'a RateKey>,
}

impl Default for ClientCallOptions<'_> {
    fn default() -> Self {
        Self { wire: WireOptions::default(), permit_timeout: Nanos::NEVER, rate: None }
    }
}

/// Call that has ended, but for the body of its response.
pub(crate) struct EndedCall<'a> {
    end: ClientCallEnd,
    began: Nanos,
    trace: CallTrace,
    planned: &'a UpstreamPlan,
    response: Option<(Parts, CallBody)>,
    permit: Option<SemaphorePermit<'a>>,
}

impl<'a> EndedCall<'a> {
    /// Reads the rest of the body.
    async fn finish(mut self, timer: &Timer) -> ClientCallOutcome {
        let response = match self.response.take() {
            None => None,
            Some((parts, body)) => match read_whole(body, self.planned.plan.success.max_body_bytes).await {
                Ok(Some(body)) => Some(ClientResponse::new(parts, body, true)),
                Err(CallBodyError::DeadlineExceeded) => {
                    self.end = ClientCallEnd::DeadlineExceeded;
                    None
                }
                Err(CallBodyError::Upstream(_)) | Ok(None) => {
                    self.end = ClientCallEnd::AllFailed;
                    None
                }
            },
        };
        self.outcome(response, timer)
    }

    /// The outcome without what is left of the body; that; and the permit that is held until its end.
    pub(crate) fn split(mut self, timer: &Timer) -> (ClientCallOutcome, Option<CallBody>, Option<SemaphorePermit<'a>>) {
        let permit = self.permit.take();
        let Some((parts, body)) = self.response.take() else { return (self.outcome(None, timer), None, permit) };
        let (body, rest) = match body {
            CallBody::Buffered(bytes) => (bytes, None),
            rest => (Bytes::new(), Some(rest)),
        };
        (self.outcome(Some(ClientResponse::new(parts, body, rest.is_none())), timer), rest, permit)
    }

    fn outcome(self, response: Option<ClientResponse>, timer: &Timer) -> ClientCallOutcome {
        let Self { end, began, trace, planned, .. } = self;
        let attempts = trace.attempts.into_iter().map(|attempt| ClientAttempt {
            reason: attempt_log::launch_reason(attempt.reason),
            started: attempt.launched - trace.began,
            duration: attempt.ended - attempt.launched,
            end: attempt.end,
        });
        ClientCallOutcome {
            end,
            response,
            attempts: attempts.collect(),
            upstream: Arc::clone(&planned.upstream_name),
            unsent: trace.unsent,
            duration: timer.now() - began,
            max_response: planned.plan.success.max_body_bytes,
        }
    }
}

impl ClientResponse {
    fn new(mut parts: Parts, body: Bytes, is_whole: bool) -> Self {
        let received = parts.extensions.remove::<ReceivedHead>().map(|head| head.0);
        Self { status: parts.status, version: parts.version, headers: parts.headers, received, body, is_whole }
    }
}

impl ClientAttempt {
    /// Outcome, status, and detail of a failure.
    pub(crate) fn end(&self) -> (&'static str, Option<u16>, Option<&str>) {
        match &self.end {
            AttemptStatus::Running | AttemptStatus::Cancelled => ("cancelled", None, None),
            AttemptStatus::Won(status) => ("won", Some(*status), None),
            AttemptStatus::Failed(AttemptFailure::Status(status), cause) => {
                ("status", Some(*status), cause_text(cause))
            }
            AttemptStatus::Failed(failure, cause) => (failure.name().unwrap_or("status"), None, cause_text(cause)),
        }
    }
}

fn cause_text(cause: &Option<AttemptCause>) -> Option<&str> {
    cause.as_ref().map(|cause| &*cause.text)
}

/// Reads what is left of a body, which attempts have read as far as it counts; `None` if it is too long.
async fn read_whole(mut body: CallBody, max_bytes: usize) -> Result<Option<Bytes>, CallBodyError> {
    if let CallBody::Buffered(bytes) = body {
        return Ok(Some(bytes));
    }
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if data.len() > max_bytes.saturating_sub(all.len()) {
                return Ok(None);
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(Some(all.freeze()))
}
