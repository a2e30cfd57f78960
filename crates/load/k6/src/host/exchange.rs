//! Requests of a script, and their results.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_request::url::HttpUrl;

/// Request of a script.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
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
    /// Tags of its samples.
    pub(crate) tags: Vec<(String, String)>,
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

/// Times of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExchangeTimes {
    /// From the send to the whole response.
    pub(crate) service: Nanos,
    /// From the send to the first byte.
    pub(crate) first_byte: Nanos,
    /// Time that it waited for a connection to be made.
    pub(crate) connect: Nanos,
}

/// Result of a request of a script.
#[derive(Debug)]
pub(crate) struct HttpResult {
    pub(crate) end: HttpEnd,
    /// URL of the last request, after redirects.
    pub(crate) url: HttpUrl,
    pub(crate) times: ExchangeTimes,
    /// Lines of the head that was sent, with the cookies.
    pub(crate) method: String,
}

/// How a request has ended.
#[derive(Debug)]
pub(crate) enum HttpEnd {
    /// A response: its status, its head, and its body, decoded.
    Response(u16, Vec<u8>, Vec<u8>),
    /// None, or one that cannot be read, and why.
    Failed(FailureKind, String),
}

/// Number that k6 gives a failure.
pub(crate) fn error_code(kind: FailureKind) -> u32 {
    match kind {
        FailureKind::Timeout => 1050,
        FailureKind::Connect => 1212,
        FailureKind::Reset | FailureKind::Closed => 1220,
        FailureKind::Tls => 1300,
        FailureKind::Body => 1701,
        _ => 1000,
    }
}
