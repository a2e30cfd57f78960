//! Attempts: a request in flight, and its response. Each is a task that reports to the inbox of its owner.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use http::HeaderMap;

use super::super::channels::{AttemptEvent, post};
use super::super::context::SenderContext;
use super::super::queued_attempt::{AttemptResponse, QueuedAttempt};
use super::leased_job::{InFlightAttempt, LeasedJob};
use crate::options::Options;
use crate::rendered_request::{RenderedRequest, RequestRenderer};
use crate::template::{Escaping, TemplateFields};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::dispatch::{DispatchFailure, JobId, ResponseClass};
use weir_net::client::buffered_body::read_body;
use weir_net::client::{
    Client, ConnectOptions, IncomingBody, Origin, OutgoingBody, OutgoingRequest, Protocol, SendError, WireOptions,
};
use weir_net::target::Target;

/// Starts attempts.
#[derive(Debug)]
pub(super) struct AttemptLauncher {
    context: Rc<SenderContext>,
    client: Client,
    renderer: RequestRenderer,
    origins: HashMap<(bool, String, u16), Arc<Origin>>,
    /// Target and origin of the last request.
    last_origin: Option<(Rc<Target>, Arc<Origin>)>,
    launched: u64,
}

impl AttemptLauncher {
    pub(super) fn new(context: Rc<SenderContext>, client: Client) -> Self {
        let renderer = RequestRenderer::new(context.options.key_hosts.clone());
        let (origins, last_origin) = (HashMap::new(), None);
        Self { context, client, renderer, origins, last_origin, launched: 0 }
    }

    /// Starts an attempt of a job.
    pub(super) fn launch(&mut self, leased: &mut LeasedJob, queued: QueuedAttempt) {
        let options = &self.context.options;
        let Some(key) = options.keys.get(queued.key) else { return };
        let id = match &leased.entry.job.id {
            Some(id) => Cow::Borrowed(id.as_str()),
            None => Cow::Owned(leased.entry.number.to_string()),
        };
        let fields = TemplateFields { key: key.secret(), nonce: queued.nonce, id: &id };
        let request = self.renderer.render(&leased.entry.job.request, &fields).map_err(|why| redact_key(&why, &fields));
        let request = request.and_then(|request| {
            if let Some((target, origin)) = &self.last_origin
                && Rc::ptr_eq(target, &request.target)
            {
                return Ok((request, Arc::clone(origin)));
            }
            let origin = cached_origin(&mut self.origins, &request.target, options)?;
            self.last_origin = Some((Rc::clone(&request.target), Arc::clone(&origin)));
            Ok((request, origin))
        });
        leased.attempts += 1;
        leased.attempts_since_claim += 1;
        let (request, origin) = match request {
            Ok(request) => request,
            Err(why) => return post(&self.context.channels.attempts, AttemptEvent::Unrenderable(queued, why)),
        };
        self.launched += 1;
        let (number, may_have_key) = (LaunchNumber { job: queued.job, serial: self.launched }, request.may_have_key);
        let started_at = self.context.timer.now();
        let task = run_attempt(Rc::clone(&self.context), self.client.clone(), number, request, origin);
        leased.in_flight = Some(InFlightAttempt {
            task: tokio::task::spawn_local(task).abort_handle(),
            serial: self.launched,
            key: queued.key,
            attempt: queued.attempt,
            started_at,
            sent_at: wall_ms(),
            due: queued.due,
            last_byte_at: None,
            may_have_key,
        });
    }
}

/// Numbers by which events of an attempt find it.
#[derive(Clone, Copy, Debug)]
struct LaunchNumber {
    job: JobId,
    /// Number among all attempts of this sender.
    serial: u64,
}

