//! Outcome of a job whose attempt has ended.
//!
//! A rate-limit rejection concerns the key at that host. A 5xx status, a failed or broken connection, and a timeout may
//! be the host's failure or the job's; they do not count against the job until the cause is known. The job waits until
//! the host has responded to another job:
//!
//! - To a request that was sent no earlier than this one, and that was in flight when this one failed, or was sent
//!   after that without an outage in between: the host is up, and the failure is the job's. It counts as an attempt.
//! - After an outage in between, or to this job itself: the failure was the host's. The job goes on.
//! - To a request that was sent before this one: no evidence, since an outage may have begun between the two.
//!
//! A job that has failed by itself is remembered as *faulty*: its next failures count at once, unless the host is down.
//! The last few jobs of a batch, too few to open the circuit, have no others to be compared with. If the host responds
//! to them, other than with 502 to 504 of a gateway, it is up, and the failures count; otherwise a batch that ends with
//! a faulty job would never end. Against an outage they have their attempts and backoffs.

use super::circuit::MIN_FAILED_JOBS;
use super::host::DispatchHost;
use super::lanes::MIN_HOLD;
use super::pauses::{KeyPause, PauseCause};
use super::{
    Dispatch, DispatchAction, DispatchFailure, DispatchJob, FailureKind, HostId, JobId, Nanos, RateLimitHeaders,
    ResponseClass, State,
};
use weir_retry::policy::AttemptFailure;

/// Consequence of a failed attempt for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryDecision {
    /// The job's failure: it is retried, and the attempt counts.
    Charge,
    /// The host's failure or the job's: the job waits until that is known.
    WaitForHost,
    /// Not the job's failure: it is retried at once, and the attempt does not count.
    Free,
    /// Not retryable: it is dead-lettered.
    DeadLetter,
}

