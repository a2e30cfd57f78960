//! The core's engine, and what Python keeps of a call: whole bodies, and a story that holds no connections.

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
use tokio::sync::Semaphore;
use weir::call::story::{self, AttemptStatus, CallTrace};
use weir::call::{
    CallBody, CallBodyError, CallEngine as Calls, CallFailure, CallFailureReason, CallPlan, CallRequest, CallResponse,
};
use weir::decide::Nanos;
use weir::decide::policy::AttemptFailure;
use weir::http::client::{Client, Options, OutgoingBody};
use weir::machine::timer::Timer;

use super::request::ClientRequest;

/// How often connections that nobody needs are looked for.
const SWEEP_INTERVAL: Nanos = Nanos::from_secs(5);

/// How many times connections were let go of so far: a client was closed, lost its last reference, or forgot its hosts.
static CLEANUPS_REQUESTED: AtomicU64 = AtomicU64::new(0);

/// Tells the engines of all threads that there are connections that nobody needs.
pub(crate) fn request_cleanup() {
    CLEANUPS_REQUESTED.fetch_add(1, Ordering::Relaxed);
}

/// Makes the calls of one event loop.
pub(crate) struct ClientEngine {
    core: Calls,
    /// Those of `LET_GO` whose connections were closed here.
    cleanups_done: Cell<u64>,
}

/// What is the same for many calls.
#[derive(Debug)]
pub(crate) struct UpstreamPlan {
    pub(crate) plan: CallPlan,
    /// Host and port, for people.
    pub(crate) upstream_name: Arc<str>,
    /// Whether the caller has said what a success is: an answer that is none is then a failure of the call.
    pub(crate) strict: bool,
    /// A place for each call of the client that may run at once.
    pub(crate) permits: Option<Arc<Semaphore>>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct ClientCallOutcome {
    pub(crate) end: ClientCallEnd,
    pub(crate) response: Option<ClientResponse>,
    pub(crate) attempts: Vec<ClientAttempt>,
    pub(crate) upstream: Arc<str>,
    pub(crate) budget_exhausted: u32,
    pub(crate) duration: Nanos,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Whether a call has an answer to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClientCallEnd {
    Responded,
    AllFailed,
    DeadlineExceeded,
}

/// One copy of a call; times count from the call's start.
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
        let core = Calls::new(client, timer, RandomState::new().build_hasher().finish());
        Self { core, cleanups_done: Cell::new(CLEANUPS_REQUESTED.load(Ordering::Relaxed)) }
    }

    /// Closes connections that nobody needs, if there may be some since the last time.
    pub(crate) fn close_unused(&self) {
        let gone = CLEANUPS_REQUESTED.load(Ordering::Relaxed);
        if self.cleanups_done.replace(gone) != gone {
            self.core.client().sweep(self.core.timer().now());
        }
    }

    /// Closes connections that nobody needs, every few seconds, for ever.
    pub(crate) async fn sweep_loop(calls: Calls) {
        loop {
            calls.client().sweep(calls.timer().now());
            calls.timer().sleep(SWEEP_INTERVAL).await;
        }
    }

    /// For [`ClientEngine::sweep_loop`].
    pub(crate) fn core(&self) -> Calls {
        self.core.clone()
    }

