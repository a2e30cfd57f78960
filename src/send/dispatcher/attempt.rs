//! One request on its way, and its answer.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;

use super::super::filled::Filled;
use super::super::news::{News, Try};
use super::super::options::Options;
use super::super::sender::wall_ms;
use super::super::store::Step;
use super::super::template::{Fields, Place};
use super::marks::Mark;
use super::{Edge, Event, Flying, Hand, JobId, Last, Why};
use crate::decide::Nanos;
use crate::decide::dispatch::Meaning;
use crate::decide::feedback::Feedback;
use crate::decide::policy::Kind;
use crate::http::client::{Incoming, Origin, OutBody, Outgoing, Protocol, Reach, SendError};
use crate::http::target::Target;
use crate::machine::clock;

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) job: JobId,
    pub(super) key: usize,
    pub(super) attempt: u32,
    pub(super) nonce: u64,
    /// When it could have been sent.
    pub(super) due: Nanos,
}

type Answered = (StatusCode, HeaderMap, Bytes);

impl Edge {
    /// Sends it.
    pub(super) fn launch(self: &Rc<Self>, hand: &mut Hand, sending: Sending) {
        let Some(held) = hand.jobs.get_mut(&sending.job) else { return };
        let Some(key) = self.options.keys.get(sending.key) else { return };
        let id = match &held.entry.job.id {
            Some(id) => Cow::Borrowed(id.as_str()),
            None => Cow::Owned(held.entry.number.to_string()),
        };
        let fields = Fields { key: key.secret(), nonce: sending.nonce, id: &id };
        let filled = Filled::new(&held.entry.job.request, &fields).map_err(|why| hidden(&why, &fields));
        let filled = filled.and_then(|filled| {
            let origin = origin(&mut hand.origins, &filled.target, &self.options)?;
            Ok((filled, origin))
        });
        held.tries += 1;
        held.sent += 1;
        let (edge, at) = (Rc::clone(self), self.timer.now());
        let task = match filled {
            Ok((filled, origin)) => tokio::task::spawn_local(edge.attempt(sending, filled, origin)),
            Err(why) => tokio::task::spawn_local(edge.unsendable(sending, why)),
        };
        let (key, sent) = (sending.key, wall_ms());
        held.flying = Some(Flying {
            task: task.abort_handle(),
            key,
            attempt: sending.attempt,
            at,
            sent,
            due: sending.due,
            left: None,
        });
    }

    async fn attempt(self: Rc<Self>, sending: Sending, filled: Filled, origin: Arc<Origin>) {
        let Sending { job, attempt, .. } = sending;
        let body = if filled.body.is_empty() { OutBody::Empty } else { OutBody::Bytes(filled.body) };
        let outgoing = Outgoing {
            method: &filled.method,
            target: &filled.target.path,
            headers: &filled.headers,
            more: &[],
            body,
            upgrade: false,
        };
        let left = || self.left(job, attempt);
        let answer = match self.client.send_once(&origin, outgoing, left).await {
            Ok(answer) => read(answer, self.options.most_body).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => self.answered(job, attempt, answer),
            Err(error) => {
                self.landed(job, Err(error.text.into_owned()), false, (Vec::new(), Bytes::new()));
                if error.kind.is_unsent()
                    && let Some(held) = self.hand.borrow_mut().jobs.get_mut(&job)
                {
                    (held.tries, held.sent) = (held.tries - 1, held.sent - 1);
                    if held.sent == 0 && self.store.unmark(held.lease) {
                        held.mark = Mark::Unset;
                    }
                }
                self.tell(self.timer.now(), Event::Failed(job, attempt, error.kind));
            }
        }
    }

    /// A request that makes no sense when it is filled in will not do so later.
    async fn unsendable(self: Rc<Self>, sending: Sending, why: String) {
        let Sending { job, attempt, due, .. } = sending;
        {
            let mut hand = self.hand.borrow_mut();
            self.end_job(&mut hand, job, Step::Graveyard, why);
        }
        // Nothing was sent, which gives the key its place back; and nothing more is to be done for the job.
        self.tell(due, Event::CalledBack(job, attempt));
        self.tell(due, Event::Withdrawn(job));
    }

    /// Its last byte has gone to the system.
    fn left(self: &Rc<Self>, job: JobId, attempt: u32) {
        let now = self.timer.now();
        if let Some(flying) = self.hand.borrow_mut().jobs.get_mut(&job).and_then(|held| held.flying.as_mut()) {
            flying.left = Some(now);
        }
        self.tell(now, Event::Left(job, attempt));
    }

