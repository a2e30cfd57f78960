//! Leased jobs by the record of this process.
//!
//! A server that lost its last writes may have forgotten that a job was done, and would have it leased forever; or that
//! a job is being sent. So after a restart of the server, a process reports its leased jobs and which of them may be
//! sent; the rest of what is leased to it is requeued.

use std::collections::HashMap;
use std::sync::Mutex;

use super::script::{RedisScript, ScriptCall};
use crate::store::{JobLease, JobStep, RecordRequest};
use weir_machine::lock::lock;

/// Jobs leased without an end, by number.
#[derive(Debug, Default)]
pub(super) struct LocalLeases(Mutex<HashMap<u64, LocalLease>>);

#[derive(Debug)]
struct LocalLease {
    token: u64,
    /// Whether the job was marked as sent.
    is_marked_sent: bool,
}

impl LocalLeases {
    /// Adds the jobs of a claim; `sent` if all of them are marked as sent.
    pub(super) fn add_claimed(&self, leases: impl IntoIterator<Item = JobLease>, sent: bool) {
        lock(&self.0).extend(
            leases.into_iter().map(|lease| (lease.number, LocalLease { token: lease.token, is_marked_sent: sent })),
        );
    }

    /// Marks jobs as sent before the call, since the reply may be lost.
    pub(super) fn mark_sent(&self, record: &RecordRequest) {
        let mut leases = lock(&self.0);
        for change in record.changes.iter().filter(|change| change.step == JobStep::Sent) {
            if let Some(held) = leases.get_mut(&change.lease.number).filter(|held| held.token == change.lease.token) {
                held.is_marked_sent = true;
            }
        }
    }

    /// Removes jobs that were recorded, or whose records were rejected as stale.
    pub(super) fn remove_recorded(&self, record: &RecordRequest) {
        let mut leases = lock(&self.0);
        for change in record.changes.iter().filter(|change| change.step != JobStep::Sent) {
            // The same job may have been leased again.
            if leases.get(&change.lease.number).is_some_and(|held| held.token == change.lease.token) {
                leases.remove(&change.lease.number);
            }
        }
    }

    /// Call that requeues all other jobs leased to this process.
    pub(super) fn reconcile_call(&self) -> ScriptCall {
        let mut ask = ScriptCall::new(RedisScript::Reconcile);
        for (number, LocalLease { token, is_marked_sent: sent }) in &*lock(&self.0) {
            ask.number(number).number(token).flag(*sent);
        }
        ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::UnixMs;
    use crate::store::JobChange;

    #[test]
    fn it_is_what_was_claimed_and_not_put_away_under_the_same_lease() {
        let hand = LocalLeases::default();
        let lease = |number, token| JobLease { number, token };
        let ends = |lease, step| {
            let change = JobChange { lease, at: UnixMs(0), reason: String::new(), step, attempt: None, response: None };
            hand.remove_recorded(&RecordRequest { changes: vec![change], key_states: Vec::new() });
        };
        hand.add_claimed([lease(7, 1)], false);
        ends(lease(7, 1), JobStep::Sent);
        assert_eq!(hand.reconcile_call().args, [b"7".to_vec(), b"1".to_vec(), b"0".to_vec()]);
        let change = JobChange {
            lease: lease(7, 1),
            at: UnixMs(0),
            reason: String::new(),
            step: JobStep::Sent,
            attempt: None,
            response: None,
        };
        hand.mark_sent(&RecordRequest { changes: vec![change], key_states: Vec::new() });
        assert_eq!(hand.reconcile_call().args, [b"7".to_vec(), b"1".to_vec(), b"1".to_vec()]);
        hand.add_claimed([lease(7, 2)], false);
        ends(lease(7, 1), JobStep::Done);
        assert_eq!(hand.reconcile_call().args, [b"7".to_vec(), b"2".to_vec(), b"0".to_vec()]);
        ends(lease(7, 2), JobStep::Done);
        assert_eq!(hand.reconcile_call().args, Vec::<Vec<u8>>::new());
    }
}
