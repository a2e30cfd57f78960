//! Attempts: a request in flight, and its response.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::super::options::Options;
use super::super::sender::wall_ms;
use super::super::store::JobStep;
use super::super::template::{Escaping, TemplateFields};
use super::marks::SentMark;
use super::{DispatchFailure, Event, InFlightAttempt, JobId, LastAttempt, SenderRuntime, SenderState};
use crate::events::{AttemptRecord, SenderEvent};
use crate::rendered_request::RenderedRequest;
use weir_call as call;
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::ResponseClass;
use weir_decide::delivery::limit_headers::RateLimitHeaders;
use weir_http::client::{ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol, SendError};
use weir_http::target::Target;
use weir_machine::clock;

/// Attempt that is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedAttempt {
    pub(super) job: JobId,
    pub(super) key: usize,
    pub(super) attempt: u32,
    pub(super) nonce: u64,
    /// Time at which it could have been sent.
    pub(super) due: Nanos,
}

type AttemptResponse = (StatusCode, HeaderMap, Bytes);

impl SenderRuntime {
    /// Starts an attempt.
    pub(super) fn launch(self: &Rc<Self>, hand: &mut SenderState, sending: QueuedAttempt) {
        let Some(held) = hand.jobs.get_mut(&sending.job) else { return };
        let Some(key) = self.options.keys.get(sending.key) else { return };
        let id = match &held.entry.job.id {
            Some(id) => Cow::Borrowed(id.as_str()),
            None => Cow::Owned(held.entry.number.to_string()),
        };
        let fields = TemplateFields { key: key.secret(), nonce: sending.nonce, id: &id };
        let filled = RenderedRequest::new(&held.entry.job.request, &fields).map_err(|why| redact_key(&why, &fields));
        let filled = filled.and_then(|filled| {
            let origin = cached_origin(&mut hand.origins, &filled.target, &self.options)?;
            Ok((filled, origin))
        });
        held.attempts += 1;
        held.attempts_since_claim += 1;
        let (edge, at) = (Rc::clone(self), self.timer.now());
        let task = match filled {
            Ok((filled, origin)) => tokio::task::spawn_local(edge.run_attempt(sending, filled, origin)),
            Err(why) => tokio::task::spawn_local(edge.fail_unsendable(sending, why)),
        };
        let (key, sent) = (sending.key, wall_ms());
        held.in_flight = Some(InFlightAttempt {
            task: task.abort_handle(),
            key,
            attempt: sending.attempt,
            started_at: at,
            sent_at: sent,
            due: sending.due,
            last_byte_at: None,
        });
    }

    async fn run_attempt(self: Rc<Self>, sending: QueuedAttempt, filled: RenderedRequest, origin: Arc<Origin>) {
        let QueuedAttempt { job, attempt, .. } = sending;
        let body = if filled.body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(filled.body) };
        let outgoing = OutgoingRequest {
            method: &filled.method,
            target: &filled.target.path,
            headers: &filled.headers,
            extra_headers: &[],
            body,
            upgrade: false,
        };
        let left = || self.on_sent(job, attempt);
        let response = match self.client.send_once(&origin, outgoing, left).await {
            Ok(response) => read_response(response, self.options.max_body_bytes).await,
            Err(error) => Err(error),
        };
        match response {
            Ok(response) => self.on_response(job, attempt, response),
            Err(error) => {
                self.finish_attempt(job, Err(error.text.into_owned()), false, (Vec::new(), Bytes::new()));
                if error.kind.is_unsent()
                    && let Some(held) = self.state.borrow_mut().jobs.get_mut(&job)
                {
                    (held.attempts, held.attempts_since_claim) = (held.attempts - 1, held.attempts_since_claim - 1);
                    if held.attempts_since_claim == 0 && self.store.unmark_sent(held.lease) {
                        held.mark = SentMark::Unset;
                    }
                }
                self.handle_event(self.timer.now(), Event::Failed(job, attempt, error.kind));
            }
        }
    }

    /// Dead-letters a job whose rendered request is invalid; a retry would not help.
    async fn fail_unsendable(self: Rc<Self>, sending: QueuedAttempt, why: String) {
        let QueuedAttempt { job, attempt, due, .. } = sending;
        {
            let mut hand = self.state.borrow_mut();
            self.end_job(&mut hand, job, JobStep::DeadLettered, why);
        }
        // Nothing was sent, so the key gets its slot back, and the job has ended.
        self.handle_event(due, Event::Recalled(job, attempt));
        self.handle_event(due, Event::Withdrawn(job));
    }

    /// The last byte of the request was handed to the system.
    fn on_sent(self: &Rc<Self>, job: JobId, attempt: u32) {
        let now = self.timer.now();
        if let Some(flying) = self.state.borrow_mut().jobs.get_mut(&job).and_then(|held| held.in_flight.as_mut()) {
            flying.last_byte_at = Some(now);
        }
        self.handle_event(now, Event::Departed(job, attempt));
    }

    fn on_response(self: &Rc<Self>, job: JobId, attempt: u32, (status, headers, body): AttemptResponse) {
        let status = status.as_u16();
        let meaning = self.options.response_rules.classify(status, &body);
        let said = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let feedback = RateLimitHeaders::read(said, clock::wall());
        let kept = if self.options.keep_responses { header_texts(&headers) } else { Vec::new() };
        self.finish_attempt(job, Ok(status), meaning == ResponseClass::Done, (kept, body));
        self.handle_event(self.timer.now(), Event::Responded(job, attempt, meaning, &feedback));
    }

    /// Records the outcome of the attempt in flight.
    fn finish_attempt(
        &self,
        job: JobId,
        outcome: Result<u16, String>,
        done: bool,
        (headers, body): (Vec<(String, String)>, Bytes),
    ) {
        let mut hand = self.state.borrow_mut();
        let Some(held) = hand.jobs.get_mut(&job) else { return };
        let Some(InFlightAttempt { key, started_at: at, sent_at: sent, due, last_byte_at: left, .. }) =
            held.in_flight.take()
        else {
            return;
        };
        let (late, took) = (left.map(|left| left - due), self.timer.now() - at);
        let tried = AttemptRecord {
            key,
            sent_at: sent,
            lateness: late,
            service_time: took,
            outcome,
            succeeded: done,
            is_retry: held.attempts > 1,
        };
        held.last_attempt = Some(LastAttempt { record: tried.clone(), headers, body });
        hand.events.push(SenderEvent::AttemptEnded(tried));
        self.events_pending.notify_one();
    }

    /// Cancels the attempt in flight after a decision of the dispatch.
    pub(super) fn cancel(&self, hand: &mut SenderState, job: JobId, why: &str) {
        let Some(held) = hand.jobs.get_mut(&job) else { return };
        let Some(InFlightAttempt { task, key, started_at: at, sent_at: sent, due, last_byte_at: left, .. }) =
            held.in_flight.take()
        else {
            // It has not started yet, and must not start.
            hand.awaiting_mark.retain(|sending| sending.job != job);
            return;
        };
        task.abort();
        let (late, took) = (left.map(|left| left - due), self.timer.now() - at);
        let tried = AttemptRecord {
            key,
            sent_at: sent,
            lateness: late,
            service_time: took,
            outcome: Err(why.to_owned()),
            succeeded: false,
            is_retry: held.attempts > 1,
        };
        held.last_attempt = Some(LastAttempt { record: tried.clone(), headers: Vec::new(), body: Bytes::new() });
        hand.events.push(SenderEvent::AttemptEnded(tried));
        self.events_pending.notify_one();
    }
}