    fn answered(self: &Rc<Self>, job: JobId, attempt: u32, (status, headers, body): Answered) {
        let status = status.as_u16();
        let meaning = self.options.judge.meaning(status, &body);
        let said = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let feedback = Feedback::read(said, clock::wall());
        let kept = if self.options.keep_answers { texts(&headers) } else { Vec::new() };
        self.landed(job, Ok(status), meaning == Meaning::Done, (kept, body));
        self.tell(self.timer.now(), Event::Answered(job, attempt, meaning, &feedback));
    }

    /// Notes what came of the request that is out.
    fn landed(
        &self,
        job: JobId,
        outcome: Result<u16, String>,
        done: bool,
        (headers, body): (Vec<(String, String)>, Bytes),
    ) {
        let mut hand = self.hand.borrow_mut();
        let Some(held) = hand.jobs.get_mut(&job) else { return };
        let Some(Flying { key, at, sent, due, left, .. }) = held.flying.take() else { return };
        let (late, took) = (left.map(|left| left - due), self.timer.now() - at);
        let tried = Try { key, sent, late, took, outcome, done, again: held.tries > 1 };
        held.last = Some(Last { tried: tried.clone(), headers, body });
        hand.news.push(News::Tried(tried));
        self.talk.notify_one();
    }

    /// Its time is up. The dispatch knows already.
    pub(super) fn cancel(&self, hand: &mut Hand, job: JobId, why: &str) {
        let Some(held) = hand.jobs.get_mut(&job) else { return };
        let Some(Flying { task, key, at, sent, due, left, .. }) = held.flying.take() else {
            // What has not begun is not to begin any more.
            hand.unmarked.retain(|sending| sending.job != job);
            return;
        };
        task.abort();
        let (late, took) = (left.map(|left| left - due), self.timer.now() - at);
        let tried = Try { key, sent, late, took, outcome: Err(why.to_owned()), done: false, again: held.tries > 1 };
        held.last = Some(Last { tried: tried.clone(), headers: Vec::new(), body: Bytes::new() });
        hand.news.push(News::Tried(tried));
        self.talk.notify_one();
    }
}

/// A message without the key, however it is written in it.
fn hidden(why: &str, fields: &Fields<'_>) -> String {
    let written = [Place::Plain, Place::Url].map(|place| fields.fill("{key}", place));
    written.iter().filter(|key| !key.is_empty()).fold(why.to_owned(), |why, key| why.replace(key, "***"))
}

/// The place that a URL names; connections to it are kept.
fn origin(
    known: &mut std::collections::HashMap<(bool, String, u16), Arc<Origin>>,
    target: &Target,
    options: &Options,
) -> Result<Arc<Origin>, String> {
    let place = (target.tls, target.host.clone(), target.port);
    if let Some(origin) = known.get(&place) {
        return Ok(Arc::clone(origin));
    }
    // Over HTTP/2 nobody would know when a request has left.
    let reach = Reach {
        protocol: Protocol::Http1,
        tls: options.tls.clone(),
        connect_timeout: options.connect_timeout,
        stall_timeout: Nanos::NEVER,
        ..Reach::default()
    };
    let origin = Arc::new(Origin::new(target, &reach).map_err(|error| error.to_string())?);
    known.insert(place, Arc::clone(&origin));
    Ok(origin)
}

/// Reads an answer of at most `most` bytes.
async fn read(answer: http::Response<Incoming>, most: usize) -> Result<Answered, SendError> {
    let (head, mut body) = answer.into_parts();
    let bytes = match body.take_whole() {
        Some(bytes) => bytes,
        None => {
            let mut all = BytesMut::new();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else { continue };
                if all.len() + data.len() > most {
                    let why = format!("the answer is longer than the {most} bytes that are looked at");
                    return Err(SendError::new(Kind::Body, why));
                }
                all.extend_from_slice(&data);
            }
            all.freeze()
        }
    };
    Ok((head.status, head.headers, bytes))
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// In a few words.
pub(super) fn words(why: Why) -> String {
    match why {
        Why::Answer(Meaning::Done) => "delivered".into(),
        Why::Answer(Meaning::Refused) => "refused for its rate (429)".into(),
        Why::Answer(Meaning::Overtaken) => "its nonce was overtaken (400)".into(),
        Why::Answer(Meaning::Unauthorized) => "the key is not known (401)".into(),
        Why::Answer(Meaning::Blocked) => "the key is blocked (429)".into(),
        Why::Answer(Meaning::Failed(status)) => format!("status {status}"),
        Why::Kind(kind) => format!("no answer: {}", kind.name()),
        Why::TooHeavy => "it weighs more than a limit holds".into(),
        Why::MaybeSent => "it may have been sent before a crash".into(),
        Why::Late => "its time was over before it could be sent".into(),
        Why::Down => "its host answers nobody".into(),
    }
}
