//! Writes of the tables in one transaction.

mod claim;
mod edit;

use std::sync::{Arc, Mutex};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Statement, ToSql, params};

use super::marks::{PreviousMarks, SentEvidence, SentMarks};
use super::row::{self, headers_text, text_or_blob, to_signed};
use super::statements::Statements;
use crate::job::{Job, JobEntry, MAX_JOB_EVENTS, StoredAttempt, UnixMs};
use crate::state::State;
use crate::store::leases::{LeaseEntry, Leases};
use crate::store::submission_queue::SubmitResult;
use crate::store::{
    JobChange, JobCounts, JobLane, JobOrder, JobStep, QueueBounds, Receipt, RecordReply, RecordRequest, Recovery,
    audit_reason,
};
use weir_machine::clock::Clock;
use weir_machine::lock::lock;

/// Maximum number of jobs that one claim expires, and that it requeues.
const MAX_DUE_PER_CLAIM: i64 = 1000;

type WriteResult<T> = rusqlite::Result<T>;
/// Number, size, time of the send in the table, time of the lease.
type LeasedRow = (u64, u64, Option<i64>, i64);

/// Change of a lease by a transaction.
enum LeaseChange {
    Acquired(u64),
    /// The lease of a job that was requeued or has ended; [`JobStep::Done`] leaves a harmless mark.
    Released {
        number: u64,
        lease: LeaseEntry,
        is_done: bool,
    },
}

/// Tables with prepared statements, and the state of the current transaction.
pub(super) struct TableWriter<'c> {
    sql: Statements<'c>,
    bounds: QueueBounds,
    order: JobOrder,
    clock: Clock,
    leases: Arc<Mutex<Leases>>,
    marks: Arc<SentMarks>,
    counts: JobCounts,
    /// Counts at the beginning of the transaction.
    at_begin: (JobCounts, u64),
    last_number: u64,
    /// Changes of leases by this transaction, in order: it may lease a job anew that it released.
    lease_changes: Vec<LeaseChange>,
    /// Number of jobs that became claimable.
    pub(super) arrival_count: u64,
    /// Last lane that a claim returned, if there were more.
    last_listed_lane: String,
}

