//! Calls about jobs, and their replies.

use std::collections::HashMap;

use ::redis::Value;

use super::connection::QueueContext;
use super::reply::{self, headers_text};
use super::script::{RedisScript, ScriptCall};
use crate::job::{Job, JobEntry, UnixMs};
use crate::store::{
    ClaimReply, ClaimRequest, JobChange, JobLane, JobLease, JobOrder, JobStep, QueueBounds, RecordReply, RecordRequest,
};
use weir_redis::{RedisValue, RedisValues};

/// Offset of ranks as text, so that texts sort as the numbers; the job's number follows.
fn rank(order: JobOrder, expires: Option<UnixMs>) -> Option<String> {
    (order == JobOrder::Deadline).then(|| format!("{:020}.", order.rank(expires).max(0)))
}

/// Call that submits jobs; None without jobs.
pub(super) fn submit_call<'a>(
    jobs: impl Iterator<Item = &'a Job>,
    bounds: QueueBounds,
    order: JobOrder,
    terms: &QueueContext,
) -> Option<ScriptCall> {
    let (mut ask, mut count) = (ScriptCall::new(RedisScript::Submit), 0_u64);
    ask.number(bounds.jobs).number(bounds.bytes).number(0);
    for job in jobs {
        let request = &job.request;
        ask.optional(job.id.as_ref()).optional(job.key_hint.as_ref()).number(job.priority);
        ask.optional(rank(order, job.expires_at)).number(terms.to_server_time(job.created_at));
        ask.optional(job.expires_at.map(|at| terms.to_server_time(at).to_string())).number(job.weight);
        ask.arg(&request.method).arg(&request.url).optional(headers_text(&request.headers));
        ask.optional(job.idempotency_key.as_ref()).optional(Some(&request.body).filter(|body| !body.is_empty()));
        ask.number(job.bytes()).optional(Some(JobLane::of(job).to_text())).arg(request.templates.to_text());
        count += 1;
    }
    if let Some(word) = ask.args.get_mut(2) {
        *word = count.to_string().into_bytes();
    }
    (count > 0).then_some(ask)
}

/// Size of one of the submitted jobs.
pub(super) fn nth_job_bytes(submit: &ScriptCall, nth: usize) -> u64 {
    let word = submit.args.get(3 + nth * 15 + 12).and_then(|word| std::str::from_utf8(word).ok());
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

pub(super) fn claim_call(claim: &ClaimRequest, terms: &QueueContext) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::Claim);
    ask.number(terms.to_server_time(claim.now))
        .arg(length_ms(claim.lease_duration))
        .number(terms.address.lease.0 / 1_000_000);
    ask.number(claim.max_bytes).flag(claim.marks_sent);
    for want in &claim.lanes {
        ask.optional(Some(want.lane.to_text())).number(want.max_jobs);
    }
    ask
}

/// Length in milliseconds, or `inf`.
pub(super) fn length_ms(length: weir_base::Nanos) -> String {
    if length == weir_base::Nanos::NEVER { "inf".into() } else { (length.0 / 1_000_000).to_string() }
}

/// Reply to a claim, and the kinds of changes.
pub(super) fn parse_claim(said: Value, terms: &QueueContext) -> (ClaimReply, i64) {
    let mut said = RedisValues::of(said);
    let (what, next, lanes) = (said.next_value().int(), said.next_value(), said.next_value());
    let (tokens, rows, late) = (said.next_value().items(), said.next_value().items(), said.next_value().items());
    let mut lanes: Vec<JobLane> = lanes.items().into_iter().map(|word| JobLane::read(&word.text())).collect();
    lanes.sort_unstable();
    let entries = rows.into_iter().map(|row| reply::parse_entry(row.0, terms));
    let lease =
        |(token, entry): (RedisValue, JobEntry)| (JobLease { number: entry.number, token: token.count() }, entry);
    let jobs = tokens.into_iter().zip(entries).map(lease).collect();
    let expired = late.into_iter().map(|row| reply::parse_entry(row.0, terms)).collect();
    (ClaimReply { jobs, expired, next_due: next.maybe_int().map(|at| terms.to_local_time(at)), lanes }, what)
}

