//! Requests of a script, and their results.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_load::program::{CallNext, ConnectionFacts, RequestTimes};
use weir_request::url::HttpUrl;

use super::call_queue::{ArrivedMessage, StreamCallQueue};

/// Header of credentials.
pub(crate) const AUTHORIZATION: &str = "Authorization";

/// Request of a script.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: Cow<'static, str>,
    pub(crate) url: HttpUrl,
    /// URL as samples have it: as given, or the template of several.
    pub(crate) name: Option<String>,
    pub(crate) headers: Vec<(String, Option<String>)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Nanos,
    /// Maximum number of redirects that are followed.
    pub(crate) max_redirects: u32,
    /// Index of the cookie jar.
    pub(crate) jar: usize,
    pub(crate) expected: ExpectedStatuses,
    /// Whether the body is not kept.
    pub(crate) discards_body: bool,
    /// Whether the script takes the body as bytes.
    pub(crate) is_binary: bool,
    /// Whether it is a call of gRPC, and whether one that is a stream.
    pub(crate) is_call: bool,
    pub(crate) is_stream: bool,
    /// Number of the certificates of a call.
    pub(crate) channel: u32,
    /// Whether it takes a challenge of digest authentication.
    pub(crate) has_digest: bool,
    /// Whether its failure is an exception.
    pub(crate) throws: bool,
    /// Cookies that it has beside those of its jar; they are in its headers.
    pub(crate) cookies: Vec<SentCookie>,
    /// Tags of its samples.
    pub(crate) tags: Vec<(String, String)>,
}

/// A cookie of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentCookie {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether it is sent in place of that of the jar.
    pub(crate) replaces: bool,
}

/// Statuses that make a response a success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExpectedStatuses {
    /// Those of k6: 200 to 399.
    #[default]
    Usual,
    /// Those within one of these ranges.
    Ranges(Vec<(u16, u16)>),
    /// All: nothing is judged.
    Any,
}

impl ExpectedStatuses {
    /// Whether a response of this status is a success.
    pub(crate) fn contains(&self, status: u16) -> bool {
        match self {
            Self::Usual => (200..400).contains(&status),
            Self::Ranges(ranges) => ranges.iter().any(|(first, last)| (*first..=*last).contains(&status)),
            Self::Any => true,
        }
    }
}

/// Result of a request of a script.
#[derive(Debug)]
pub(crate) struct HttpResult {
    pub(crate) end: HttpEnd,
    /// URL of the last request, after redirects.
    pub(crate) url: HttpUrl,
    pub(crate) times: RequestTimes,
    /// Method of the last request, after redirects.
    pub(crate) method: Cow<'static, str>,
    /// The request as the script has made it.
    pub(crate) request: Box<HttpRequest>,
    /// Connection of the response.
    pub(crate) connection: Option<Arc<ConnectionFacts>>,
}

impl HttpResult {
    /// Status of the response; 0 without one.
    pub(crate) fn status(&self) -> u16 {
        match &self.end {
            HttpEnd::Response(status, ..) => *status,
            HttpEnd::Failed(..) => 0,
        }
    }

    /// Head of the response as it came; empty without one.
    pub(crate) fn head(&self) -> &[u8] {
        match &self.end {
            HttpEnd::Response(_, head, _) => head,
            HttpEnd::Failed(..) => &[],
        }
    }

    /// Number of the failure; 0 for none.
    pub(crate) fn error_code(&self) -> u32 {
        match &self.end {
            HttpEnd::Response(status, ..) if *status >= 400 => 1000 + u32::from(*status),
            HttpEnd::Response(..) => 0,
            HttpEnd::Failed(kind, _) => error_code(*kind),
        }
    }
}

/// How a request has ended.
#[derive(Debug)]
pub(crate) enum HttpEnd {
    /// A response: its status, its head, and its body, decoded, if it is kept.
    Response(u16, Vec<u8>, Option<Vec<u8>>),
    /// None, or one that cannot be read, and why.
    Failed(FailureKind, String),
}

/// Requests of a user that are to be sent, and results that its script has not taken.
#[derive(Debug, Default)]
pub(crate) struct UserExchanges {
    last_key: u32,
    /// Requests that are to be sent, with their keys.
    pub(crate) outbox: VecDeque<(u32, Box<HttpRequest>)>,
    results: Vec<(u32, Box<HttpResult>)>,
    /// Number of requests without a result.
    pub(crate) open: usize,
    /// What belongs to calls that are streams.
    pub(crate) calls: StreamCallQueue,
    /// Whether a request has ended since the script's last wait.
    has_news: bool,
}

impl UserExchanges {
    /// Adds a request; returns its key.
    pub(crate) fn add(&mut self, request: HttpRequest) -> u32 {
        self.last_key = self.last_key.wrapping_add(1);
        self.outbox.push_back((self.last_key, Box::new(request)));
        self.open += 1;
        self.last_key
    }

    /// Adds the result of a request.
    pub(crate) fn finish(&mut self, key: u32, result: HttpResult) {
        self.open = self.open.saturating_sub(1);
        self.results.push((key, Box::new(result)));
        self.has_news = true;
    }

    /// Adds a message of a call that is a stream; false if too many wait for the script.
    pub(crate) fn add_message(&mut self, message: ArrivedMessage) -> bool {
        self.has_news = true;
        self.calls.add(message)
    }

    /// Gives up a call that is a stream, which has no result from then on.
    pub(crate) fn give_up(&mut self, key: u32) {
        self.open = self.open.saturating_sub(1);
        self.outbox.retain(|(known, _)| *known != key);
        self.calls.end(key, CallNext::Cancel);
        while self.calls.take(Some(key)).is_some() {}
    }

    /// Takes the result of a request, if it is there.
    pub(crate) fn take(&mut self, key: u32) -> Option<Box<HttpResult>> {
        let at = self.results.iter().position(|(known, _)| *known == key)?;
        Some(self.results.remove(at).1)
    }

    /// Forgets the results that nothing takes.
    pub(crate) fn forget_results(&mut self) {
        self.results.clear();
    }

    /// Keys of results that the script has not taken, in the order of their ends.
    pub(crate) fn finished(&self) -> Vec<u32> {
        self.results.iter().map(|(key, _)| *key).collect()
    }

    /// Whether there is a result, or a message, that the script has not taken.
    pub(crate) fn has_result(&self) -> bool {
        !self.results.is_empty() || self.calls.has_message()
    }

    /// Whether a request has ended since the script's last wait [has ended](Self::end_wait).
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Ends a wait: the script looks at the results.
    pub(crate) fn end_wait(&mut self) {
        self.has_news = false;
    }

    /// Forgets the requests of an iteration; keys go on.
    pub(crate) fn clear(&mut self) {
        self.outbox.clear();
        self.results.clear();
        self.calls.clear();
        (self.open, self.has_news) = (0, false);
    }
}

/// Number that k6 gives a failure.
pub(crate) fn error_code(kind: FailureKind) -> u32 {
    match kind {
        FailureKind::Timeout => 1050,
        FailureKind::Dns => 1101,
        FailureKind::Connect => 1212,
        FailureKind::Reset | FailureKind::Closed => 1220,
        FailureKind::Tls => 1300,
        FailureKind::Body => 1701,
        _ => 1000,
    }
}
