//! Request as a log has it.

use super::access_time::AccessTime;
use weir_base::Nanos;

/// Request as a log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessRecord {
    /// Time of the line.
    pub time: AccessTime,
    /// Time that the request took, if the log has it.
    pub took: Option<Nanos>,
    /// Method: letters, digits and the other characters of a token.
    pub method: Box<str>,
    /// Path and query; begins with a slash and is printable ASCII without spaces.
    pub target: Box<str>,
    /// Host that it was sent to.
    pub host: Option<Box<str>>,
    /// Status of the response, 100 to 999; `None` if there was none.
    pub status: Option<u16>,
    /// `User-Agent` header.
    pub user_agent: Option<Box<str>>,
    /// `Referer` header.
    pub referer: Option<Box<str>>,
    /// Body of the request.
    pub body: Option<Box<str>>,
}

/// Size of a record without its texts, in bytes: with what the allocator adds.
const RECORD_BYTES: usize = 256;

impl AccessRecord {
    /// Time of the start, in nanoseconds since 1970, if the stamp is `stamp_ns`.
    pub fn start_ns(&self, stamp_ns: i64) -> i64 {
        let took = self.took.unwrap_or(Nanos::ZERO);
        if self.time.is_end() { stamp_ns.saturating_sub_unsigned(took.0) } else { stamp_ns }
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let texts = [&self.host, &self.user_agent, &self.referer, &self.body];
        let optional: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        RECORD_BYTES + self.method.len() + self.target.len() + optional
    }

    /// Path without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }

    /// Whether its method changes nothing on the service (RFC 9110, 9.2.1).
    pub fn is_safe(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}