pub(super) fn record_call(record: &RecordRequest, terms: &QueueContext) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::Record);
    ask.number(record.changes.len());
    for change in &record.changes {
        push_change(&mut ask, change, terms);
    }
    for note in &record.key_states {
        ask.arg(&note.key).arg(&note.state);
    }
    ask
}

fn push_change(ask: &mut ScriptCall, change: &JobChange, terms: &QueueContext) {
    let time = |at: UnixMs| terms.to_server_time(at).to_string();
    let retry_at = if let JobStep::Retrying { retry_at } = change.step { Some(time(retry_at)) } else { None };
    ask.number(change.lease.number).number(change.lease.token).arg(time(change.at)).arg(&change.reason);
    ask.arg(change.step.state().name()).optional(retry_at);
    let attempt = change.attempt.as_ref();
    ask.flag(attempt.is_some()).optional(attempt.and_then(|attempt| attempt.key.as_ref()));
    ask.optional(attempt.map(|attempt| time(attempt.sent_at)));
    ask.optional(attempt.and_then(|attempt| attempt.status).map(|code| code.to_string()));
    let response = change.response.as_ref();
    let headers = response.and_then(|response| headers_text(&response.headers)).unwrap_or_else(|| "[]".into());
    ask.flag(response.is_some()).arg(headers).arg(response.map_or(&[][..], |response| &response.body));
}

pub(super) fn parse_record(said: Value, record: &RecordRequest) -> (RecordReply, i64) {
    let mut said = RedisValues::of(said);
    let what = said.next_value().int();
    let mut stale = Vec::new();
    while !said.is_empty() {
        let at = usize::try_from(said.next_value().int()).unwrap_or(usize::MAX);
        stale.extend(record.changes.get(at).map(|change| change.lease));
    }
    (RecordReply { stale }, what)
}

/// Call that changes a job unless it has changed meanwhile.
pub(super) fn edit_call(
    before: &JobEntry,
    after: &Job,
    now: UnixMs,
    order: JobOrder,
    terms: &QueueContext,
) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::Edit);
    let request = &after.request;
    ask.number(before.number).arg(before.status.state.name()).number(terms.to_server_time(before.status.changed_at));
    ask.number(before.job.bytes()).number(terms.to_server_time(now)).number(after.bytes());
    ask.arg(&request.method).arg(&request.url).optional(headers_text(&request.headers));
    ask.optional(Some(&request.body).filter(|body| !body.is_empty())).number(after.priority).number(after.weight);
    ask.optional(after.expires_at.map(|at| terms.to_server_time(at).to_string())).optional(after.key_hint.as_ref());
    ask.optional(rank(order, after.expires_at)).optional(Some(JobLane::of(after).to_text()));
    ask.arg(request.templates.to_text());
    ask
}

/// Call that removes or requeues jobs.
pub(super) fn bulk_update_call(
    numbers: &[u64],
    purges: bool,
    expires: Option<UnixMs>,
    now: UnixMs,
    order: JobOrder,
    terms: &QueueContext,
) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::BulkUpdate);
    ask.arg(if purges { "purge" } else { "retry" }).number(terms.to_server_time(now));
    ask.optional(expires.map(|at| terms.to_server_time(at).to_string())).optional(rank(order, expires));
    for number in numbers {
        ask.number(number);
    }
    ask
}

/// Map of names to numbers from a flat list.
pub(super) fn parse_pairs(said: RedisValue) -> HashMap<String, u64> {
    let mut said = RedisValues::of(said.0);
    let mut pairs = HashMap::new();
    while !said.is_empty() {
        let (name, number) = (said.next_value().text(), said.next_value().count());
        pairs.insert(name, number);
    }
    pairs
}
