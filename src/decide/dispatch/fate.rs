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

use super::circuit::ENOUGH;
use super::host::Host;
use super::{Action, Dispatch, Feedback, HostId, Job, JobId, Kind, Meaning, Nanos, State, Why};
use crate::decide::policy::Failure;

/// What a failed attempt means for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It has failed of itself: it is tried again, and that attempt has cost a try.
    Charged,
    /// The host may be to blame: that is to be seen.
    Rests,
    /// It is tried again at once, at no cost.
    Free,
    /// Another try would not help.
    Buried,
}

/// Nothing is sent by a key that was refused for so long, whatever it was told.
const LEAST_HOLD: Nanos = Nanos::from_millis(50);

impl Dispatch {
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        (id, attempt): (JobId, u32),
        meaning: Meaning,
        feedback: &Feedback,
        actions: &mut Vec<Action>,
    ) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        let Lease { host: host_id, key: number, slot, sent } = lease;
        let refused = matches!(meaning, Meaning::Refused | Meaning::Blocked);
        let Some(host) = self.host(host_id) else { return };
        let way_in = &mut host.lanes.way_in;
        let to_blame = (refused || meaning == Meaning::Overtaken) && way_in.refused(now, sent);
        let usual = way_in.usual();
        let retry_after = feedback.retry_after.map(|length| length.max(LEAST_HOLD));
        let round_trip = host.lanes.with(number, |lane| {
            lane.windows.heard(slot, now, &feedback.quotas);
            match meaning {
                // What was learnt of the way in is taken back first; the limit is as it was said until that was in vain.
                Meaning::Refused => lane.windows.refused(slot, now, retry_after, !to_blame),
                Meaning::Done => lane.windows.accepted(slot, now),
                _ => {}
            }
            lane.windows.arrived_by(slot, now, usual)
        });
        if let Some(round_trip) = round_trip.flatten()
            && !refused
            && meaning != Meaning::Overtaken
        {
            host.lanes.way_in.answered(round_trip);
        }
        let why = Why::Answer(meaning);
        let covered = |status| self.rules.retry.on.covers(Failure::Status(status));
        let fate = match meaning {
            Meaning::Done | Meaning::Refused => Fate::Free,
            Meaning::Overtaken => Fate::Charged,
            Meaning::Unauthorized | Meaning::Blocked => {
                if self.keys.get(number as usize).is_some_and(|key| key.usable) {
                    self.with_key(number, |key| key.usable = false);
                    actions.push(Action::Unusable { key: number, why });
                }
                Fate::Free
            }
            Meaning::Failed(status) if status >= 500 && covered(status) => Fate::Rests,
            Meaning::Failed(status) if covered(status) => Fate::Charged,
            Meaning::Failed(_) => Fate::Buried,
        };
        if fate == Fate::Rests {
            if let (Meaning::Failed(503), Some(length)) = (meaning, retry_after)
                && let Some(host) = self.host(host_id)
            {
                host.lanes.all(|lane| lane.windows.hold_until(now + length));
            }
        } else if !matches!(meaning, Meaning::Failed(500..)) {
            let was_host = std::mem::take(&mut job.rested);
            self.host_answered(now, host_id, sent, was_host, actions);
        }
        if meaning == Meaning::Done {
            self.forget(host_id, id);
            return actions.push(Action::Done(id));
        }
        let heeded = feedback.retry_after.filter(|_| self.rules.retry.obey_retry_after).unwrap_or_default();
        // A refusal is about the key, not about the job.
        let wait = if fate == Fate::Charged { heeded } else { Nanos::ZERO };
        // Who is told to come later is refused for its rate, whatever the status.
        job.is_rate = meaning == Meaning::Failed(503) && retry_after.is_some();
        self.decide(now, id, job, fate, (sent, wait, why), actions);
    }

    pub(super) fn failed(&mut self, now: Nanos, (id, attempt): (JobId, u32), kind: Kind, actions: &mut Vec<Action>) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        let Lease { host, key, slot, sent } = lease;
        let Some(host) = self.host(host) else { return };
        if kind.is_unsent() {
            host.lanes.with(key, |lane| lane.windows.unsent(slot, now));
        } else {
            host.lanes.with(key, |lane| lane.windows.gave_up(slot, now));
            host.lanes.way_in.out_for(now - sent);
            job.again = true;
        }
        let covered = kind.is_unsent() || self.rules.retry.on.covers(Failure::Kind(kind));
        let fate = if covered { Fate::Rests } else { Fate::Buried };
        job.is_rate = false;
        self.decide(now, id, job, fate, (sent, Nanos::ZERO, Why::Kind(kind)), actions);
    }

    /// It was never sent, for a reason of our own.
    pub(super) fn called_back(&mut self, now: Nanos, (id, attempt): (JobId, u32)) {
        let Some((mut job, lease)) = self.end_lease(id, attempt) else { return };
        if let Some(host) = self.host(lease.host) {
            host.lanes.with(lease.key, |lane| lane.windows.unsent(lease.slot, now));
        }
        job.state = State::Queued;
        self.put(id, job);
    }

    /// An attempt has ended: its job, out of the queue, and what it had.
    fn end_lease(&mut self, id: JobId, attempt: u32) -> Option<(Job, Lease)> {
        let (host, State::Leased { key, slot, sent, probe }) = self.lease(id, attempt)? else { return None };
        let job = self.take(id)?;
        self.leased -= 1;
        self.host(host)?.ended(probe);
        Some((job, Lease { host, key, slot, sent }))
    }

    /// A host has answered a request that was sent then: those that rest there are judged. `was_host`: the job that was
    /// answered had failed before, so it was not the job.
    fn host_answered(&mut self, now: Nanos, id: HostId, sent: Nanos, was_host: bool, actions: &mut Vec<Action>) {
        let Some(host) = self.host(id) else { return };
        let was_open = host.circuit.is_open();
        let probed = host.circuit.answered(now, sent);
        host.share.answered(now);
        if was_open {
            actions.push(Action::Up(id));
        }
        if was_open && probed {
            host.share.start_again();
        }
        let was_down = was_open || was_host;
        let resting: Vec<JobId> = host.lines.resting.iter().map(|(_, job)| *job).collect();
        for job_id in resting {
            let Some(mut job) = self.take(job_id) else { continue };
            let (State::Resting { sent: sent_then, failed }, why) = (job.state, job.died) else { continue };
            if sent < sent_then && !was_open {
                self.put(job_id, job);
                continue;
            }
            let is_own = sent >= sent_then && (failed >= sent || !was_down) && !job.is_rate;
            job.rested = false;
            if is_own {
                self.charge(now, job_id, job, failed, why, actions);
            } else {
                job.state = State::Queued;
                self.put(job_id, job);
            }
        }
    }

    /// A job has failed of itself.
    fn charge(&mut self, now: Nanos, id: JobId, mut job: Job, failed: Nanos, why: Why, actions: &mut Vec<Action>) {
        // What was never sent costs no try.
        if !matches!(why, Why::Kind(kind) if kind.is_unsent()) {
            job.tries += 1;
            if let Some(host) = self.hosts.get_mut(job.asked.host as usize) {
                host.convict(id);
            }
        }
        if job.tries > self.rules.retry.times {
            self.forget(job.asked.host, id);
            return actions.push(Action::Bury { job: id, why });
        }
        let until = (failed + self.backoff(id, &job)).max(now);
        self.die(now, id, job, until, why, actions);
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
        mut job: Job,
        fate: Fate,
        (sent, wait, why): (Nanos, Nanos, Why),
        actions: &mut Vec<Action>,
    ) {
        job.died = why;
        // Without retries nothing is sent twice that may have been done.
        let is_unsent = matches!(why, Why::Kind(kind) if kind.is_unsent());
        let is_once = self.rules.retry.times == 0 && matches!(why, Why::Kind(_)) && !is_unsent;
        let Some(host) = self.host(job.asked.host) else { return };
        match fate {
            Fate::Buried => {
                host.forget(id);
                actions.push(Action::Bury { job: id, why });
            }
            Fate::Charged => self.charge(now, id, job, now + wait, why, actions),
            Fate::Free if why == Why::Answer(Meaning::Refused) => {
                self.die(now, id, job, now + LEAST_HOLD, why, actions);
            }
            Fate::Free => self.die(now, id, job, now, why, actions),
            Fate::Rests => {
                host.died = why;
                host.share.failed(now);
                let is_guilty = host.is_guilty(id) && !is_unsent;
                let is_own = !job.is_rate && (is_once || is_guilty && !host.circuit.is_open());
                if is_own {
                    return self.charge(now, id, job, now, why, actions);
                }
                host.circuit.failed(now, id);
                job.rested = true;
                job.state = State::Resting { sent, failed: now };
                if host.is_late(now, job.asked.expires) {
                    return self.expire(now, id, job, actions);
                }
                let host = job.asked.host;
                self.put(id, job);
                self.judge_the_last(now, host, actions);
            }
        }
    }

    /// Nothing else is there to compare those with that rest: what is known already counts.
    fn judge_the_last(&mut self, now: Nanos, id: HostId, actions: &mut Vec<Action>) {
        let Some(host) = self.hosts.get(id as usize) else { return };
        let are_few = host.lines.resting.len() < ENOUGH;
        let are_last = host.lines.standing == 0 && host.share.in_flight == 0 && !host.circuit.is_open();
        if !are_few || !are_last {
            return;
        }
        let resting: Vec<JobId> = host.lines.resting.iter().map(|(_, job)| *job).collect();
        for job_id in resting {
            let known = self.queue.get(job_id).map(|job| (job.state, job.died, job.is_rate));
            let Some((State::Resting { failed, .. }, why, false)) = known else { continue };
            let is_said = matches!(why, Why::Answer(Meaning::Failed(status)) if !(502..=504).contains(&status));
            if is_said && let Some(mut job) = self.take(job_id) {
                job.rested = false;
                self.charge(now, job_id, job, failed, why, actions);
            }
        }
    }

    /// A dead letter until then.
    fn die(&mut self, now: Nanos, id: JobId, mut job: Job, until: Nanos, why: Why, actions: &mut Vec<Action>) {
        job.state = State::Dead { until };
        job.died = why;
        if self.hosts.get(job.asked.host as usize).is_some_and(|host| host.is_late(until, job.asked.expires)) {
            return self.expire(now, id, job, actions);
        }
        actions.push(Action::Dead { job: id, until, why });
        self.put(id, job);
    }

    /// How long a job waits that has failed so often: the shortest wait at first, twice as long each time, and up to half
    /// as much again, so that jobs that failed together do not come back together.
    fn backoff(&self, id: JobId, job: &Job) -> Nanos {
        let backoff = self.rules.retry.backoff;
        let doubled = backoff.first.0.saturating_mul(1 << job.tries.saturating_sub(1).min(32));
        let jitter = 1.0 + 0.5 * self.dice(id).unit_at(job.attempts.into());
        Nanos((doubled as f64 * jitter) as u64).min(backoff.most)
    }

    /// A dead letter is due. A retry that costs a try has to be paid for; if that is not possible, it waits once more.
    pub(super) fn requeue(&mut self, now: Nanos, id: JobId, actions: &mut Vec<Action>) {
        let Some(mut job) = self.take(id) else { return };
        if job.tries > 0 && self.ledger.as_mut().is_some_and(|ledger| !ledger.spend(now)) {
            // Not now, whatever the backoff says: time has to go on.
            let until = now + self.backoff(id, &job).max(Nanos::MILLI);
            job.state = State::Dead { until };
            actions.push(Action::Dead { job: id, until, why: job.died });
        } else {
            job.state = State::Queued;
            actions.push(Action::Requeue(id));
        }
        self.put(id, job);
    }

    /// A job, which is out of the queue, can't be sent in time.
    pub(super) fn expire(&mut self, now: Nanos, id: JobId, mut job: Job, actions: &mut Vec<Action>) {
        let expired = Action::Expire { job: id, why: job.died };
        let renewed = self.rules.renew.filter(|renew| job.renewed < renew.times);
        let from = if let State::Dead { until } = job.state { until.max(now) } else { now };
        let expires = renewed.map(|renew| from + renew.ttl);
        // A new TTL may be shorter than the way in.
        let host = self.hosts.get(job.asked.host as usize);
        let Some(expires) = expires.filter(|expires| host.is_some_and(|host| !host.is_late(from, *expires))) else {
            self.forget(job.asked.host, id);
            return actions.push(expired);
        };
        job.renewed += 1;
        job.asked.expires = expires;
        job.take_place(&self.rules);
        actions.push(Action::Renew { job: id, expires: job.asked.expires });
        if let State::Dead { until } = job.state {
            actions.push(Action::Dead { job: id, until, why: job.died });
        }
        self.put(id, job);
    }
}

impl Host {
    /// What was out has ended.
    pub(super) fn ended(&mut self, probe: bool) {
        self.share.ended();
        if probe {
            self.circuit.probe_ended();
        }
    }
}

/// What an attempt had.
#[derive(Clone, Copy, Debug)]
struct Lease {
    host: HostId,
    key: u32,
    slot: crate::decide::window::Slot,
    sent: Nanos,
}