impl Dispatch {
    pub(super) fn responded(
        &mut self,
        now: Nanos,
        (id, attempt): (JobId, u32),
        class: ResponseClass,
        feedback: &RateLimitHeaders,
        actions: &mut Vec<DispatchAction>,
    ) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        let AttemptLease { host: host_id, key: number, slot, sent_at: sent } = lease;
        let rejected = matches!(class, ResponseClass::RateLimited | ResponseClass::Blocked);
        let max_pause = self.rules.max_pause;
        let stated = feedback.retry_after.map(|length| length.min(max_pause));
        let Some(host) = self.host_mut(host_id) else { return };
        let is_heard = matches!(class, ResponseClass::Done | ResponseClass::FailedCheck | ResponseClass::Failed(..500));
        host.circuit.heard(now, sent, is_heard);
        let delay_bound = &mut host.lanes.delay_bound;
        let is_bound_exceeded = (rejected || class == ResponseClass::InvalidNonce) && delay_bound.rejected(now, sent);
        let usual = delay_bound.usual_round_trip();
        let updated = host.lanes.update(number, |lane| {
            let quota_reset_at = lane.windows.apply_quotas(slot, now, &feedback.quotas, max_pause);
            let is_rejection = matches!(class, ResponseClass::RateLimited | ResponseClass::Failed(503));
            let retry_after = if is_rejection { lane.stated_wait(now, sent, stated) } else { None };
            match class {
                // A learnt delay bound is raised first; the limit estimate is lowered only if that did not help.
                ResponseClass::RateLimited => lane.windows.rejected(slot, now, retry_after, !is_bound_exceeded),
                // For its limits the host has accepted the request, whatever the caller thinks of the content.
                ResponseClass::Done | ResponseClass::FailedCheck => {
                    lane.accepted();
                    lane.windows.accepted(slot, now);
                }
                _ => {}
            }
            (lane.windows.responded(slot, now, usual), retry_after, quota_reset_at)
        });
        let (round_trip, retry_after, quota_reset_at) = updated.unwrap_or_default();
        if let Some(round_trip) = round_trip
            && !rejected
            && class != ResponseClass::InvalidNonce
        {
            host.lanes.delay_bound.responded(round_trip);
        }
        let pause = KeyPause {
            host: host_id,
            key: number,
            is_of_all_keys: class != ResponseClass::RateLimited,
            until: now + retry_after.unwrap_or_default(),
            cause: PauseCause::RetryAfter,
            is_capped: feedback.retry_after > stated,
        };
        self.pauses.add(now, pause);
        if let Some((until, is_capped)) = quota_reset_at {
            let cause = PauseCause::QuotaReset;
            self.pauses.add(now, KeyPause { is_of_all_keys: false, until, cause, is_capped, ..pause });
        }
        let why = DispatchFailure::Response(class);
        let covered = |status| self.rules.retry.on.covers(AttemptFailure::Status(status));
        let decision = match class {
            ResponseClass::Done | ResponseClass::RateLimited => RetryDecision::Free,
            ResponseClass::InvalidNonce | ResponseClass::FailedCheck => RetryDecision::Charge,
            ResponseClass::Unauthorized | ResponseClass::Blocked => {
                if self.keys.get(number as usize).is_some_and(|key| key.is_usable) {
                    self.update_key(number, |key| key.is_usable = false);
                    actions.push(DispatchAction::KeyUnusable { key: number, reason: why });
                }
                RetryDecision::Free
            }
            ResponseClass::Failed(status) if status >= 500 && covered(status) => RetryDecision::WaitForHost,
            ResponseClass::Failed(status) if covered(status) => RetryDecision::Charge,
            ResponseClass::Failed(_) => RetryDecision::DeadLetter,
        };
        if decision == RetryDecision::WaitForHost {
            if let (ResponseClass::Failed(503), Some(length)) = (class, retry_after)
                && let Some(host) = self.host_mut(host_id)
            {
                host.lanes.update_all(|lane| lane.windows.hold_until(now + length));
            }
        } else if !matches!(class, ResponseClass::Failed(500..)) {
            let was_host = std::mem::take(&mut job.is_host_suspected);
            self.host_responded(now, host_id, sent, was_host, actions);
        }
        if class == ResponseClass::Done {
            self.forget(host_id, id);
            return actions.push(DispatchAction::Done(id));
        }
        let min_delay = stated.filter(|_| self.rules.retry.honor_retry_after).unwrap_or_default();
        // A rate-limit rejection concerns the key, not the job.
        let wait = if decision == RetryDecision::Charge { min_delay } else { Nanos::ZERO };
        // 503 with Retry-After counts as a rate-limit rejection.
        job.is_rate_limited = class == ResponseClass::Failed(503) && stated.is_some();
        let ended = EndedAttempt { sent_at: sent, min_delay: wait, failure: why };
        self.decide(now, id, job, decision, ended, actions);
    }

    pub(super) fn failed(
        &mut self,
        now: Nanos,
        (id, attempt): (JobId, u32),
        kind: FailureKind,
        actions: &mut Vec<DispatchAction>,
    ) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        let AttemptLease { host, key, slot, sent_at: sent } = lease;
        let is_once = self.rules.retry.max_retries == 0;
        let Some(host) = self.host_mut(host) else { return };
        if kind != FailureKind::Timeout {
            host.circuit.silence.connection_failed();
        }
        let is_excused = !kind.is_unsent() && !job.was_excused && !is_once && host.circuit.is_excused(sent);
        if kind.is_unsent() {
            host.lanes.update(key, |lane| lane.windows.unsent(slot, now));
        } else {
            host.lanes.update(key, |lane| lane.windows.abandoned(slot, now));
            host.lanes.delay_bound.outstanding_for(now - sent);
            job.maybe_duplicate = true;
        }
        let covered = kind.is_unsent() || self.rules.retry.on.covers(AttemptFailure::Kind(kind));
        let decision = match (covered, is_excused) {
            (false, _) => RetryDecision::DeadLetter,
            (true, true) => RetryDecision::Free,
            (true, false) => RetryDecision::WaitForHost,
        };
        job.was_excused |= is_excused;
        job.is_rate_limited = false;
        let failure = DispatchFailure::NoResponse(kind);
        self.decide(now, id, job, decision, EndedAttempt { sent_at: sent, min_delay: Nanos::ZERO, failure }, actions);
    }

    /// Records that an attempt was recalled before it was sent.
    pub(super) fn recalled(&mut self, now: Nanos, (id, attempt): (JobId, u32)) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        if let Some(host) = self.host_mut(lease.host) {
            host.lanes.update(lease.key, |lane| lane.windows.unsent(lease.slot, now));
        }
        job.state = State::Queued;
        self.put_job(id, job);
    }

    /// Ends an attempt; returns its job, removed from the queue, and its lease.
    fn end_lease(&mut self, id: JobId, attempt: u32) -> Option<(DispatchJob, AttemptLease)> {
        let (host, State::Leased { key, slot, sent_at: sent, is_probe }) = self.leased_attempt(id, attempt)? else {
            return None;
        };
        let job = self.take_job(id)?;
        self.leased -= 1;
        self.host_mut(host)?.attempt_ended(is_probe);
        Some((job, AttemptLease { host, key, slot, sent_at: sent }))
    }

    /// Records a response to a request that was sent then, and decides on the jobs that wait for the host. `was_host`:
    /// this job itself had failed before, so the failure was the host's.
    fn host_responded(
        &mut self,
        now: Nanos,
        id: HostId,
        sent: Nanos,
        was_host: bool,
        actions: &mut Vec<DispatchAction>,
    ) {
        let Some(host) = self.host_mut(id) else { return };
        let (was_open, was_silent) = (host.circuit.is_open(), host.circuit.silent_since().is_some());
        let probed = host.circuit.responded(now, sent);
        host.slots.responded(now);
        if was_open {
            actions.push(DispatchAction::HostUp(id));
        }
        if was_open && probed {
            host.slots.reset();
        }
        let was_down = was_open || was_host;
        let resting: Vec<JobId> = host.queues.waiting_for_host.iter().map(|(_, job)| *job).collect();
        for job_id in resting {
            let Some(mut job) = self.take_job(job_id) else { continue };
            let (State::WaitingForHost { sent_at: sent_then, failed_at: failed }, why) = (job.state, job.last_failure)
            else {
                continue;
            };
            if sent < sent_then && !was_open {
                self.put_job(job_id, job);
                continue;
            }
            // A probe that was in flight when the job timed out hung as well.
            let hung = was_silent && matches!(why, DispatchFailure::NoResponse(_));
            let is_own = sent >= sent_then && (failed >= sent || !was_down) && !job.is_rate_limited && !hung;
            job.is_host_suspected = false;
            if is_own {
                self.charge(now, job_id, job, failed, why, actions);
            } else {
                job.state = State::Queued;
                self.put_job(job_id, job);
            }
        }
    }

    /// Counts a failure of the job itself.
    fn charge(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: DispatchJob,
        failed: Nanos,
        why: DispatchFailure,
        actions: &mut Vec<DispatchAction>,
    ) {
        // A request that was never sent does not count.
        if !matches!(why, DispatchFailure::NoResponse(kind) if kind.is_unsent()) {
            job.attempts_used += 1;
            if let Some(host) = self.hosts.get_mut(job.submission.host as usize) {
                host.mark_faulty(id);
            }
        }
        if job.attempts_used > self.rules.retry.max_retries {
            self.forget(job.submission.host, id);
            return actions.push(DispatchAction::DeadLetter { job: id, reason: why });
        }
        let until = (failed + self.backoff(id, &job)).max(now);
        self.schedule_retry(now, id, job, until, why, actions);
    }

    pub(super) fn forget(&mut self, host: HostId, job: JobId) {
        if let Some(host) = self.hosts.get_mut(host as usize) {
            host.forget(job);
        }
    }

    fn decide(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: DispatchJob,
        decision: RetryDecision,
        ended: EndedAttempt,
        actions: &mut Vec<DispatchAction>,
    ) {
        let EndedAttempt { sent_at, min_delay, failure: why } = ended;
        job.last_failure = why;
        // Without retries a job that may be done is not sent twice.
        let is_unsent = matches!(why, DispatchFailure::NoResponse(kind) if kind.is_unsent());
        let is_once = self.rules.retry.max_retries == 0 && matches!(why, DispatchFailure::NoResponse(_)) && !is_unsent;
        let Some(host) = self.host_mut(job.submission.host) else { return };
        match decision {
            RetryDecision::DeadLetter => {
                host.forget(id);
                actions.push(DispatchAction::DeadLetter { job: id, reason: why });
            }
            RetryDecision::Charge => self.charge(now, id, job, now + min_delay, why, actions),
            RetryDecision::Free if why == DispatchFailure::Response(ResponseClass::RateLimited) => {
                self.schedule_retry(now, id, job, now + MIN_HOLD, why, actions);
            }
            RetryDecision::Free => self.schedule_retry(now, id, job, now, why, actions),
            RetryDecision::WaitForHost => {
                host.last_failure = why;
                host.slots.failed(now);
                let is_guilty = host.is_faulty(id) && !is_unsent;
                let is_own = !job.is_rate_limited && (is_once || is_guilty && !host.circuit.is_open());
                if is_own {
                    return self.charge(now, id, job, now, why, actions);
                }
                host.circuit.failed(now, id);
                job.is_host_suspected = true;
                job.state = State::WaitingForHost { sent_at, failed_at: now };
                if host.arrives_late(now, job.submission.expires_at) {
                    return self.expire(now, id, job, actions);
                }
                let host = job.submission.host;
                self.put_job(id, job);
                self.charge_last_jobs(now, host, actions);
            }
        }
    }

    /// Charges waiting jobs for their failures where no other jobs are left to compare with.
    fn charge_last_jobs(&mut self, now: Nanos, id: HostId, actions: &mut Vec<DispatchAction>) {
        let Some(host) = self.hosts.get(id as usize) else { return };
        let are_few = host.queues.waiting_for_host.len() < MIN_FAILED_JOBS;
        let are_last = host.queues.queued == 0 && host.slots.in_flight == 0 && !host.circuit.is_open();
        if !are_few || !are_last {
            return;
        }
        let resting: Vec<JobId> = host.queues.waiting_for_host.iter().map(|(_, job)| *job).collect();
        for job_id in resting {
            let known = self.queue.get(job_id).map(|job| (job.state, job.last_failure, job.is_rate_limited));
            let Some((State::WaitingForHost { failed_at: failed, .. }, why, false)) = known else { continue };
            let is_said = matches!(why, DispatchFailure::Response(ResponseClass::Failed(status)) if !(502..=504).contains(&status));
            if is_said && let Some(mut job) = self.take_job(job_id) {
                job.is_host_suspected = false;
                self.charge(now, job_id, job, failed, why, actions);
            }
        }
    }
}

impl DispatchHost {
    /// Records the end of an attempt.
    pub(super) fn attempt_ended(&mut self, is_probe: bool) {
        self.slots.ended();
        if is_probe {
            self.circuit.probe_ended();
        }
    }
}

/// Failed attempt that a decision is about.
#[derive(Clone, Copy, Debug)]
struct EndedAttempt {
    sent_at: Nanos,
    /// Minimum time until a retry, besides the backoff.
    min_delay: Nanos,
    failure: DispatchFailure,
}

/// Resources that an attempt occupies.
#[derive(Clone, Copy, Debug)]
struct AttemptLease {
    host: HostId,
    key: u32,
    slot: crate::key_window::WindowSlot,
    sent_at: Nanos,
}
