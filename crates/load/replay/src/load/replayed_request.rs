//! Requests of a log as they are sent.

use crate::{AccessRecord, RouteTable, TimedRecord};
use weir_net::wire::WireRequest;

/// Request of a log as it is sent.
#[derive(Clone, Debug)]
pub(super) struct ReplayedRequest {
    pub(super) bytes: Vec<u8>,
    /// Index of its route.
    pub(super) route: u32,
    /// Status that the log has.
    pub(super) status: Option<u16>,
    pub(super) is_bodyless: bool,
}

/// Properties that all requests of a replay have in common.
#[derive(Clone, Debug)]
pub(super) struct RequestForm {
    /// Value of the Host header.
    pub(super) host: String,
    /// Path before that of each request, without a slash at its end.
    pub(super) base: String,
    /// Header lines.
    pub(super) headers: Vec<String>,
    pub(super) keep_alive: bool,
    /// Whether Host, User-Agent and Referer are those of the log.
    pub(super) has_recorded_headers: bool,
    pub(super) routes: RouteTable,
}

impl RequestForm {
    /// Request of a record.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub(super) fn request(&self, timed: &TimedRecord) -> Result<ReplayedRequest, String> {
        let record = &timed.record;
        let recorded = self.headers_of(record);
        let headers = recorded.as_ref().unwrap_or(&self.headers);
        let target = format!("{}{}", self.base, record.target);
        let body = record.body.as_deref().unwrap_or_default().as_bytes();
        let request = WireRequest::build(&record.method, &target, &self.host, headers, body, self.keep_alive);
        let WireRequest { bytes, bodyless, .. } = request.map_err(|error| error.to_string())?;
        let route = self.routes.index(&record.method, record.path());
        Ok(ReplayedRequest { bytes, route, status: record.status, is_bodyless: bodyless })
    }

    /// Header lines with those of the log; `None` if they are not wanted.
    fn headers_of(&self, record: &AccessRecord) -> Option<Vec<String>> {
        if !self.has_recorded_headers {
            return None;
        }
        let recorded =
            [("Host", &record.host), ("User-Agent", &record.user_agent), ("Referer", &record.referer)].into_iter();
        let is_given = |name: &str| {
            let given = self.headers.iter().filter_map(|line| line.split_once(':'));
            given.into_iter().any(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        };
        let lines = recorded.filter(|(name, _)| !is_given(name));
        let lines = lines.filter_map(|(name, value)| Some(format!("{name}: {}", value.as_deref()?)));
        Some(lines.chain(self.headers.iter().cloned()).collect())
    }
}
