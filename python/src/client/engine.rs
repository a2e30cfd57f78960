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
use weir::call::story::{self, End, Story};
use weir::call::{Answer, AnswerBody, Ask, Cut, Engine as Calls, Failed, Plan, Reason};
use weir::decide::Nanos;
use weir::decide::policy::Failure;
use weir::http::client::{Client, Options, OutBody};
use weir::machine::timer::Timer;

use super::request::Request;

/// How often connections that nobody needs are looked for.
const SWEEP: Nanos = Nanos::from_secs(5);

/// How many times connections were let go of so far: a client was closed, lost its last reference, or forgot its hosts.
static LET_GO: AtomicU64 = AtomicU64::new(0);

/// Tells the engines of all threads that there are connections that nobody needs.
pub(crate) fn no_longer_needed() {
    LET_GO.fetch_add(1, Ordering::Relaxed);
}

/// Makes the calls of one event loop.
pub(crate) struct Engine {
    calls: Calls,
    /// Those of `LET_GO` whose connections were closed here.
    tidied: Cell<u64>,
}

/// What is the same for many calls.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    /// Host and port, for people.
    pub(crate) name: Arc<str>,
    /// Whether the caller has said what a success is: an answer that is none is then a failure of the call.
    pub(crate) strict: bool,
    /// A place for each call of the client that may run at once.
    pub(crate) places: Option<Arc<Semaphore>>,
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    pub(crate) head: Option<Head>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) upstream: Arc<str>,
    pub(crate) suppressed: u32,
    pub(crate) took: Nanos,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Whether a call has an answer to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Answered,
    AllFailed,
    Late,
}

/// One copy of a call; times count from the call's start.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) why: &'static str,
    pub(crate) end: End,
    pub(crate) started: Nanos,
    pub(crate) took: Nanos,
}

impl Engine {
    /// An engine without connections.
    pub(crate) fn new(timer: Timer) -> Self {
        let client = Client::new(timer.clone(), Options::default());
        let calls = Calls::new(client, timer, RandomState::new().build_hasher().finish());
        Self { calls, tidied: Cell::new(LET_GO.load(Ordering::Relaxed)) }
    }

    /// Closes connections that nobody needs, if there may be some since the last time.
    pub(crate) fn tidy(&self) {
        let gone = LET_GO.load(Ordering::Relaxed);
        if self.tidied.replace(gone) != gone {
            self.calls.client().sweep(self.calls.timer().now());
        }
    }

    /// Closes connections that nobody needs, every few seconds, for ever.
    pub(crate) async fn keep_swept(calls: Calls) {
        loop {
            calls.client().sweep(calls.timer().now());
            calls.timer().sleep(SWEEP).await;
        }
    }

    /// For [`Engine::keep_swept`].
    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Makes a call. Dropping the future cancels it.
    pub(crate) async fn call(&self, request: &Request, planned: &Planned) -> Outcome {
        let timer = self.calls.timer();
        let began = timer.now();
        let plan = &planned.plan;
        let deadline = began + plan.policy.deadline;
        let mut place = None;
        if let Some(places) = &planned.places {
            tokio::select! {
                biased;
                found = places.acquire() => place = found.ok(),
                () = timer.sleep_until(deadline), if deadline != Nanos::NEVER => {
                    return Outcome::without_attempts(planned, timer.now() - began);
                }
            }
        }
        // What is looked into must not be packed.
        let mut headers = Cow::Borrowed(&request.headers);
        if plan.success.looks_into_bodies() && headers.contains_key(ACCEPT_ENCODING) {
            headers.to_mut().remove(ACCEPT_ENCODING);
        }
        let ask = Ask { deadline, ..Ask::new(plan, &request.method, &request.target, &headers) };
        let body = if request.body.is_empty() { OutBody::Empty } else { OutBody::Bytes(request.body.clone()) };
        let outcome = match self.calls.call(&ask, body).await {
            Ok(Answer { head, body, story }) => {
                let kept = Kept { ended: Ended::Answered, began, story, planned };
                kept.with(Some((head, body)), timer).await
            }
            Err(Failed { reason, last, story }) => {
                let ended = match reason {
                    _ if last.is_some() && !planned.strict => Ended::Answered,
                    // Its own limit is the client's, so that nobody else refuses.
                    Reason::AllFailed | Reason::Refused(_) => Ended::AllFailed,
                    Reason::Late => Ended::Late,
                };
                Kept { ended, began, story, planned }.with(last, timer).await
            }
        };
        drop(place);
        outcome
    }
}

/// A call that has ended but for its answer's body.
struct Kept<'a> {
    ended: Ended,
    began: Nanos,
    story: Story,
    planned: &'a Planned,
}

impl Kept<'_> {
    async fn with(self, answer: Option<(Parts, AnswerBody)>, timer: &Timer) -> Outcome {
        let Self { mut ended, began, story, planned } = self;
        let head = match answer {
            None => None,
            Some((parts, body)) => match whole(body).await {
                Ok(body) => Some(Head { status: parts.status, version: parts.version, headers: parts.headers, body }),
                Err(Cut::Late) => {
                    ended = Ended::Late;
                    None
                }
                Err(Cut::Upstream(_)) => {
                    ended = Ended::AllFailed;
                    None
                }
            },
        };
        let attempts = story.attempts.into_iter().map(|attempt| Attempt {
            why: story::reason(attempt.why),
            started: attempt.launched - story.began,
            took: attempt.ended - attempt.launched,
            end: attempt.end,
        });
        Outcome {
            ended,
            head,
            attempts: attempts.collect(),
            upstream: Arc::clone(&planned.name),
            suppressed: story.suppressed,
            took: timer.now() - began,
        }
    }
}

impl Outcome {
    fn without_attempts(planned: &Planned, took: Nanos) -> Self {
        let upstream = Arc::clone(&planned.name);
        Self { ended: Ended::Late, head: None, attempts: Vec::new(), upstream, suppressed: 0, took }
    }
}

impl Attempt {
    /// How it ended, its status, and its cause in words.
    pub(crate) fn end(&self) -> (&'static str, Option<u16>, Option<&str>) {
        match &self.end {
            End::Running | End::Cancelled => ("cancelled", None, None),
            End::Won(status) => ("won", Some(*status), None),
            End::Failed(Failure::Status(status), _) => ("status", Some(*status), None),
            End::Failed(failure, cause) => (failure.name().unwrap_or("status"), None, cause.as_deref()),
        }
    }
}

async fn whole(mut body: AnswerBody) -> Result<Bytes, Cut> {
    if let AnswerBody::Whole(bytes) = body {
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
