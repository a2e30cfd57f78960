//! What becomes of a job whose attempt has ended.
//!
//! Whose failure is it? A refusal for rate is the key's, at that host. A status of the 500s, a connection that cannot be
//! made or breaks, an answer that does not come: these may be the host's, and cost the job nothing until it is known that
//! they are its own. The job *rests* until the host has answered somebody else:
//!
//! - The request that was answered was sent no earlier than this one; and it was out when this one failed, or was sent
//!   after that and the host was not down in between: the host is well, and the failure is the job's own. It costs a try.
//! - The host was down in between, or it is the job itself that is answered: it was the host. The job goes on.
//! - What was sent before this one and is answered late says nothing: an outage may have begun between the two.
//!
//! A job that has failed of itself is known to (*guilty*): its next failures are its own at once, unless the host is down.
//! The last few jobs of a pile, too few to open the circuit, have nobody to be compared with any more. A host that gives
//! them a response, and not a gateway's word that nobody is there (502 to 504), is up: the failures count as their own, or a
//! pile that ends with a bad job would never end. Their tries and back-offs are what they have against an outage.

use super::circuit::MIN_FAILED_JOBS;
use super::host::DispatchHost;
use super::{
    Dispatch, DispatchAction, DispatchFailure, DispatchJob, FailureKind, HostId, JobId, Nanos, RateLimitHeaders,
    ResponseClass, State,
};
use crate::decide::call::policy::AttemptFailure;

/// What a failed attempt means for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryDecision {
    /// It has failed of itself: it is tried again, and that attempt has cost a try.
    Charge,
    /// The host may be to blame: that is to be seen.
    WaitForHost,
    /// It is tried again at once, at no cost.
    Free,
    /// Another try would not help.
    DeadLetter,
}

/// Nothing is sent by a key that was refused for so long, whatever it was told.
const MIN_HOLD: Nanos = Nanos::from_millis(50);

impl Dispatch {
    pub(super) fn responded(
        &mut self,
        now: Nanos,
        (id, attempt): (JobId, u32),
        meaning: ResponseClass,
        feedback: &RateLimitHeaders,
        actions: &mut Vec<DispatchAction>,
    ) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        let AttemptLease { host: host_id, key: number, slot, sent_at: sent } = lease;
        let refused = matches!(meaning, ResponseClass::RateLimited | ResponseClass::Blocked);
        let Some(host) = self.host_mut(host_id) else { return };
        let way_in = &mut host.lanes.delay_bound;
        let to_blame = (refused || meaning == ResponseClass::InvalidNonce) && way_in.rejected(now, sent);
        let usual = way_in.usual_round_trip();
        let retry_after = feedback.retry_after.map(|length| length.max(MIN_HOLD));
        let round_trip = host.lanes.update(number, |lane| {
            lane.windows.apply_quotas(slot, now, &feedback.quotas);
            match meaning {
                // What was learnt of the way in is taken back first; the limit is as it was said until that was in vain.
                ResponseClass::RateLimited => lane.windows.rejected(slot, now, retry_after, !to_blame),
                ResponseClass::Done => lane.windows.accepted(slot, now),
                _ => {}
            }
            lane.windows.responded(slot, now, usual)
        });
        if let Some(round_trip) = round_trip.flatten()
            && !refused
            && meaning != ResponseClass::InvalidNonce
        {
            host.lanes.delay_bound.responded(round_trip);
        }
        let why = DispatchFailure::Response(meaning);
        let covered = |status| self.rules.retry.on.covers(AttemptFailure::Status(status));
        let fate = match meaning {
            ResponseClass::Done | ResponseClass::RateLimited => RetryDecision::Free,
            ResponseClass::InvalidNonce => RetryDecision::Charge,
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
        if fate == RetryDecision::WaitForHost {
            if let (ResponseClass::Failed(503), Some(length)) = (meaning, retry_after)
                && let Some(host) = self.host_mut(host_id)
            {
                host.lanes.update_all(|lane| lane.windows.hold_until(now + length));
            }
        } else if !matches!(meaning, ResponseClass::Failed(500..)) {
            let was_host = std::mem::take(&mut job.is_host_suspected);
            self.host_responded(now, host_id, sent, was_host, actions);
        }
        if meaning == ResponseClass::Done {
            self.forget(host_id, id);
            return actions.push(DispatchAction::Done(id));
        }
        let heeded = feedback.retry_after.filter(|_| self.rules.retry.honor_retry_after).unwrap_or_default();
        // A refusal is about the key, not about the job.
        let wait = if fate == RetryDecision::Charge { heeded } else { Nanos::ZERO };
        // Who is told to come later is refused for its rate, whatever the status.
        job.is_rate_limited = meaning == ResponseClass::Failed(503) && retry_after.is_some();
        self.decide(now, id, job, fate, (sent, wait, why), actions);
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
        let Some(host) = self.host_mut(host) else { return };
        if kind.is_unsent() {
            host.lanes.update(key, |lane| lane.windows.unsent(slot, now));
        } else {
            host.lanes.update(key, |lane| lane.windows.abandoned(slot, now));
            host.lanes.delay_bound.outstanding_for(now - sent);
            job.maybe_duplicate = true;
        }
        let covered = kind.is_unsent() || self.rules.retry.on.covers(AttemptFailure::Kind(kind));
        let fate = if covered { RetryDecision::WaitForHost } else { RetryDecision::DeadLetter };
        job.is_rate_limited = false;
        self.decide(now, id, job, fate, (sent, Nanos::ZERO, DispatchFailure::NoResponse(kind)), actions);
    }

