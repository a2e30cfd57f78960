//! Retries: when a failed job is queued again, and jobs whose time to live ends meanwhile.

use super::{Dispatch, DispatchAction, DispatchFailure, DispatchJob, JobId, Nanos, State};

impl Dispatch {
    /// Schedules a retry.
    pub(super) fn schedule_retry(
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

    /// Backoff of a job: the minimum at first, doubled each time, with up to 50% of jitter.
    pub(super) fn backoff(&self, id: JobId, job: &DispatchJob) -> Nanos {
        let backoff = self.rules.retry.backoff;
        let doubled = backoff.min.0.saturating_mul(1 << job.attempts_used.saturating_sub(1).min(32));
        let jitter = 1.0 + 0.5 * self.rng(id).unit_at(job.attempts.into());
        Nanos((doubled as f64 * jitter) as u64).min(backoff.max)
    }

    /// Queues a job whose retry is due. A retry that counts needs the budget; without, the job backs off once more.
    pub(super) fn requeue(&mut self, now: Nanos, id: JobId, actions: &mut Vec<DispatchAction>) {
        let Some(mut job) = self.take_job(id) else { return };
        if job.attempts_used > 0 && self.retry_budget.as_mut().is_some_and(|budget| !budget.withdraw(now)) {
            // Later than now in any case, so that time advances.
            let until = now + self.backoff(id, &job).max(Nanos::MILLI);
            job.state = State::Retrying { until };
            actions.push(DispatchAction::ScheduleRetry { job: id, until, reason: job.last_failure });
        } else {
            job.state = State::Queued;
            actions.push(DispatchAction::Requeue(id));
        }
        self.put_job(id, job);
    }

    /// Expires a removed job that can no longer be sent in time, or extends its TTL.
    pub(super) fn expire(&mut self, now: Nanos, id: JobId, mut job: DispatchJob, actions: &mut Vec<DispatchAction>) {
        let expired = DispatchAction::Expire { job: id, reason: job.last_failure };
        let renewed = self.rules.ttl_extension.filter(|renew| job.ttl_extensions < renew.max_extensions);
        let from = if let State::Retrying { until } = job.state { until.max(now) } else { now };
        let expires = renewed.map(|renew| from + renew.ttl);
        // A new TTL may be shorter than the delay bound.
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
