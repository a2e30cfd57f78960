//! What is done to the tables in one transaction.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Statement, ToSql, params};

use super::marks::{Left, Marks, Trace};
use super::row::{self, body, headers_text, signed};
use super::statements::Statements;
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::send::job::{Attempt, Edit, Entry, Job, MOST_EVENTS, UnixMs};
use crate::send::state::State;
use crate::send::store::lane::MOST_LANES;
use crate::send::store::leases::Leases;
use crate::send::store::waiting::Entrance;
use crate::send::store::{
    Bounds, Change, Claim, Claimed, Counts, Lane, Order, Receipt, Record, Recorded, Recovered, Step, reason,
};

/// A claim ends the time of so many jobs at once, and queues so many that are due.
const MOST_CHORES: i64 = 1000;

type Outcome<T> = rusqlite::Result<T>;
/// Number, size, when it was marked as sent by the store itself, and when it was leased.
type Leased = (u64, u64, Option<i64>, i64);

/// The tables, with their statements prepared, and what belongs to the transaction that goes on.
pub(super) struct Rows<'c> {
    sql: Statements<'c>,
    bounds: Bounds,
    order: Order,
    clock: Clock,
    leases: Arc<Mutex<Leases>>,
    marks: Arc<Marks>,
    counts: Counts,
    /// As they were when the transaction began.
    before: (Counts, u64),
    last: u64,
    taken: Vec<u64>,
    /// Leases that were over, with the sizes of their jobs.
    lapsed: Vec<(u64, u64)>,
    /// Jobs whose leases end, and whether they are delivered.
    ended: Vec<(u64, bool)>,
    /// So many jobs became claimable.
    pub(super) arrived: u64,
    /// The last lane that a claim told of, if it did not tell of all.
    told: String,
}

