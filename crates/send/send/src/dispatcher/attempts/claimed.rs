//! Claims and records as the owner of attempts sees them: when to claim, the handling of claimed jobs, and what can be
//! sent when a group is recorded.

use rustc_hash::FxHashMap;

use super::super::channels::{ClaimEvent, RecordEvent, RecordedGroup, ReportEvent, post};
use super::AttemptLoop;
use super::leased_job::{LeasedJob, SentMark};
use super::marks::SendMarks;
use super::ready_jobs::MAX_READY_JOBS;
use crate::job::JobEntry;
use crate::state::State;
use crate::store::{ClaimReply, JobLease, JobStep};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::dispatch::{Event, HostId, JobId, JobSubmission};

/// Jobs added per turn of the event loop, so that due sends are not delayed.
const YIELD_AFTER_JOBS: usize = 16;
/// TTL of an expired job until its reported end is recorded, in milliseconds.
const REPORTED_TTL_MS: u64 = 3_600_000;

impl AttemptLoop {
    /// Claims jobs, if there is room for some or the store may have some that are due.
    pub(super) fn claim_jobs(&mut self) {
        if !self.claim.is_due() || self.is_stalled() {
            return;
        }
        let are_jobs_due = self.claim.take_due();
        let claims = self.ready.claims(&self.dispatch, are_jobs_due);
        // Due retries and expiries need a claim even without room for jobs.
        if !claims.is_empty() || are_jobs_due {
            let lanes = claims.iter().map(|(.., claim)| claim.clone()).collect();
            post(&self.context.channels.claims, ClaimEvent::Wanted(lanes));
            self.claim.begin(claims);
        }
    }

    /// Whether no job may be claimed now, even with room.
    fn is_stalled(&self) -> bool {
        // Jobs that wait for a mark or a record count, which bounds memory if the disk stalls.
        self.is_listener_full
            || self.outcomes.unrecorded() > 4 * MAX_READY_JOBS
            || self.is_ending()
            || self.held_keys.has_none()
    }

    /// Whether no job is to be sent any more.
    fn is_ending(&self) -> bool {
        self.end.is_reached() || self.end.has_failed() || self.context.is_stopping()
    }

    pub(super) fn on_claimed(&mut self, claimed: Option<ClaimReply>) {
        let Some(claimed) = claimed else {
            self.end.check();
            return self.claim.fail();
        };
        self.ready.adjust_targets(&self.dispatch, self.claim.requested(), &claimed);
        let ClaimReply { jobs, expired, lanes, .. } = claimed;
        let has_new = self.ready.update_lanes(&mut self.dispatch, &mut self.hosts, &self.unusable_keys, &lanes);
        if has_new || !jobs.is_empty() {
            self.claim.want();
        } else {
            self.end.check();
        }
        // Whatever the store has: after several crashes, or with another store, what is reported is not marked in it.
        if self.context.has_reports && !(jobs.is_empty() && expired.is_empty()) {
            self.outcomes.report(ReportEvent::Claimed(jobs, expired));
        } else {
            self.on_checked(jobs, expired, FxHashMap::default());
        }
    }

    /// Claimed jobs that are to be added, jobs that the claim has expired, and the final states of those that were
    /// reported before.
    pub(super) fn on_checked(
        &mut self,
        jobs: Vec<(JobLease, JobEntry)>,
        expired: Vec<JobEntry>,
        reported: FxHashMap<JobId, State>,
    ) {
        for entry in expired {
            match reported.get(&entry.number) {
                None => self.outcomes.expire(entry),
                // Delivered before its TTL ended: the next claim finds it, and its end is recorded.
                Some(State::Done) => self.outcomes.extend(entry.number, REPORTED_TTL_MS),
                Some(_) => {}
            }
        }
        self.claim.set_jobs(jobs, reported);
        self.add_claimed_jobs();
    }

    /// Adds some of the claimed jobs; the claim ends with the last.
    pub(super) fn add_claimed_jobs(&mut self) {
        for _ in 0..YIELD_AFTER_JOBS {
            let Some((lease, entry, reported)) = self.claim.next_job() else { break };
            self.add_job(lease, entry, reported);
        }
        if !self.claim.has_jobs() {
            self.claim.finish();
            if self.marks.marks_ahead() {
                self.outcomes.record(RecordEvent::GroupDue);
            }
        }
    }

    fn add_job(&mut self, lease: JobLease, entry: JobEntry, reported: Option<State>) {
        let number = entry.number;
        let pinned = entry.job.key_hint.as_ref().map(|hint| self.context.key_numbers.get(hint).copied());
        if self.is_ending() {
            return self.outcomes.change(lease, JobStep::Released, "the sender ended".into());
        }
        if pinned == Some(None) {
            return self.outcomes.change(lease, JobStep::Released, "its key is missing".into());
        }
        if let Some(state) = reported {
            // Its end was reported; the store did not record it, or was lost.
            let step = match state {
                State::Done => JobStep::Done,
                State::Expired => JobStep::Expired,
                _ => JobStep::DeadLettered,
            };
            return self.outcomes.change(lease, step, "its result was reported before".into());
        }
        if let Some(leased) = self.jobs.get_mut(&number) {
            // The store leased it anew to this sender, which still has it.
            (leased.lease, leased.mark) = (lease, SentMark::Unset);
            return;
        }
        let key = pinned.flatten();
        let host = self.hosts.number(&mut self.dispatch, &entry.job.request.host());
        let submission = self.submission(&entry, host, key);
        self.jobs.insert(number, Box::new(LeasedJob::new(lease, entry, key)));
        self.handle_event(self.now(), Event::Submitted(number, submission));
    }

    /// Submission of a job to the dispatch.
    fn submission(&self, entry: &JobEntry, host: HostId, key: Option<u32>) -> JobSubmission {
        let wall = wall_ms();
        let expires_at = entry.job.expires_at.map_or(Nanos::NEVER, |at| {
            let left_ms = u64::try_from(at.0.saturating_sub(wall.0)).unwrap_or(0);
            self.now() + Nanos(left_ms.saturating_mul(Nanos::MILLI.0))
        });
        JobSubmission {
            host,
            expires_at,
            weight: u64::from(entry.job.weight.max(1)),
            priority: entry.job.priority,
            attempts_used: entry.status.attempts,
            maybe_sent: entry.status.maybe_sent,
            key,
        }
    }

    /// Sends what waited for the recorded marks of keys and jobs.
    pub(super) fn on_recorded(&mut self, group: &RecordedGroup) {
        self.outcomes.recorded(group.count);
        self.marks.recorded(&group.high_water);
        for job in SendMarks::sent_recorded(&mut self.jobs, &group.sent, &group.stale) {
            self.drop_lost_job(job);
        }
        if self.marks.has_awaiting() {
            // The record may have taken long: attempts under expired key leases are withdrawn first.
            self.handle_event(self.now(), Event::Tick);
        }
        for queued in self.marks.take_awaiting(|_| true) {
            self.try_send(queued);
        }
        self.outcomes.record(RecordEvent::Applied(self.marks.has_awaiting()));
        self.update_progress();
        self.end.check();
        self.claim.want();
    }

    /// Drops a job that the store has given to another sender or requeued.
    fn drop_lost_job(&mut self, job: JobId) {
        self.jobs.remove(&job);
        let now = self.now();
        for queued in self.marks.take_awaiting(|queued| queued.job == job) {
            self.handle_event(now, Event::Recalled(job, queued.attempt));
        }
        self.handle_event(now, Event::Withdrawn(job));
    }
}
