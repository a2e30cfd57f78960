//! One request to deliver, and what is known of it.

use std::fmt;

use super::state::State;

/// Milliseconds since 1970 on the wall clock: what outlives a process has no other time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(pub i64);

impl UnixMs {
    /// Later by so many milliseconds.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is to be sent. Fields that are filled in when it is sent are still in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// In the order in which they are sent.
    pub headers: Vec<(String, String)>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// One request to deliver, and on which terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The caller's name for it. A store has a name once: who submits it again is told so, and nothing is sent twice.
    pub id: Option<String>,
    /// What is to be sent.
    pub request: JobRequest,
    /// When the caller made it.
    pub created_at: UnixMs,
    /// From then on it is not sent any more.
    pub expires_at: Option<UnixMs>,
    /// Higher ones go first.
    pub priority: i32,
    /// What it takes of a limit: 1 request, or so many tokens.
    pub weight: u32,
    /// The one key that may send it; any key if there is none. The key's name, never the credential.
    pub key_hint: Option<String>,
    /// Is the same for each try, so that a service can tell a repeat.
    pub idempotency_key: Option<String>,
}

impl Job {
    /// What it takes of the room in a queue, in bytes: the strings and the body.
    pub fn bytes(&self) -> u64 {
        let headers: usize = self.request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let request = self.request.method.len() + self.request.url.len() + headers + self.request.body.len();
        (request + text(&self.id) + text(&self.key_hint) + text(&self.idempotency_key)) as u64
    }
}

/// One time that a job was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The key's name.
    pub key: Option<String>,
    /// When it was sent.
    pub sent_at: UnixMs,
    /// The answer's status, if there was an answer.
    pub status: Option<u16>,
}

impl StoredAttempt {
    /// One of which only its time is known.
    pub const fn at(sent_at: UnixMs) -> Self {
        Self { key: None, sent_at, status: None }
    }
}

/// Where a job is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// Where it is.
    pub state: State,
    /// Since when.
    pub changed_at: UnixMs,
    /// Why, in a few words.
    pub reason: String,
    /// How often it was sent, as far as is known.
    pub attempts: u32,
    /// A process ended between sending it and noting what came of it: the service may have it already.
    pub maybe_sent: bool,
    /// When a dead letter is tried again.
    pub retry_at: Option<UnixMs>,
    /// The last attempt.
    pub last_attempt: Option<StoredAttempt>,
}

/// A job in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEntry {
    /// The store's number for it, from 1, in the order of submission; never given twice.
    pub number: u64,
    /// What was submitted, with what was edited since.
    pub job: Job,
    /// Where it is.
    pub status: JobStatus,
}

impl JobEntry {
    /// It can be queued again, and would not expire at once; with another end of its time, if one is given.
    pub fn may_retry(&self, expires: Option<UnixMs>, now: UnixMs) -> bool {
        self.status.state.is_retryable() && expires.or(self.job.expires_at).is_none_or(|at| at > now)
    }
}

/// What a service said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredResponse {
    /// As they came.
    pub headers: Vec<(String, String)>,
    /// As it came.
    pub body: Vec<u8>,
}

/// A change that was not the ordinary course from queued through leased to done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// When.
    pub at: UnixMs,
    /// Where the job went.
    pub state: State,
    /// Why.
    pub reason: String,
    /// What was sent before it, if that was it.
    pub attempt: Option<StoredAttempt>,
}

/// All that is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDetail {
    /// The job and where it is.
    pub entry: JobEntry,
    /// What the service said last, if that was kept.
    pub response: Option<StoredResponse>,
    /// The last [`MAX_JOB_EVENTS`] changes out of the ordinary, oldest first.
    pub history: Vec<JobEvent>,
}

/// A job keeps so many changes out of the ordinary.
pub const MAX_JOB_EVENTS: usize = 20;

/// What is to be different about a job; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobEdit {
    /// Another method.
    pub method: Option<String>,
    /// Another URL.
    pub url: Option<String>,
    /// Other headers, all of them.
    pub headers: Option<Vec<(String, String)>>,
    /// Another body.
    pub body: Option<Vec<u8>>,
    /// Another end of its time; `Some(None)` is none at all.
    pub expires_at: Option<Option<UnixMs>>,
    /// Another priority.
    pub priority: Option<i32>,
    /// Another weight.
    pub weight: Option<u32>,
    /// Another key; `Some(None)` is any.
    pub key_hint: Option<Option<String>>,
}

impl JobEdit {
    /// Makes the job what it is to be.
    pub fn apply(self, job: &mut Job) {
        fn set<T>(to: &mut T, from: Option<T>) {
            if let Some(from) = from {
                *to = from;
            }
        }
        set(&mut job.request.method, self.method);
        set(&mut job.request.url, self.url);
        set(&mut job.request.headers, self.headers);
        set(&mut job.request.body, self.body);
        set(&mut job.expires_at, self.expires_at);
        set(&mut job.priority, self.priority);
        set(&mut job.weight, self.weight);
        set(&mut job.key_hint, self.key_hint);
    }
}
