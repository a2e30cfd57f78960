//! Requests that hang after a silence of their host.
//!
//! When a host responds again, requests from before may have their responses yet: their packets may have been lost, and
//! TCP sends them again after waits that double, so up to as long after the end as the request had waited until then.
//! One that has no response by that time, though the host responds to others, and that is older than responses ever
//! take, has most likely none at all. It is abandoned like one that has timed out: its slot, and what it takes of a
//! limit, are free, and its job is sent again, flagged as a possible duplicate. Where that must not be, without retries
//! and with delivery at most once, the request keeps its whole timeout.

use super::circuit::{ABANDON_INTERVAL, EndedSilence};
use super::queue::State;
use super::{DeliveryGuarantee, Dispatch, DispatchAction, FailureKind, HostId, Nanos};

impl Dispatch {
    /// Abandons the requests to a host that hang since a silence.
    pub(super) fn abandon_hanging(
        &mut self,
        now: Nanos,
        id: HostId,
        silence: EndedSilence,
        actions: &mut Vec<DispatchAction>,
    ) {
        let EndedSilence { ended_at, hanging_age } = silence;
        if self.rules.retry.max_retries == 0 || self.rules.delivery == DeliveryGuarantee::AtMostOnce {
            return;
        }
        let sent_before = self.attempts.iter().take_while(|(sent, ..)| *sent < ended_at);
        let hangs = |(_, job, attempt): &(Nanos, u64, u32)| {
            let job = self.queue.get(*job).filter(|job| job.submission.host == id && job.attempts == *attempt);
            job.is_some_and(|job| matches!(job.state, State::Leased { .. }) && !job.was_excused)
        };
        let hanging: Vec<_> = sent_before.copied().filter(hangs).collect();
        let mut are_left = false;
        for (sent, job, attempt) in hanging {
            let waited = (ended_at - sent).max(ABANDON_INTERVAL);
            if now >= ended_at + waited && now >= sent + hanging_age {
                actions.push(DispatchAction::Cancel { job, attempt });
                self.failed(now, (job, attempt), FailureKind::Timeout, actions);
            } else {
                are_left = true;
            }
        }
        if are_left && let Some(host) = self.hosts.get_mut(id as usize) {
            host.circuit.set_abandon_at(now + ABANDON_INTERVAL);
        }
    }
}
