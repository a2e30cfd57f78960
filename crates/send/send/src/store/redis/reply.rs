//! Parsers of replies about jobs.

use ::redis::Value;

use super::connection::QueueContext;
use crate::job::{Job, JobDetail, JobEntry, JobEvent, JobRequest, JobStatus, StoredAttempt, StoredResponse, UnixMs};
use crate::state::State;
use crate::template_parts::TemplateParts;
use weir_redis::{RedisValue, RedisValues};

/// Job of a row, in the order of `FIELDS` in `head.lua`.
pub(super) fn parse_entry(value: Value, terms: &QueueContext) -> JobEntry {
    let mut row = RedisValues::of(value);
    let mut next = || row.next_value();
    let time = |reply: RedisValue| reply.maybe_int().map(|at| terms.to_local_time(at));
    let id = next().maybe_text();
    let state = next().text().parse().unwrap_or(State::Queued);
    let reason = next().text();
    let changed = time(next()).unwrap_or_default();
    let (attempts, maybe_sent) = (u32::try_from(next().int()).unwrap_or(0), next().int() == 1);
    let (code, key, sent) = (next().maybe_int(), next().maybe_text(), time(next()));
    let (retry_at, created, expires) = (time(next()), time(next()).unwrap_or_default(), time(next()));
    let (priority, weight) = (next().int(), next().int());
    let (key_hint, _bytes) = (next().maybe_text(), next());
    let (method, url, headers) = (next().text(), next().text(), next().maybe_text());
    let (idempotency_key, body) = (next().maybe_text(), next().bytes().unwrap_or_default());
    let (templates, _rank, number) = (next().text(), next(), next().count());
    let headers = parse_headers(headers.as_deref());
    let templates = TemplateParts::read(&templates);
    let request = JobRequest { method, url, headers, body, templates };
    let job = Job {
        id,
        request,
        created_at: created,
        expires_at: expires,
        priority: i32::try_from(priority).unwrap_or(0),
        weight: u32::try_from(weight).unwrap_or(1),
        key_hint,
        idempotency_key,
    };
    let last =
        sent.map(|sent| StoredAttempt { key, sent_at: sent, status: code.and_then(|code| u16::try_from(code).ok()) });
    JobEntry {
        number,
        job,
        status: JobStatus { state, changed_at: changed, reason, attempts, maybe_sent, retry_at, last_attempt: last },
    }
}

/// Job of a reply of `inspect.lua`.
pub(super) fn parse_detail(value: Value, terms: &QueueContext) -> Option<JobDetail> {
    let mut said = RedisValues::of(value);
    if said.is_empty() {
        return None;
    }
    let entry = parse_entry(said.next_value().0, terms);
    let (headers, body) = (said.next_value().maybe_text(), said.next_value().bytes());
    let response = body.map(|body| StoredResponse { headers: parse_headers(headers.as_deref()), body });
    let history = said.next_value().items().into_iter().filter_map(|event| parse_event(&event.text(), terms)).collect();
    Some(JobDetail { entry, response, history })
}

fn parse_event(text: &str, terms: &QueueContext) -> Option<JobEvent> {
    let event: serde_json::Value = serde_json::from_str(text).ok()?;
    // Lua has only one type of numbers.
    let number = |name: &str| event[name].as_f64().map(|number| number as i64);
    let time = |name: &str| number(name).map(|at| terms.to_local_time(at));
    let word = |name: &str| event[name].as_str().map(str::to_owned);
    let code = number("code").and_then(|code| u16::try_from(code).ok());
    let attempt = time("sent").map(|sent| StoredAttempt { key: word("key"), sent_at: sent, status: code });
    Some(JobEvent { at: time("at")?, state: word("state")?.parse().ok()?, reason: word("reason")?, attempt })
}

fn parse_headers(text: Option<&str>) -> Vec<(String, String)> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Headers as stored; None without headers.
pub(super) fn headers_text(headers: &[(String, String)]) -> Option<String> {
    if headers.is_empty() { None } else { serde_json::to_string(headers).ok() }
}

impl QueueContext {
    /// Local time of a server's time.
    pub(super) fn to_local_time(&self, at: i64) -> UnixMs {
        UnixMs(at.saturating_sub(self.clock_offset_ms.load(std::sync::atomic::Ordering::Relaxed)))
    }

    /// Server's time of a local time.
    pub(super) fn to_server_time(&self, at: UnixMs) -> i64 {
        at.0.saturating_add(self.clock_offset_ms.load(std::sync::atomic::Ordering::Relaxed))
    }
}