/// Message with the API key replaced by `***`, in each escaping.
fn redact_key(why: &str, fields: &TemplateFields<'_>) -> String {
    let written = [Escaping::Plain, Escaping::Url].map(|place| fields.fill("{key}", place));
    written.iter().filter(|key| !key.is_empty()).fold(why.to_owned(), |why, key| why.replace(key, "***"))
}

/// Origin of a URL, with its connection pool.
fn cached_origin(
    known: &mut std::collections::HashMap<(bool, String, u16), Arc<Origin>>,
    target: &Target,
    options: &Options,
) -> Result<Arc<Origin>, String> {
    let place = (target.tls, target.host.clone(), target.port);
    if let Some(origin) = known.get(&place) {
        return Ok(Arc::clone(origin));
    }
    // Over HTTP/2 it is unknown when a request has left.
    let reach = ConnectOptions {
        protocol: Protocol::Http1,
        tls: options.tls.clone(),
        connect_timeout: options.connect_timeout,
        stall_timeout: Nanos::NEVER,
        ..ConnectOptions::default()
    };
    let origin = Arc::new(Origin::new(target, &reach).map_err(|error| error.to_string())?);
    known.insert(place, Arc::clone(&origin));
    Ok(origin)
}

/// Reads a response of at most `max_bytes`.
async fn read_response(response: http::Response<IncomingBody>, max_bytes: usize) -> Result<AttemptResponse, SendError> {
    let (head, mut body) = response.into_parts();
    let bytes = match body.take_complete() {
        Some(bytes) => bytes,
        None => {
            let read = call::read_body(body, max_bytes).await;
            read.map_err(|(kind, cause)| SendError::new(kind, cause))?.bytes
        }
    };
    Ok((head.status, head.headers, bytes))
}

fn header_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Reason in prose.
pub(super) fn reason_text(why: DispatchFailure) -> String {
    match why {
        DispatchFailure::Response(ResponseClass::Done) => "delivered".into(),
        DispatchFailure::Response(ResponseClass::RateLimited) => "rate-limited (429)".into(),
        DispatchFailure::Response(ResponseClass::InvalidNonce) => "the nonce was overtaken (400)".into(),
        DispatchFailure::Response(ResponseClass::Unauthorized) => "unknown API key (401)".into(),
        DispatchFailure::Response(ResponseClass::Blocked) => "blocked API key (429)".into(),
        DispatchFailure::Response(ResponseClass::Failed(status)) => format!("status {status}"),
        DispatchFailure::NoResponse(kind) => format!("no response: {}", kind.name()),
        DispatchFailure::TooHeavy => "the weight exceeds a limit".into(),
        DispatchFailure::MaybeSent => "maybe sent before a crash".into(),
        DispatchFailure::Expired => "expired before it could be sent".into(),
        DispatchFailure::HostDown => "the host is down".into(),
    }
}
