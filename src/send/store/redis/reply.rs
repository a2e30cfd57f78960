//! Reads what scripts say of jobs.

use ::redis::Value;

use super::link::Terms;
use crate::redis::{Replies, Reply};
use crate::send::job::{Answer, Attempt, Detail, Entry, Event, Job, Request, Status, UnixMs};
use crate::send::state::State;

/// Reads a row, in the order of `FIELDS` in `head.lua`: the job, and the rank by which it stands in line.
pub(super) fn entry(value: Value, terms: &Terms) -> Entry {
    let mut row = Replies::of(value);
    let mut next = || row.take();
    let time = |reply: Reply| reply.maybe_int().map(|at| terms.ours(at));
    let id = next().maybe_text();
    let state = next().text().parse().unwrap_or(State::Queued);
    let reason = next().text();
    let changed = time(next()).unwrap_or_default();
    let (tries, maybe_sent) = (u32::try_from(next().int()).unwrap_or(0), next().int() == 1);
    let (code, key, sent) = (next().maybe_int(), next().maybe_text(), time(next()));
    let (retry_at, created, expires) = (time(next()), time(next()).unwrap_or_default(), time(next()));
    let (priority, weight) = (next().int(), next().int());
    let (key_hint, _bytes) = (next().maybe_text(), next());
    let (method, url, headers) = (next().text(), next().text(), next().maybe_text());
    let (idempotency_key, body) = (next().maybe_text(), next().bytes().unwrap_or_default());
    let (_rank, number) = (next(), next().count());
    let request = Request { method, url, headers: headers_of(headers.as_deref()), body };
    let job = Job {
        id,
        request,
        created,
        expires,
        priority: i32::try_from(priority).unwrap_or(0),
        weight: u32::try_from(weight).unwrap_or(1),
        key_hint,
        idempotency_key,
    };
    let last = sent.map(|sent| Attempt { key, sent, code: code.and_then(|code| u16::try_from(code).ok()) });
    Entry { number, job, status: Status { state, changed, reason, tries, maybe_sent, retry_at, last } }
}

/// Reads what `inspect.lua` says.
pub(super) fn detail(value: Value, terms: &Terms) -> Option<Detail> {
    let mut said = Replies::of(value);
    if said.is_empty() {
        return None;
    }
    let entry = entry(said.take().0, terms);
    let (headers, body) = (said.take().maybe_text(), said.take().bytes());
    let answer = body.map(|body| Answer { headers: headers_of(headers.as_deref()), body });
    let history = said.take().all().into_iter().filter_map(|event| event_of(&event.text(), terms)).collect();
    Some(Detail { entry, answer, history })
}

fn event_of(text: &str, terms: &Terms) -> Option<Event> {
    let event: serde_json::Value = serde_json::from_str(text).ok()?;
    // Lua has one kind of numbers.
    let number = |name: &str| event[name].as_f64().map(|number| number as i64);
    let time = |name: &str| number(name).map(|at| terms.ours(at));
    let word = |name: &str| event[name].as_str().map(str::to_owned);
    let code = number("code").and_then(|code| u16::try_from(code).ok());
    let attempt = time("sent").map(|sent| Attempt { key: word("key"), sent, code });
    Some(Event { at: time("at")?, state: word("state")?.parse().ok()?, reason: word("reason")?, attempt })
}

fn headers_of(text: Option<&str>) -> Vec<(String, String)> {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// As they are kept; none at all if there are none.
pub(super) fn headers_text(headers: &[(String, String)]) -> Option<String> {
    if headers.is_empty() { None } else { serde_json::to_string(headers).ok() }
}

impl Terms {
    /// A time of the server's on this machine's clock.
    pub(super) fn ours(&self, at: i64) -> UnixMs {
        UnixMs(at.saturating_sub(self.ahead_ms.load(std::sync::atomic::Ordering::Relaxed)))
    }

    /// The other way.
    pub(super) fn theirs(&self, at: UnixMs) -> i64 {
        at.0.saturating_add(self.ahead_ms.load(std::sync::atomic::Ordering::Relaxed))
    }
}