async fn run_attempt(
    context: Rc<SenderContext>,
    client: Client,
    number: LaunchNumber,
    request: RenderedRequest,
    origin: Arc<Origin>,
) {
    let LaunchNumber { job, serial } = number;
    let body = if request.body.is_empty() { OutgoingBody::Empty } else { OutgoingBody::Bytes(request.body) };
    let outgoing = OutgoingRequest {
        method: &request.method,
        target: &request.path,
        headers: &request.headers,
        extra_headers: &[],
        body,
        upgrade: false,
        wire: WireOptions::default(),
    };
    let attempts = &context.channels.attempts;
    let departed = || post(attempts, AttemptEvent::Departed(job, serial, context.timer.now()));
    let response = match client.send_once(&origin, outgoing, departed).await {
        Ok(response) => read_response(response, context.options.max_body_bytes).await,
        Err(error) => Err(error),
    };
    post(attempts, AttemptEvent::Ended(job, serial, response));
}

/// Message with the API key replaced by `***`, in each escaping.
fn redact_key(why: &str, fields: &TemplateFields<'_>) -> String {
    let written = [Escaping::Plain, Escaping::Url].map(|place| fields.fill("{key}", place));
    written.iter().filter(|key| !key.is_empty()).fold(why.to_owned(), |why, key| why.replace(&**key, "***"))
}

/// Origin of a URL, with its connection pool.
fn cached_origin(
    known: &mut HashMap<(bool, String, u16), Arc<Origin>>,
    target: &Target,
    options: &Options,
) -> Result<Arc<Origin>, String> {
    let place = (target.tls, target.host.clone(), target.port);
    if let Some(origin) = known.get(&place) {
        return Ok(Arc::clone(origin));
    }
    // Over HTTP/2 it is unknown when a request has left.
    let connect = ConnectOptions {
        protocol: Protocol::Http1,
        tls: options.tls.clone(),
        connect_timeout: options.connect_timeout,
        stall_timeout: Nanos::NEVER,
        ..ConnectOptions::default()
    };
    let origin = Arc::new(Origin::new(target, &connect).map_err(|error| error.to_string())?);
    known.insert(place, Arc::clone(&origin));
    Ok(origin)
}

/// Reads a response of at most `max_bytes`.
async fn read_response(response: http::Response<IncomingBody>, max_bytes: usize) -> Result<AttemptResponse, SendError> {
    let (head, mut body) = response.into_parts();
    let bytes = match body.take_complete() {
        Some(bytes) => bytes,
        None => {
            let read = read_body(body, max_bytes).await;
            read?.bytes
        }
    };
    Ok((head.status, head.headers, bytes))
}

/// Class of a response, and the check that its content failed.
pub(super) fn classify(
    options: &Options,
    may_have_key: bool,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
) -> (ResponseClass, Option<String>) {
    let class = match options.response_rules.classify(status, body) {
        // A host that has no key cannot reject one.
        ResponseClass::Unauthorized if !may_have_key => ResponseClass::Failed(status),
        ResponseClass::Blocked if !may_have_key => ResponseClass::RateLimited,
        class => class,
    };
    let check = options.response_check.as_deref().filter(|_| class == ResponseClass::Done);
    let failed_check = check.and_then(|check| check.check(status, headers, body).err());
    let class = if failed_check.is_some() { ResponseClass::FailedCheck } else { class };
    (class, failed_check)
}

/// Name that the service has given to a request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["x-request-id", "request-id"];
    let found = names.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    found.map(str::to_owned)
}

/// Headers of a response as text.
pub(super) fn header_texts(headers: &HeaderMap) -> Vec<(String, String)> {
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
        DispatchFailure::Response(ResponseClass::FailedCheck) => "the response failed its check".into(),
        DispatchFailure::Response(ResponseClass::Failed(status)) => format!("status {status}"),
        DispatchFailure::NoResponse(kind) => format!("no response: {}", kind.name()),
        DispatchFailure::TooHeavy => "the weight exceeds a limit".into(),
        DispatchFailure::MaybeSent => "maybe sent before a crash".into(),
        DispatchFailure::Expired => "expired before it could be sent".into(),
        DispatchFailure::HostDown => "the host is down".into(),
    }
}