    /// It was never sent, for a reason of our own.
    pub(super) fn recalled(&mut self, now: Nanos, (id, attempt): (JobId, u32)) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        if let Some(host) = self.host_mut(lease.host) {
            host.lanes.update(lease.key, |lane| lane.windows.unsent(lease.slot, now));
        }
        job.state = State::Queued;
        self.put_job(id, job);
    }

    /// An attempt has ended: its job, out of the queue, and what it had.
    fn end_lease(&mut self, id: JobId, attempt: u32) -> Option<(DispatchJob, AttemptLease)> {
        let (host, State::Leased { key, slot, sent_at: sent, is_probe: probe }) = self.leased_attempt(id, attempt)?
        else {
            return None;
        };
        let job = self.take_job(id)?;
        self.leased -= 1;
        self.host_mut(host)?.attempt_ended(probe);
        Some((job, AttemptLease { host, key, slot, sent_at: sent }))
    }

    /// A host has answered a request that was sent then: those that rest there are judged. `was_host`: the job that was
    /// answered had failed before, so it was not the job.
    fn host_responded(
        &mut self,
        now: Nanos,
        id: HostId,
        sent: Nanos,
        was_host: bool,
        actions: &mut Vec<DispatchAction>,
    ) {
        let Some(host) = self.host_mut(id) else { return };
        let was_open = host.circuit.is_open();
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
            let is_own = sent >= sent_then && (failed >= sent || !was_down) && !job.is_rate_limited;
            job.is_host_suspected = false;
            if is_own {
                self.charge(now, job_id, job, failed, why, actions);
            } else {
                job.state = State::Queued;
                self.put_job(job_id, job);
            }
        }
    }

    /// A job has failed of itself.
    fn charge(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: DispatchJob,
        failed: Nanos,
        why: DispatchFailure,
        actions: &mut Vec<DispatchAction>,
    ) {
        // What was never sent costs no try.
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

    fn forget(&mut self, host: HostId, job: JobId) {
        if let Some(host) = self.hosts.get_mut(host as usize) {
            host.forget(job);
        }
    }

    fn decide(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: DispatchJob,
        fate: RetryDecision,
        (sent, wait, why): (Nanos, Nanos, DispatchFailure),
        actions: &mut Vec<DispatchAction>,
    ) {
        job.last_failure = why;
        // Without retries nothing is sent twice that may have been done.
        let is_unsent = matches!(why, DispatchFailure::NoResponse(kind) if kind.is_unsent());
        let is_once = self.rules.retry.max_retries == 0 && matches!(why, DispatchFailure::NoResponse(_)) && !is_unsent;
        let Some(host) = self.host_mut(job.submission.host) else { return };
        match fate {
            RetryDecision::DeadLetter => {
                host.forget(id);
                actions.push(DispatchAction::DeadLetter { job: id, reason: why });
            }
            RetryDecision::Charge => self.charge(now, id, job, now + wait, why, actions),
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
                job.state = State::WaitingForHost { sent_at: sent, failed_at: now };
                if host.arrives_late(now, job.submission.expires_at) {
                    return self.expire(now, id, job, actions);
                }
                let host = job.submission.host;
                self.put_job(id, job);
                self.charge_last_jobs(now, host, actions);
            }
        }
    }

    /// Nothing else is there to compare those with that rest: what is known already counts.
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

    /// A dead letter until then.
    fn schedule_retry(
        &mut self,
        now: Nanos,
        id: JobId,
        mut job: DispatchJob,
        until: Nanos,
        why: DispatchFailure,
        actions: &mut Vec<DispatchAction>,
    ) {
        job.state = State::Retrying { until };
        job.last_failure = why;
        if self
            .hosts
            .get(job.submission.host as usize)
            .is_some_and(|host| host.arrives_late(until, job.submission.expires_at))
        {
            return self.expire(now, id, job, actions);
        }
        actions.push(DispatchAction::ScheduleRetry { job: id, until, reason: why });
        self.put_job(id, job);
    }

    /// How long a job waits that has failed so often: the shortest wait at first, twice as long each time, and up to half
    /// as much again, so that jobs that failed together do not come back together.
    fn backoff(&self, id: JobId, job: &DispatchJob) -> Nanos {
        let backoff = self.rules.retry.backoff;
        let doubled = backoff.min.0.saturating_mul(1 << job.attempts_used.saturating_sub(1).min(32));
        let jitter = 1.0 + 0.5 * self.rng(id).unit_at(job.attempts.into());
        Nanos((doubled as f64 * jitter) as u64).min(backoff.max)
    }

    /// A dead letter is due. A retry that costs a try has to be paid for; if that is not possible, it waits once more.
    pub(super) fn requeue(&mut self, now: Nanos, id: JobId, actions: &mut Vec<DispatchAction>) {
        let Some(mut job) = self.take_job(id) else { return };
        if job.attempts_used > 0 && self.retry_budget.as_mut().is_some_and(|ledger| !ledger.withdraw(now)) {
            // Not now, whatever the backoff says: time has to go on.
            let until = now + self.backoff(id, &job).max(Nanos::MILLI);
            job.state = State::Retrying { until };
            actions.push(DispatchAction::ScheduleRetry { job: id, until, reason: job.last_failure });
        } else {
            job.state = State::Queued;
            actions.push(DispatchAction::Requeue(id));
        }
        self.put_job(id, job);
    }

    /// A job, which is out of the queue, can't be sent in time.
    pub(super) fn expire(&mut self, now: Nanos, id: JobId, mut job: DispatchJob, actions: &mut Vec<DispatchAction>) {
        let expired = DispatchAction::Expire { job: id, reason: job.last_failure };
        let renewed = self.rules.ttl_extension.filter(|renew| job.ttl_extensions < renew.max_extensions);
        let from = if let State::Retrying { until } = job.state { until.max(now) } else { now };
        let expires = renewed.map(|renew| from + renew.ttl);
        // A new TTL may be shorter than the way in.
        let host = self.hosts.get(job.submission.host as usize);
        let Some(expires) = expires.filter(|expires| host.is_some_and(|host| !host.arrives_late(from, *expires)))
        else {
            self.forget(job.submission.host, id);
            return actions.push(expired);
        };
        job.ttl_extensions += 1;
        job.submission.expires_at = expires;
        job.set_rank(&self.rules);
        actions.push(DispatchAction::ExtendTtl { job: id, expires_at: job.submission.expires_at });
        if let State::Retrying { until } = job.state {
            actions.push(DispatchAction::ScheduleRetry { job: id, until, reason: job.last_failure });
        }
        self.put_job(id, job);
    }
}

impl DispatchHost {
    /// What was out has ended.
    pub(super) fn attempt_ended(&mut self, probe: bool) {
        self.slots.ended();
        if probe {
            self.circuit.probe_ended();
        }
    }
}

/// What an attempt had.
#[derive(Clone, Copy, Debug)]
struct AttemptLease {
    host: HostId,
    key: u32,
    slot: crate::decide::delivery::key_window::WindowSlot,
    sent_at: Nanos,
}