    /// Makes a call. Dropping the future cancels it.
    pub(crate) async fn call(&self, request: &ClientRequest, planned: &UpstreamPlan) -> ClientCallOutcome {
        let timer = self.core.timer();
        let began = timer.now();
        let plan = &planned.plan;
        let deadline = began + plan.policy.deadline;
        let mut place = None;
        if let Some(places) = &planned.permits {
            tokio::select! {
                biased;
                found = places.acquire() => place = found.ok(),
                () = timer.sleep_until(deadline), if deadline != Nanos::NEVER => {
                    return ClientCallOutcome::without_attempts(planned, timer.now() - began);
                }
            }
        }
        // What is looked into must not be packed.
        let mut headers = Cow::Borrowed(&request.headers);
        if plan.success.inspects_bodies() && headers.contains_key(ACCEPT_ENCODING) {
            headers.to_mut().remove(ACCEPT_ENCODING);
        }
        let ask = CallRequest { deadline, ..CallRequest::new(plan, &request.method, &request.target, &headers) };
        let body =
            if request.body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(request.body.clone()) };
        let outcome = match self.core.call(&ask, body).await {
            Ok(CallResponse { head, body, call_trace: story }) => {
                let kept = EndedCall { end: ClientCallEnd::Responded, began, trace: story, planned };
                kept.finish(Some((head, body)), timer).await
            }
            Err(CallFailure { reason, last_response: last, call_trace: story }) => {
                let ended = match reason {
                    _ if last.is_some() && !planned.strict => ClientCallEnd::Responded,
                    // Its own limit is the client's, so that nobody else refuses.
                    CallFailureReason::AllFailed | CallFailureReason::Rejected(_) => ClientCallEnd::AllFailed,
                    CallFailureReason::DeadlineExceeded => ClientCallEnd::DeadlineExceeded,
                };
                EndedCall { end: ended, began, trace: story, planned }.finish(last, timer).await
            }
        };
        drop(place);
        outcome
    }
}

/// A call that has ended but for its answer's body.
struct EndedCall<'a> {
    end: ClientCallEnd,
    began: Nanos,
    trace: CallTrace,
    planned: &'a UpstreamPlan,
}

impl EndedCall<'_> {
    async fn finish(self, answer: Option<(Parts, CallBody)>, timer: &Timer) -> ClientCallOutcome {
        let Self { end: mut ended, began, trace: story, planned } = self;
        let head = match answer {
            None => None,
            Some((parts, body)) => match read_whole(body).await {
                Ok(body) => {
                    Some(ClientResponse { status: parts.status, version: parts.version, headers: parts.headers, body })
                }
                Err(CallBodyError::DeadlineExceeded) => {
                    ended = ClientCallEnd::DeadlineExceeded;
                    None
                }
                Err(CallBodyError::Upstream(_)) => {
                    ended = ClientCallEnd::AllFailed;
                    None
                }
            },
        };
        let attempts = story.attempts.into_iter().map(|attempt| ClientAttempt {
            reason: story::launch_reason(attempt.reason),
            started: attempt.launched - story.began,
            duration: attempt.ended - attempt.launched,
            end: attempt.end,
        });
        ClientCallOutcome {
            end: ended,
            response: head,
            attempts: attempts.collect(),
            upstream: Arc::clone(&planned.upstream_name),
            budget_exhausted: story.budget_exhausted,
            duration: timer.now() - began,
        }
    }
}

impl ClientCallOutcome {
    fn without_attempts(planned: &UpstreamPlan, duration: Nanos) -> Self {
        let upstream = Arc::clone(&planned.upstream_name);
        Self {
            end: ClientCallEnd::DeadlineExceeded,
            response: None,
            attempts: Vec::new(),
            upstream,
            budget_exhausted: 0,
            duration,
        }
    }
}

impl ClientAttempt {
    /// How it ended, its status, and its cause in words.
    pub(crate) fn end(&self) -> (&'static str, Option<u16>, Option<&str>) {
        match &self.end {
            AttemptStatus::Running | AttemptStatus::Cancelled => ("cancelled", None, None),
            AttemptStatus::Won(status) => ("won", Some(*status), None),
            AttemptStatus::Failed(AttemptFailure::Status(status), _) => ("status", Some(*status), None),
            AttemptStatus::Failed(failure, cause) => (failure.name().unwrap_or("status"), None, cause.as_deref()),
        }
    }
}

async fn read_whole(mut body: CallBody) -> Result<Bytes, CallBodyError> {
    if let CallBody::Buffered(bytes) = body {
        return Ok(bytes);
    }
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            all.extend_from_slice(&data);
        }
    }
    Ok(all.freeze())
}
