//! The jobs that this process has in hand, by its own account.
//!
//! A server that lost its last writes may have forgotten that a job was done, and go on keeping it for a sender that has
//! long put it away: nobody would end it; or it may have forgotten that a job is being sent. So a process tells another run
//! of the server what it has, and which of it may be sent; the rest of what is leased to it is queued again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::script::{Ask, Script};
use crate::send::store::{Lease, Record, Step};

/// By number, jobs that are leased until this process says what came of them.
#[derive(Debug, Default)]
pub(super) struct InHand(Mutex<HashMap<u64, Held>>);

#[derive(Debug)]
struct Held {
    token: u64,
    /// It was marked as sent.
    sent: bool,
}

impl InHand {
    fn leases(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a claim has brought, and whether all of it is marked as sent.
    pub(super) fn took(&self, leases: impl IntoIterator<Item = Lease>, sent: bool) {
        self.leases().extend(leases.into_iter().map(|lease| (lease.number, Held { token: lease.token, sent })));
    }

    /// What is about to be recorded as sent: the answer may be lost.
    pub(super) fn sends(&self, record: &Record) {
        let mut leases = self.leases();
        for change in record.changes.iter().filter(|change| change.step == Step::Sent) {
            if let Some(held) = leases.get_mut(&change.lease.number).filter(|held| held.token == change.lease.token) {
                held.sent = true;
            }
        }
    }

    /// What has been recorded, or was refused as its lease was over.
    pub(super) fn put_away(&self, record: &Record) {
        let mut leases = self.leases();
        for change in record.changes.iter().filter(|change| change.step != Step::Sent) {
            // The same job may be here again under another lease.
            if leases.get(&change.lease.number).is_some_and(|held| held.token == change.lease.token) {
                leases.remove(&change.lease.number);
            }
        }
    }

    /// Has the server queue what else it keeps for this process.
    pub(super) fn ask(&self) -> Ask {
        let mut ask = Ask::new(Script::Keep);
        for (number, Held { token, sent }) in &*self.leases() {
            ask.number(number).number(token).flag(*sent);
        }
        ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::job::UnixMs;
    use crate::send::store::Change;

    #[test]
    fn it_is_what_was_claimed_and_not_put_away_under_the_same_lease() {
        let hand = InHand::default();
        let lease = |number, token| Lease { number, token };
        let ends = |lease, step| {
            let change = Change { lease, at: UnixMs(0), reason: String::new(), step, attempt: None, answer: None };
            hand.put_away(&Record { changes: vec![change], keys: Vec::new() });
        };
        hand.took([lease(7, 1)], false);
        ends(lease(7, 1), Step::Sent);
        assert_eq!(hand.ask().words, [b"7".to_vec(), b"1".to_vec(), b"0".to_vec()]);
        let change = Change {
            lease: lease(7, 1),
            at: UnixMs(0),
            reason: String::new(),
            step: Step::Sent,
            attempt: None,
            answer: None,
        };
        hand.sends(&Record { changes: vec![change], keys: Vec::new() });
        assert_eq!(hand.ask().words, [b"7".to_vec(), b"1".to_vec(), b"1".to_vec()]);
        hand.took([lease(7, 2)], false);
        ends(lease(7, 1), Step::Done);
        assert_eq!(hand.ask().words, [b"7".to_vec(), b"2".to_vec(), b"0".to_vec()]);
        ends(lease(7, 2), Step::Done);
        assert_eq!(hand.ask().words, Vec::<Vec<u8>>::new());
    }
}
