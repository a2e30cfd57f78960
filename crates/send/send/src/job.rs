//! Jobs, their status and history.

use std::fmt;

use super::state::State;
use super::template::has_fields;
use super::template_parts::{JobBodyKind, TemplateParts};

/// Wall-clock time, in milliseconds since 1970; comparable between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMs(pub i64);

impl UnixMs {
    /// Time later by `ms`.
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// HTTP request of a job, with the fields of its templates not filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// Method: `GET`, `POST`, ...
    pub method: String,
    /// URL.
    pub url: String,
    /// Headers, in the order of sending.
    pub headers: Vec<(String, String)>,
    /// Body; may be empty.
    pub body: Vec<u8>,
    /// Parts that are templates; the rest is data.
    pub templates: TemplateParts,
}

/// Job: one HTTP request to deliver, with its terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Job ID, unique in a store: a second submission is a duplicate, and is not sent.
    pub id: Option<String>,
    /// Request.
    pub request: JobRequest,
    /// Time of submission.
    pub created_at: UnixMs,
    /// End of its time to live.
    pub expires_at: Option<UnixMs>,
    /// Priority; higher is sent first.
    pub priority: i32,
    /// Weight in a weight limit: tokens, for example; 1 by default.
    pub weight: u32,
    /// Name of the only key that may send it, never the secret; None for any key.
    pub key_hint: Option<String>,
    /// Idempotency key, the same for each attempt.
    pub idempotency_key: Option<String>,
}

impl Job {
    /// Size in a queue, in bytes: strings and body.
    pub fn bytes(&self) -> u64 {
        let headers: usize = self.request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let request = self.request.method.len() + self.request.url.len() + headers + self.request.body.len();
        (request + text(&self.id) + text(&self.key_hint) + text(&self.idempotency_key)) as u64
    }
}

/// Last attempt of a job, as far as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttempt {
    /// Name of the key.
    pub key: Option<String>,
    /// Time of the send.
    pub sent_at: UnixMs,
    /// Status of the response; None without one.
    pub status: Option<u16>,
}

impl StoredAttempt {
    /// Attempt of which only the time is known.
    pub const fn at(sent_at: UnixMs) -> Self {
        Self { key: None, sent_at, status: None }
    }
}

/// State of a stored job, its reason, and its attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// State.
    pub state: State,
    /// Time of the last change of state.
    pub changed_at: UnixMs,
    /// Reason, in prose.
    pub reason: String,
    /// Number of attempts, as far as known.
    pub attempts: u32,
    /// Whether it may also have been sent before a crash.
    pub maybe_sent: bool,
    /// Time of the next attempt of a retrying job.
    pub retry_at: Option<UnixMs>,
    /// Last attempt.
    pub last_attempt: Option<StoredAttempt>,
}

/// Job in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEntry {
    /// Number in the store, from 1, in the order of submission; never reused.
    pub number: u64,
    /// Job, with later edits.
    pub job: Job,
    /// Status.
    pub status: JobStatus,
}

impl JobEntry {
    /// Whether it can be requeued without expiring at once, with a new end of its TTL if given.
    pub fn may_retry(&self, expires: Option<UnixMs>, now: UnixMs) -> bool {
        self.status.state.is_retryable() && expires.or(self.job.expires_at).is_none_or(|at| at > now)
    }
}

/// Headers and body of a job's final response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredResponse {
    /// Headers, as received.
    pub headers: Vec<(String, String)>,
    /// Body, as received.
    pub body: Vec<u8>,
}

/// Change of state besides queued, leased, done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// Wall-clock time.
    pub at: UnixMs,
    /// New state.
    pub state: State,
    /// Reason, in prose.
    pub reason: String,
    /// Attempt that caused it, if one did.
    pub attempt: Option<StoredAttempt>,
}

/// Job with response and history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDetail {
    /// Job and status.
    pub entry: JobEntry,
    /// Last response, if stored.
    pub response: Option<StoredResponse>,
    /// The last [`MAX_JOB_EVENTS`] unusual changes, oldest first.
    pub history: Vec<JobEvent>,
}

/// Maximum unusual changes stored per job.
pub const MAX_JOB_EVENTS: usize = 20;

/// Changes of a job; fields with `None` stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobEdit {
    /// New method.
    pub method: Option<String>,
    /// New URL, a template.
    pub url: Option<String>,
    /// New headers, all of them.
    pub headers: Option<Vec<(String, String)>>,
    /// Indexes of new headers whose values are templates.
    pub header_templates: Vec<usize>,
    /// New body, a template.
    pub body: Option<Vec<u8>>,
    /// New end of the TTL; `Some(None)` is unlimited.
    pub expires_at: Option<Option<UnixMs>>,
    /// New priority.
    pub priority: Option<i32>,
    /// New weight.
    pub weight: Option<u32>,
    /// New pinned key; `Some(None)` is any.
    pub key_hint: Option<Option<String>>,
}

impl JobEdit {
    /// Applies the changes.
    pub fn apply(self, job: &mut Job) {
        fn set<T>(to: &mut T, from: Option<T>) {
            if let Some(from) = from {
                *to = from;
            }
        }
        let request = &mut job.request;
        if let Some(url) = &self.url {
            request.templates.add_url(url, url.len());
        }
        if self.headers.is_some() {
            request.templates.headers = self.header_templates;
        }
        if self.body.is_some() {
            request.templates.body = JobBodyKind::Template;
        }
        set(&mut request.method, self.method);
        set(&mut request.url, self.url);
        set(&mut request.headers, self.headers);
        set(&mut request.body, self.body);
        set(&mut job.expires_at, self.expires_at);
        set(&mut job.priority, self.priority);
        set(&mut job.weight, self.weight);
        set(&mut job.key_hint, self.key_hint);
    }
}

impl JobRequest {
    /// URL: the part that is a template, and the rest.
    pub(super) fn url_parts(&self) -> (&str, &str) {
        self.url.split_at_checked(self.templates.url_bytes).unwrap_or(("", &self.url))
    }

    /// Whether the body is a template.
    pub(super) fn is_body_template(&self) -> bool {
        self.templates.body == JobBodyKind::Template
    }

    /// Texts that are templates.
    pub(super) fn template_texts(&self) -> impl Iterator<Item = &str> {
        let headers = self.templates.headers.iter().filter_map(|index| self.headers.get(*index));
        let body = if self.is_body_template() { std::str::from_utf8(&self.body).ok() } else { None };
        [self.url_parts().0].into_iter().chain(headers.map(|(_, value)| value.as_str())).chain(body)
    }

    /// Place of a field in the data of the URL or of a header, which is sent as it is: probably meant as a template.
    pub fn literal_field(&self) -> Option<&'static str> {
        let is_data = |index: &usize| !self.templates.headers.contains(index);
        let mut headers = self.headers.iter().enumerate().filter(|(index, _)| is_data(index)).map(|(_, header)| header);
        if has_fields(self.url_parts().1) {
            Some("URL")
        } else {
            headers.any(|(_, value)| has_fields(value)).then_some("header")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_in_data_is_found() {
        let mut request = JobRequest { url: "http://h/{id}/{key}".into(), ..JobRequest::default() };
        request.templates.add_url("http://h/{id}/{key}", 13);
        assert_eq!(request.literal_field(), Some("URL"));
        assert_eq!(request.template_texts().collect::<Vec<_>>(), ["http://h/{id}"]);
        let headers = vec![("x-a".to_owned(), "{nonce}".to_owned())];
        let request = JobRequest { url: "http://h/{other}".into(), headers, ..JobRequest::default() };
        assert_eq!(request.literal_field(), Some("header"));
    }
}
