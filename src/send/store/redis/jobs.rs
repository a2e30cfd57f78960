//! Jobs on their way to the server: what is asked of them, in words.

use std::collections::HashMap;

use ::redis::Value;

use super::link::Terms;
use super::reply::{self, headers_text};
use super::script::{Ask, Script};
use crate::redis::{Replies, Reply};
use crate::send::job::{Entry, Job, UnixMs};
use crate::send::store::{Bounds, Change, Claim, Claimed, Lane, Lease, Order, Record, Recorded, Step};

/// What a rank is written with, so that texts are in the order of the numbers; a number of the job follows.
fn rank(order: Order, expires: Option<UnixMs>) -> Option<String> {
    (order == Order::Deadline).then(|| format!("{:020}.", order.rank(expires).max(0)))
}

/// Takes jobs in; None if there are none.
pub(super) fn submit<'a>(
    jobs: impl Iterator<Item = &'a Job>,
    bounds: Bounds,
    order: Order,
    terms: &Terms,
) -> Option<Ask> {
    let (mut ask, mut count) = (Ask::new(Script::Submit), 0_u64);
    ask.number(bounds.jobs).number(bounds.bytes).number(0);
    for job in jobs {
        let request = &job.request;
        ask.maybe(job.id.as_ref()).maybe(job.key_hint.as_ref()).number(job.priority);
        ask.maybe(rank(order, job.expires)).number(terms.theirs(job.created));
        ask.maybe(job.expires.map(|at| terms.theirs(at).to_string())).number(job.weight);
        ask.say(&request.method).say(&request.url).maybe(headers_text(&request.headers));
        ask.maybe(job.idempotency_key.as_ref()).maybe(Some(&request.body).filter(|body| !body.is_empty()));
        ask.number(job.bytes()).maybe(Some(Lane::of(job).word()));
        count += 1;
    }
    if let Some(word) = ask.words.get_mut(2) {
        *word = count.to_string().into_bytes();
    }
    (count > 0).then_some(ask)
}

/// The size of one of the jobs that are being taken in.
pub(super) fn bytes_of(submit: &Ask, nth: usize) -> u64 {
    let word = submit.words.get(3 + nth * 14 + 12).and_then(|word| std::str::from_utf8(word).ok());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

pub(super) fn claim(claim: &Claim, terms: &Terms) -> Ask {
    let mut ask = Ask::new(Script::Claim);
    ask.number(terms.theirs(claim.now)).say(length_ms(claim.lease)).number(terms.address.lease.0 / 1_000_000);
    ask.number(claim.most_bytes).flag(claim.sending);
    for want in &claim.wants {
        ask.maybe(Some(want.lane.word())).number(want.most);
    }
    ask
}

/// In milliseconds; no end in a word.
pub(super) fn length_ms(length: crate::decide::Nanos) -> String {
    if length == crate::decide::Nanos::NEVER { "inf".into() } else { (length.0 / 1_000_000).to_string() }
}

/// What came of a claim, and what has happened.
pub(super) fn claimed(said: Value, terms: &Terms) -> (Claimed, i64) {
    let mut said = Replies::of(said);
    let (what, next, lanes) = (said.take().int(), said.take(), said.take());
    let (tokens, rows, late) = (said.take().all(), said.take().all(), said.take().all());
    let mut lanes: Vec<Lane> = lanes.all().into_iter().map(|word| Lane::read(&word.text())).collect();
    lanes.sort_unstable();
    let entries = rows.into_iter().map(|row| reply::entry(row.0, terms));
    let lease = |(token, entry): (Reply, Entry)| (Lease { number: entry.number, token: token.count() }, entry);
    let jobs = tokens.into_iter().zip(entries).map(lease).collect();
    let expired = late.into_iter().map(|row| reply::entry(row.0, terms)).collect();
    (Claimed { jobs, expired, next: next.maybe_int().map(|at| terms.ours(at)), lanes }, what)
}

pub(super) fn record(record: &Record, terms: &Terms) -> Ask {
    let mut ask = Ask::new(Script::Record);
    ask.number(record.changes.len());
    for change in &record.changes {
        changed(&mut ask, change, terms);
    }
    for note in &record.keys {
        ask.say(&note.key).say(&note.note);
    }
    ask
}

fn changed(ask: &mut Ask, change: &Change, terms: &Terms) {
    let time = |at: UnixMs| terms.theirs(at).to_string();
    let retry_at = if let Step::Dead { retry_at } = change.step { Some(time(retry_at)) } else { None };
    ask.number(change.lease.number).number(change.lease.token).say(time(change.at)).say(&change.reason);
    ask.say(change.step.state().word()).maybe(retry_at);
    let attempt = change.attempt.as_ref();
    ask.flag(attempt.is_some()).maybe(attempt.and_then(|attempt| attempt.key.as_ref()));
    ask.maybe(attempt.map(|attempt| time(attempt.sent)));
    ask.maybe(attempt.and_then(|attempt| attempt.code).map(|code| code.to_string()));
    let answer = change.answer.as_ref();
    let headers = answer.and_then(|answer| headers_text(&answer.headers)).unwrap_or_else(|| "[]".into());
    ask.flag(answer.is_some()).say(headers).say(answer.map_or(&[][..], |answer| &answer.body));
}

pub(super) fn recorded(said: Value, record: &Record) -> (Recorded, i64) {
    let mut said = Replies::of(said);
    let what = said.take().int();
    let mut stale = Vec::new();
    while !said.is_empty() {
        let at = usize::try_from(said.take().int()).unwrap_or(usize::MAX);
        stale.extend(record.changes.get(at).map(|change| change.lease));
    }
    (Recorded { stale }, what)
}

/// Has a job be what it is now, if it is still what it was.
pub(super) fn edit(before: &Entry, after: &Job, now: UnixMs, order: Order, terms: &Terms) -> Ask {
    let mut ask = Ask::new(Script::Edit);
    let request = &after.request;
    ask.number(before.number).say(before.status.state.word()).number(terms.theirs(before.status.changed));
    ask.number(before.job.bytes()).number(terms.theirs(now)).number(after.bytes());
    ask.say(&request.method).say(&request.url).maybe(headers_text(&request.headers));
    ask.maybe(Some(&request.body).filter(|body| !body.is_empty())).number(after.priority).number(after.weight);
    ask.maybe(after.expires.map(|at| terms.theirs(at).to_string())).maybe(after.key_hint.as_ref());
    ask.maybe(rank(order, after.expires)).maybe(Some(Lane::of(after).word()));
    ask
}

/// Has jobs be removed, or queued again.
pub(super) fn sweep(
    numbers: &[u64],
    purges: bool,
    expires: Option<UnixMs>,
    now: UnixMs,
    order: Order,
    terms: &Terms,
) -> Ask {
    let mut ask = Ask::new(Script::Sweep);
    ask.say(if purges { "purge" } else { "retry" }).number(terms.theirs(now));
    ask.maybe(expires.map(|at| terms.theirs(at).to_string())).maybe(rank(order, expires));
    for number in numbers {
        ask.number(number);
    }
    ask
}

/// A list of names and numbers, two by two.
pub(super) fn pairs(said: Reply) -> HashMap<String, u64> {
    let mut said = Replies::of(said.0);
    let mut pairs = HashMap::new();
    while !said.is_empty() {
        let (name, number) = (said.take().text(), said.take().count());
        pairs.insert(name, number);
    }
    pairs
}