impl<'c> TableWriter<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        bounds: QueueBounds,
        clock: Clock,
        leases: Arc<Mutex<Leases>>,
        marks: Arc<SentMarks>,
    ) -> WriteResult<Self> {
        let order = connection.query_row("SELECT value FROM meta WHERE name = 'order'", [], |row| {
            let word = row.get_ref(0)?.as_str()?;
            Ok(if word == JobOrder::Deadline.name() { JobOrder::Deadline } else { JobOrder::Fifo })
        })?;
        Ok(Self {
            sql: Statements::prepare(connection)?,
            bounds,
            order,
            clock,
            leases,
            marks,
            counts: JobCounts::default(),
            at_begin: Default::default(),
            last_number: 0,
            lease_changes: Vec::new(),
            arrival_count: 0,
            last_listed_lane: String::new(),
        })
    }

    /// Begins a transaction: other processes may have changed the tally.
    pub(super) fn begin(&mut self) -> WriteResult<()> {
        self.counts = read_tally(&mut self.sql.tally)?;
        self.last_number = self.sql.last_number.query_row([], |row| row::number(row, 0))?;
        self.at_begin = (self.counts, self.last_number);
        self.arrival_count = 0;
        Ok(())
    }

    /// Writes tally and last number at the end of a transaction.
    pub(super) fn end(&mut self) -> WriteResult<()> {
        for state in State::ALL {
            let now = (self.counts.jobs_in(state), self.counts.bytes_in(state));
            if now != (self.at_begin.0.jobs_in(state), self.at_begin.0.bytes_in(state)) {
                self.sql.set_tally.execute(params![state.name(), to_signed(now.0), to_signed(now.1)])?;
            }
        }
        if self.last_number != self.at_begin.1 {
            self.sql.set_last_number.execute([to_signed(self.last_number)])?;
        }
        Ok(())
    }

    /// Ends a committed transaction. Marks are cleared before any reply: until then no job is sent under a new lease.
    pub(super) fn commit(&mut self) {
        let ended = self.lease_changes.drain(..).filter_map(|change| match change {
            LeaseChange::Acquired(_) => None,
            LeaseChange::Released { number, is_done, .. } => Some((number, is_done)),
        });
        self.marks.clear(ended);
    }

    /// Undoes the changes of leases of a failed transaction.
    pub(super) fn roll_back(&mut self) {
        let changes = std::mem::take(&mut self.lease_changes);
        let mut leases = lock(&self.leases);
        for change in changes.into_iter().rev() {
            match change {
                LeaseChange::Acquired(number) => drop(leases.release(number)),
                LeaseChange::Released { number, lease, .. } => leases.restore(number, lease),
            }
        }
    }

    /// Ends the lease of a job, until a rollback.
    fn release_lease(&mut self, number: u64, is_done: bool) {
        let released = lock(&self.leases).release(number);
        self.lease_changes.extend(released.map(|lease| LeaseChange::Released { number, lease, is_done }));
    }

    pub(super) fn try_submit(&mut self, job: &Job) -> WriteResult<SubmitResult> {
        if let Some(id) = &job.id {
            let known = self.sql.by_id.query_row([id], |row| Ok((row::number(row, 0)?, row::state(row, 1)?)));
            if let Some((number, state)) = known.optional()? {
                return Ok(SubmitResult::Admitted(Receipt::Duplicate(number, state)));
            }
        }
        let bytes = job.bytes();
        if bytes > self.bounds.bytes {
            return Ok(SubmitResult::TooLarge { bytes, most_bytes: self.bounds.bytes });
        }
        if !self.counts.has_room(self.bounds, bytes) {
            return Ok(SubmitResult::QueueFull);
        }
        self.last_number += 1;
        let number = to_signed(self.last_number);
        self.sql.insert_job.execute(params![
            number,
            job.id,
            audit_reason::SUBMITTED,
            job.created_at.0,
            job.expires_at.map(|at| at.0),
            job.priority,
            self.order.rank(job.expires_at),
            job.weight,
            job.key_hint.as_deref().unwrap_or_default(),
            to_signed(bytes),
            JobLane::of(job).to_text(),
        ])?;
        let request = &job.request;
        self.sql.insert_request.execute(params![
            number,
            request.method,
            request.url,
            headers_text(&request.headers),
            job.idempotency_key,
            TextOrBlob(&request.body),
            request.templates.to_text(),
        ])?;
        self.counts.add(State::Queued, bytes);
        self.arrival_count += 1;
        Ok(SubmitResult::Admitted(Receipt::Accepted(self.last_number)))
    }

    pub(super) fn record(&mut self, record: &RecordRequest) -> WriteResult<RecordReply> {
        let mut recorded = RecordReply::default();
        for change in &record.changes {
            if !self.apply_change(change)? {
                recorded.stale.push(change.lease);
            }
        }
        for note in &record.key_states {
            self.sql.set_key_state.execute([&note.key, &note.state])?;
        }
        Ok(recorded)
    }

    /// Applies a change; false if its lease has expired.
    fn apply_change(&mut self, change: &JobChange) -> WriteResult<bool> {
        let number = change.lease.number;
        let Some(bytes) = lock(&self.leases).get(change.lease).map(|held| held.bytes) else { return Ok(false) };
        let attempt = change.attempt.as_ref();
        let state = change.step.state();
        if change.step == JobStep::Sent {
            let (key, sent) = (attempt.and_then(|a| a.key.as_ref()), attempt.map_or(change.at, |a| a.sent_at));
            self.sql.set_sent.execute(params![to_signed(number), key, sent.0])?;
            return Ok(true);
        }
        let retry_at = if let JobStep::Retrying { retry_at } = change.step { Some(retry_at.0) } else { None };
        if let Some(attempt) = attempt {
            self.sql.set_state_after_attempt.execute(params![
                to_signed(number),
                state.name(),
                change.reason,
                change.at.0,
                retry_at,
                attempt.key,
                attempt.sent_at.0,
                attempt.status,
            ])?;
        } else {
            let unsent = change.step == JobStep::Released;
            self.set_state(number, state, change.at, &change.reason, retry_at, unsent)?;
        }
        if let Some(response) = &change.response {
            let headers = headers_text(&response.headers);
            self.sql.insert_response.execute(params![to_signed(number), headers, TextOrBlob(&response.body)])?;
        }
        if change.step != JobStep::Done {
            self.add_event(number, state, change.at, &change.reason, attempt)?;
        }
        self.counts.shift(State::Leased, state, bytes);
        self.arrival_count += u64::from(state == State::Queued);
        self.release_lease(number, change.step == JobStep::Done);
        Ok(true)
    }

    /// Starts a session: requeues leased jobs, as maybe sent by the evidence of the marks.
    pub(super) fn recover(&mut self, now: UnixMs, marks: &PreviousMarks, session: &str) -> WriteResult<Recovery> {
        let before: Option<String> = self.sql.session.query_row([], |row| row.get(0)).optional()?;
        let mut recovered = Recovery::default();
        loop {
            let left: WriteResult<Vec<LeasedRow>> = self
                .sql
                .leased
                .query_map([MAX_DUE_PER_CLAIM], |row| {
                    Ok((row::number(row, 0)?, row::number(row, 1)?, row.get(2)?, row.get(3)?))
                })?
                .collect();
            let left = left?;
            if left.is_empty() {
                break;
            }
            for (number, bytes, sent_ms, leased_ms) in left {
                let sent = sent_ms.map(UnixMs).or(match marks.evidence(number, before.as_deref()) {
                    SentEvidence::Unsent => None,
                    SentEvidence::Sent(at) => Some(at),
                    SentEvidence::Unknown => Some(UnixMs(leased_ms)),
                });
                let reason = if sent.is_some() {
                    audit_reason::SENDER_ENDED_MAYBE_SENT
                } else {
                    audit_reason::SENDER_ENDED_UNSENT
                };
                self.requeue(number, now, reason, sent, bytes)?;
                recovered.jobs += 1;
                recovered.maybe_sent += u64::from(sent.is_some());
            }
        }
        self.sql.set_session.execute([session])?;
        Ok(recovered)
    }

    fn entry(&mut self, number: u64) -> WriteResult<Option<(JobEntry, u64)>> {
        self.sql.entry.query_row([to_signed(number)], row::entry).optional()
    }

    fn set_state(
        &mut self,
        number: u64,
        to: State,
        at: UnixMs,
        why: &str,
        retry: Option<i64>,
        unsent: bool,
    ) -> WriteResult<()> {
        self.sql.set_state.execute(params![to_signed(number), to.name(), why, at.0, retry, unsent]).map(drop)
    }

    fn requeue(&mut self, number: u64, at: UnixMs, why: &str, sent: Option<UnixMs>, bytes: u64) -> WriteResult<()> {
        self.sql.requeue.execute(params![to_signed(number), why, at.0, sent.is_some(), sent.map(|sent| sent.0)])?;
        self.add_event(number, State::Queued, at, why, None)?;
        self.counts.shift(State::Leased, State::Queued, bytes);
        self.arrival_count += 1;
        Ok(())
    }

    fn add_event(
        &mut self,
        number: u64,
        state: State,
        at: UnixMs,
        why: &str,
        attempt: Option<&StoredAttempt>,
    ) -> WriteResult<()> {
        let (key, sent) = (attempt.map(|a| &a.key), attempt.map(|a| a.sent_at.0));
        let code = attempt.and_then(|a| a.status);
        self.sql.insert_event.execute(params![to_signed(number), at.0, state.name(), why, key, sent, code])?;
        self.sql.trim_events.execute(params![to_signed(number), to_signed(MAX_JOB_EVENTS as u64)]).map(drop)
    }
}

pub(super) fn read_tally(statement: &mut Statement<'_>) -> WriteResult<JobCounts> {
    let mut counts = JobCounts::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state = row::state(row, 0)?.index();
        counts.jobs[state] = row::number(row, 1)?;
        counts.bytes[state] = row::number(row, 2)?;
    }
    Ok(counts)
}

/// Bytes as TEXT if they are valid UTF-8, else as BLOB.
struct TextOrBlob<'a>(&'a [u8]);

impl ToSql for TextOrBlob<'_> {
    fn to_sql(&self) -> WriteResult<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(text_or_blob(self.0)))
    }
}