impl<'c> Rows<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        bounds: Bounds,
        clock: Clock,
        leases: Arc<Mutex<Leases>>,
        marks: Arc<Marks>,
    ) -> Outcome<Self> {
        let order = connection.query_row("SELECT value FROM meta WHERE name = 'order'", [], |row| {
            let word = row.get_ref(0)?.as_str()?;
            Ok(if word == Order::Deadline.word() { Order::Deadline } else { Order::FirstIn })
        })?;
        Ok(Self {
            sql: Statements::prepare(connection)?,
            bounds,
            order,
            clock,
            leases,
            marks,
            counts: Counts::default(),
            before: Default::default(),
            last: 0,
            taken: Vec::new(),
            lapsed: Vec::new(),
            ended: Vec::new(),
            arrived: 0,
            told: String::new(),
        })
    }

    /// A transaction has begun: others may have changed the tally.
    pub(super) fn begin(&mut self) -> Outcome<()> {
        self.counts = read_tally(&mut self.sql.tally)?;
        self.last = self.sql.last.query_row([], |row| row::number(row, 0))?;
        self.before = (self.counts, self.last);
        self.arrived = 0;
        Ok(())
    }

    /// What is kept with each transaction.
    pub(super) fn end(&mut self) -> Outcome<()> {
        for state in State::ALL {
            let now = (self.counts.of(state), self.counts.bytes_of(state));
            if now != (self.before.0.of(state), self.before.0.bytes_of(state)) {
                self.sql.set_tally.execute(params![state.word(), signed(now.0), signed(now.1)])?;
            }
        }
        if self.last != self.before.1 {
            self.sql.set_last.execute([signed(self.last)])?;
        }
        Ok(())
    }

    pub(super) fn commit(&mut self) {
        self.taken.clear();
        let (ended, lapsed) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.lapsed));
        // Before anything is answered: none of them is leased again until then.
        self.marks.end(lapsed.iter().map(|(number, _)| (*number, false)).chain(ended.iter().copied()));
        let mut leases = self.leases();
        for (number, _) in ended {
            leases.end(number);
        }
    }

    pub(super) fn roll_back(&mut self) {
        self.ended.clear();
        let (taken, lapsed) = (std::mem::take(&mut self.taken), std::mem::take(&mut self.lapsed));
        let mut leases = self.leases();
        for number in taken {
            leases.end(number);
        }
        for (number, bytes) in lapsed {
            leases.take(number, Nanos::ZERO, bytes);
        }
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&mut self, job: &Job) -> Outcome<Entrance> {
        if let Some(id) = &job.id {
            let known = self.sql.by_id.query_row([id], |row| Ok((row::number(row, 0)?, row::state(row, 1)?)));
            if let Some((number, state)) = known.optional()? {
                return Ok(Entrance::In(Receipt::Known(number, state)));
            }
        }
        let bytes = job.bytes();
        if bytes > self.bounds.bytes {
            return Ok(Entrance::TooLarge { bytes, most_bytes: self.bounds.bytes });
        }
        if !self.counts.has_room(self.bounds, bytes) {
            return Ok(Entrance::NoRoom);
        }
        self.last += 1;
        let number = signed(self.last);
        self.sql.insert_job.execute(params![
            number,
            job.id,
            reason::SUBMITTED,
            job.created.0,
            job.expires.map(|at| at.0),
            job.priority,
            self.order.rank(job.expires),
            job.weight,
            job.key_hint.as_deref().unwrap_or_default(),
            signed(bytes),
            Lane::of(job).word(),
        ])?;
        let request = &job.request;
        self.sql.insert_request.execute(params![
            number,
            request.method,
            request.url,
            headers_text(&request.headers),
            job.idempotency_key,
            Borrowed(&request.body),
        ])?;
        self.counts.add(State::Queued, bytes);
        self.arrived += 1;
        Ok(Entrance::In(Receipt::Accepted(self.last)))
    }

    pub(super) fn claim(&mut self, claim: &Claim) -> Outcome<Claimed> {
        let now = self.clock.now();
        let lapsed = self.leases().lapsed(now);
        for (number, bytes) in lapsed {
            self.leases().end(number);
            self.lapsed.push((number, bytes));
            let Some((entry, _)) = self.entry(number)? else { continue };
            let sent = entry.status.last.map(|last| last.sent).or_else(|| self.marks.get(number));
            self.give_back(number, claim.now, reason::LAPSED, sent, bytes)?;
        }
        let mut claimed = Claimed { expired: self.expire(claim.now)?, ..Claimed::default() };
        self.queue_due(claim.now)?;
        let mut left = claim.most_bytes;
        for want in &claim.wants {
            self.lease(claim, &want.lane, want.most, now, &mut left, &mut claimed)?;
        }
        claimed.next = self.sql.next.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(UnixMs);
        claimed.lanes = self.lanes()?;
        Ok(claimed)
    }

    /// Lanes that are not empty; if there are too many, those that were not told last. From one to the next in the index.
    fn lanes(&mut self) -> Outcome<Vec<Lane>> {
        let after = std::mem::take(&mut self.told);
        let (mut last, mut lanes, mut is_second) = (after.clone(), Vec::new(), after.is_empty());
        while lanes.len() < MOST_LANES {
            let next = self.sql.next_lane.query_row([&last], |row| row.get::<_, Option<String>>(0))?;
            match next.filter(|next| after.is_empty() || !is_second || *next <= after) {
                Some(next) => {
                    lanes.push(Lane::read(&next));
                    last = next;
                }
                None if is_second => return Ok(lanes),
                None => {
                    is_second = true;
                    last.clear();
                }
            }
        }
        self.told = last;
        Ok(lanes)
    }

    fn lease(
        &mut self,
        claim: &Claim,
        lane: &Lane,
        most: usize,
        now: Nanos,
        left: &mut u64,
        claimed: &mut Claimed,
    ) -> Outcome<()> {
        let first = claimed.jobs.len();
        let mut found = Vec::new();
        let mut rows = self.sql.ready.query(params![lane.word(), signed(most as u64)])?;
        while *left > 0 {
            let Some(row) = rows.next()? else { break };
            let (entry, bytes) = row::entry(row)?;
            *left = left.saturating_sub(bytes);
            found.push((entry, bytes));
        }
        drop(rows);
        let sent = claim.sending.then_some(claim.now.0);
        let key = claim.sending.then_some(lane.key_hint.as_deref()).flatten();
        for (entry, _) in &mut found {
            self.sql.lease.execute(params![signed(entry.number), reason::CLAIMED, claim.now.0, key, sent])?;
            let status = &mut entry.status;
            (status.state, status.changed) = (State::Leased, claim.now);
            reason::CLAIMED.clone_into(&mut status.reason);
            status.last = sent.map(|sent| Attempt { key: key.map(str::to_owned), sent: UnixMs(sent), code: None });
        }
        claimed.jobs.reserve(found.len());
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        for (entry, bytes) in found {
            self.counts.shift(State::Queued, State::Leased, bytes);
            claimed.jobs.push((leases.take(entry.number, now + claim.lease, bytes), entry));
        }
        self.taken.extend(claimed.jobs[first..].iter().map(|(lease, _)| lease.number));
        Ok(())
    }

    fn expire(&mut self, now: UnixMs) -> Outcome<Vec<Entry>> {
        let found: Outcome<Vec<_>> = self.sql.ends.query_map(params![now.0, MOST_CHORES], row::entry)?.collect();
        let mut expired = Vec::new();
        for (mut entry, bytes) in found? {
            self.go(entry.number, State::Expired, now, reason::EXPIRED, None, false)?;
            self.note(entry.number, State::Expired, now, reason::EXPIRED, None)?;
            self.counts.shift(entry.status.state, State::Expired, bytes);
            let status = &mut entry.status;
            (status.state, status.changed, status.retry_at) = (State::Expired, now, None);
            reason::EXPIRED.clone_into(&mut status.reason);
            expired.push(entry);
        }
        Ok(expired)
    }

    fn queue_due(&mut self, now: UnixMs) -> Outcome<()> {
        let due: Outcome<Vec<(u64, u64)>> = self
            .sql
            .due
            .query_map(params![now.0, MOST_CHORES], |row| Ok((row::number(row, 0)?, row::number(row, 1)?)))?
            .collect();
        for (number, bytes) in due? {
            self.go(number, State::Queued, now, reason::DUE, None, false)?;
            self.counts.shift(State::Dead, State::Queued, bytes);
            self.arrived += 1;
        }
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Record) -> Outcome<Recorded> {
        let mut recorded = Recorded::default();
        for change in &record.changes {
            if !self.take_step(change)? {
                recorded.stale.push(change.lease);
            }
        }
        for note in &record.keys {
            self.sql.note_key.execute([&note.key, &note.note])?;
        }
        Ok(recorded)
    }

    /// Says whether the lease was in force.
    fn take_step(&mut self, change: &Change) -> Outcome<bool> {
        let number = change.lease.number;
        let Some(bytes) = self.leases().get(change.lease).map(|held| held.bytes) else { return Ok(false) };
        if self.ended.iter().any(|(ended, _)| *ended == number) {
            return Ok(false);
        }
        let attempt = change.attempt.as_ref();
        let state = change.step.state();
        if change.step == Step::Sent {
            let (key, sent) = (attempt.and_then(|a| a.key.as_ref()), attempt.map_or(change.at, |a| a.sent));
            self.sql.sent.execute(params![signed(number), key, sent.0])?;
            return Ok(true);
        }
        let retry_at = if let Step::Dead { retry_at } = change.step { Some(retry_at.0) } else { None };
        if let Some(attempt) = attempt {
            self.sql.go_after.execute(params![
                signed(number),
                state.word(),
                change.reason,
                change.at.0,
                retry_at,
                attempt.key,
                attempt.sent.0,
                attempt.code,
            ])?;
        } else {
            let unsent = change.step == Step::Released;
            self.go(number, state, change.at, &change.reason, retry_at, unsent)?;
        }
        if let Some(answer) = &change.answer {
            let headers = headers_text(&answer.headers);
            self.sql.insert_answer.execute(params![signed(number), headers, Borrowed(&answer.body)])?;
        }
        if change.step != Step::Done {
            self.note(number, state, change.at, &change.reason, attempt)?;
        }
        self.counts.shift(State::Leased, state, bytes);
        self.arrived += u64::from(state == State::Queued);
        self.ended.push((number, change.step == Step::Done));
        Ok(true)
    }

    /// A new sender has come, and begins a session: what was leased was left, and the marks tell what of it was sent.
    pub(super) fn recover(&mut self, now: UnixMs, marks: &Left, session: &str) -> Outcome<Recovered> {
        let before: Option<String> = self.sql.session.query_row([], |row| row.get(0)).optional()?;
        let mut recovered = Recovered::default();
        loop {
            let left: Outcome<Vec<Leased>> = self
                .sql
                .leased
                .query_map([MOST_CHORES], |row| {
                    Ok((row::number(row, 0)?, row::number(row, 1)?, row.get(2)?, row.get(3)?))
                })?
                .collect();
            let left = left?;
            if left.is_empty() {
                break;
            }
            for (number, bytes, sent_ms, leased_ms) in left {
                let sent = sent_ms.map(UnixMs).or(match marks.of_job(number, before.as_deref()) {
                    Trace::Unsent => None,
                    Trace::Sent(at) => Some(at),
                    Trace::Unknown => Some(UnixMs(leased_ms)),
                });
                let reason = if sent.is_some() { reason::LEFT_SENT } else { reason::LEFT };
                self.give_back(number, now, reason, sent, bytes)?;
                recovered.jobs += 1;
                recovered.maybe_sent += u64::from(sent.is_some());
            }
        }
        self.sql.set_session.execute([session])?;
        Ok(recovered)
    }

    pub(super) fn edit(&mut self, number: u64, edit: &Edit, now: UnixMs) -> Outcome<bool> {
        let Some((mut entry, before)) = self.entry(number)? else { return Ok(false) };
        let state = entry.status.state;
        if !state.editable() {
            return Ok(false);
        }
        edit.clone().apply(&mut entry.job);
        let Job { request, expires, priority, weight, key_hint, .. } = &entry.job;
        let bytes = entry.job.bytes();
        self.sql.edit_job.execute(params![
            signed(number),
            reason::EDITED,
            now.0,
            expires.map(|at| at.0),
            priority,
            self.order.rank(*expires),
            weight,
            key_hint.as_deref().unwrap_or_default(),
            signed(bytes),
            Lane::of(&entry.job).word(),
        ])?;
        self.sql.edit_request.execute(params![
            signed(number),
            request.method,
            request.url,
            headers_text(&request.headers),
            Borrowed(&request.body),
        ])?;
        self.note(number, state, now, reason::EDITED, None)?;
        self.counts.remove(state, before);
        self.counts.add(state, bytes);
        self.arrived += u64::from(state == State::Queued);
        Ok(true)
    }

    pub(super) fn retry(&mut self, entry: &Entry, bytes: u64, expires: Option<UnixMs>, now: UnixMs) -> Outcome<()> {
        let expires = expires.or(entry.job.expires);
        let (number, rank) = (signed(entry.number), self.order.rank(expires));
        self.sql.retry.execute(params![number, reason::RETRIED, now.0, expires.map(|at| at.0), rank])?;
        self.note(entry.number, State::Queued, now, reason::RETRIED, None)?;
        self.counts.shift(entry.status.state, State::Queued, bytes);
        self.arrived += 1;
        Ok(())
    }

    pub(super) fn forget(&mut self, entry: &Entry, bytes: u64) -> Outcome<()> {
        for statement in &mut self.sql.forget {
            statement.execute([signed(entry.number)])?;
        }
        self.counts.remove(entry.status.state, bytes);
        Ok(())
    }

    fn entry(&mut self, number: u64) -> Outcome<Option<(Entry, u64)>> {
        self.sql.entry.query_row([signed(number)], row::entry).optional()
    }

    fn go(&mut self, number: u64, to: State, at: UnixMs, why: &str, retry: Option<i64>, unsent: bool) -> Outcome<()> {
        self.sql.go.execute(params![signed(number), to.word(), why, at.0, retry, unsent]).map(drop)
    }

    fn give_back(&mut self, number: u64, at: UnixMs, why: &str, sent: Option<UnixMs>, bytes: u64) -> Outcome<()> {
        self.sql.give_back.execute(params![signed(number), why, at.0, sent.is_some(), sent.map(|sent| sent.0)])?;
        self.note(number, State::Queued, at, why, None)?;
        self.counts.shift(State::Leased, State::Queued, bytes);
        self.arrived += 1;
        Ok(())
    }

    fn note(&mut self, number: u64, state: State, at: UnixMs, why: &str, attempt: Option<&Attempt>) -> Outcome<()> {
        let (key, sent) = (attempt.map(|a| &a.key), attempt.map(|a| a.sent.0));
        let code = attempt.and_then(|a| a.code);
        self.sql.insert_event.execute(params![signed(number), at.0, state.word(), why, key, sent, code])?;
        self.sql.forget_event.execute(params![signed(number), signed(MOST_EVENTS as u64)]).map(drop)
    }
}

pub(super) fn read_tally(statement: &mut Statement<'_>) -> Outcome<Counts> {
    let mut counts = Counts::default();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let state = row::state(row, 0)?.index();
        counts.jobs[state] = row::number(row, 1)?;
        counts.bytes[state] = row::number(row, 2)?;
    }
    Ok(counts)
}

/// Bytes that are text where they can be.
struct Borrowed<'a>(&'a [u8]);

impl ToSql for Borrowed<'_> {
    fn to_sql(&self) -> Outcome<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(body(self.0)))
    }
}
