//! Claims of jobs.

use rusqlite::params;

use super::super::row::{self, to_signed};
use super::{LeaseChange, MAX_DUE_PER_CLAIM, TableWriter, WriteResult};
use crate::job::{JobEntry, StoredAttempt, UnixMs};
use crate::state::State;
use crate::store::lane::MAX_CLAIM_LANES;
use crate::store::leases::ExpiredLease;
use crate::store::{ClaimReply, ClaimRequest, JobLane, audit_reason};
use weir_base::Nanos;
use weir_machine::lock::lock;

impl TableWriter<'_> {
    pub(in crate::store::sqlite) fn claim(&mut self, claim: &ClaimRequest) -> WriteResult<ClaimReply> {
        let now = self.clock.now();
        let lapsed = lock(&self.leases).expired(now);
        for ExpiredLease { job: number, bytes } in lapsed {
            self.release_lease(number, false);
            let Some((entry, _)) = self.entry(number)? else { continue };
            let sent = entry.status.last_attempt.map(|last| last.sent_at).or_else(|| self.marks.get(number));
            self.requeue(number, claim.now, audit_reason::LEASE_EXPIRED, sent, bytes)?;
        }
        let mut claimed = ClaimReply { expired: self.expire(claim.now)?, ..ClaimReply::default() };
        self.queue_due(claim.now)?;
        let mut left = claim.max_bytes;
        for want in &claim.lanes {
            self.lease_lane(claim, &want.lane, want.max_jobs, now, &mut left, &mut claimed)?;
        }
        claimed.next_due = self.sql.next_due.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(UnixMs);
        claimed.lanes = self.list_lanes()?;
        Ok(claimed)
    }

    /// Lanes with queued jobs, from one to the next in the index; if there are too many, those after the last one that
    /// was returned.
    fn list_lanes(&mut self) -> WriteResult<Vec<JobLane>> {
        let after = std::mem::take(&mut self.last_listed_lane);
        let (mut last, mut lanes, mut is_second) = (after.clone(), Vec::new(), after.is_empty());
        while lanes.len() < MAX_CLAIM_LANES {
            let next = self.sql.next_lane.query_row([&last], |row| row.get::<_, Option<String>>(0))?;
            match next.filter(|next| after.is_empty() || !is_second || *next <= after) {
                Some(next) => {
                    lanes.push(JobLane::read(&next));
                    last = next;
                }
                None if is_second => return Ok(lanes),
                None => {
                    is_second = true;
                    last.clear();
                }
            }
        }
        self.last_listed_lane = last;
        Ok(lanes)
    }

    fn lease_lane(
        &mut self,
        claim: &ClaimRequest,
        lane: &JobLane,
        most: usize,
        now: Nanos,
        left: &mut u64,
        claimed: &mut ClaimReply,
    ) -> WriteResult<()> {
        let first = claimed.jobs.len();
        let mut found = Vec::new();
        let mut rows = self.sql.queued.query(params![lane.to_text(), to_signed(most as u64)])?;
        while *left > 0 {
            let Some(row) = rows.next()? else { break };
            let (entry, bytes) = row::entry(row)?;
            *left = left.saturating_sub(bytes);
            found.push((entry, bytes));
        }
        drop(rows);
        let sent = claim.marks_sent.then_some(claim.now.0);
        let key = claim.marks_sent.then_some(lane.key_hint.as_deref()).flatten();
        for (entry, _) in &mut found {
            self.sql.lease.execute(params![to_signed(entry.number), audit_reason::CLAIMED, claim.now.0, key, sent])?;
            let status = &mut entry.status;
            (status.state, status.changed_at) = (State::Leased, claim.now);
            audit_reason::CLAIMED.clone_into(&mut status.reason);
            status.last_attempt =
                sent.map(|sent| StoredAttempt { key: key.map(str::to_owned), sent_at: UnixMs(sent), status: None });
        }
        claimed.jobs.reserve(found.len());
        let mut leases = lock(&self.leases);
        for (entry, bytes) in found {
            self.counts.shift(State::Queued, State::Leased, bytes);
            claimed.jobs.push((leases.acquire(entry.number, now + claim.lease_duration, bytes), entry));
        }
        self.lease_changes.extend(claimed.jobs[first..].iter().map(|(lease, _)| LeaseChange::Acquired(lease.number)));
        Ok(())
    }

    fn expire(&mut self, now: UnixMs) -> WriteResult<Vec<JobEntry>> {
        let found: WriteResult<Vec<_>> =
            self.sql.expiring.query_map(params![now.0, MAX_DUE_PER_CLAIM], row::entry)?.collect();
        let mut expired = Vec::new();
        for (mut entry, bytes) in found? {
            self.set_state(entry.number, State::Expired, now, audit_reason::EXPIRED, None, false)?;
            self.add_event(entry.number, State::Expired, now, audit_reason::EXPIRED, None)?;
            self.counts.shift(entry.status.state, State::Expired, bytes);
            let status = &mut entry.status;
            (status.state, status.changed_at, status.retry_at) = (State::Expired, now, None);
            audit_reason::EXPIRED.clone_into(&mut status.reason);
            expired.push(entry);
        }
        Ok(expired)
    }

    fn queue_due(&mut self, now: UnixMs) -> WriteResult<()> {
        let due: WriteResult<Vec<(u64, u64)>> = self
            .sql
            .due
            .query_map(params![now.0, MAX_DUE_PER_CLAIM], |row| Ok((row::number(row, 0)?, row::number(row, 1)?)))?
            .collect();
        for (number, bytes) in due? {
            self.set_state(number, State::Queued, now, audit_reason::RETRY_DUE, None, false)?;
            self.counts.shift(State::Retrying, State::Queued, bytes);
            self.arrival_count += 1;
        }
        Ok(())
    }
}
