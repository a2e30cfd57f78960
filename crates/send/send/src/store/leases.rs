//! Leases of jobs: job, token, end.
//!
//! They are in memory only: the lock of a sender, which the kernel releases at its end, shows that it is gone. A time
//! in the file would have to be waited for, and be wrong after a clock step or a suspend.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use weir_base::Nanos;

/// Lease of a job. Each claim has another token, so that a sender with an expired lease cannot record for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobLease {
    /// Number of the job.
    pub number: u64,
    pub(super) token: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseEntry {
    token: u64,
    expires_at: Nanos,
    pub(super) bytes: u64,
}

/// Job with an expired lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpiredLease {
    /// Number of the job.
    pub(super) job: u64,
    /// Its size.
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Leases {
    by_job: FxHashMap<u64, LeaseEntry>,
    by_expiry: BTreeSet<(Nanos, u64)>,
    last_token: u64,
}

impl Leases {
    pub(super) fn acquire(&mut self, number: u64, until: Nanos, bytes: u64) -> JobLease {
        self.release(number);
        self.last_token += 1;
        let held = LeaseEntry { token: self.last_token, expires_at: until, bytes };
        self.by_job.insert(number, held);
        self.by_expiry.insert((until, number));
        JobLease { number, token: held.token }
    }

    /// Lease, unless it has expired.
    pub(super) fn get(&self, lease: JobLease) -> Option<&LeaseEntry> {
        self.by_job.get(&lease.number).filter(|held| held.token == lease.token)
    }

    /// Ends the lease of a job; returns it, for [`Self::restore`].
    pub(super) fn release(&mut self, number: u64) -> Option<LeaseEntry> {
        let held = self.by_job.remove(&number)?;
        self.by_expiry.remove(&(held.expires_at, number));
        Some(held)
    }

    /// Puts a lease back that was released, in place of a later one.
    pub(super) fn restore(&mut self, number: u64, held: LeaseEntry) {
        self.release(number);
        self.by_expiry.insert((held.expires_at, number));
        self.by_job.insert(number, held);
    }

    pub(super) fn renew(&mut self, leases: &[JobLease], until: Nanos) -> Vec<JobLease> {
        let mut renewed = Vec::with_capacity(leases.len());
        for lease in leases {
            let Some(held) = self.by_job.get_mut(&lease.number).filter(|held| held.token == lease.token) else {
                continue;
            };
            self.by_expiry.remove(&(held.expires_at, lease.number));
            held.expires_at = until;
            self.by_expiry.insert((until, lease.number));
            renewed.push(*lease);
        }
        renewed
    }

    /// Jobs with expired leases. They stay until they are released.
    pub(super) fn expired(&self, now: Nanos) -> Vec<ExpiredLease> {
        let lapsed = self.by_expiry.iter().take_while(|(until, _)| *until <= now);
        lapsed
            .filter_map(|(_, number)| Some(ExpiredLease { job: *number, bytes: self.by_job.get(number)?.bytes }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ExpiredLease, Leases};
    use weir_base::Nanos;

    #[test]
    fn a_lease_ends_with_its_time_or_with_the_next_one() {
        let mut leases = Leases::default();
        let (seven, eight) = (ExpiredLease { job: 7, bytes: 5 }, ExpiredLease { job: 8, bytes: 6 });
        let first = leases.acquire(7, Nanos(10), 5);
        let other = leases.acquire(8, Nanos(20), 6);
        assert_eq!(leases.expired(Nanos(9)), []);
        assert_eq!(leases.expired(Nanos(10)), [seven]);
        assert_eq!(leases.renew(&[first, other], Nanos(30)), [first, other]);
        assert_eq!(leases.expired(Nanos(29)), []);
        let second = leases.acquire(7, Nanos(40), 5);
        assert!(leases.get(first).is_none() && leases.get(second).is_some());
        assert_eq!(leases.renew(&[first], Nanos(50)), []);
        let released = leases.release(8).expect("a lease");
        assert!(leases.get(other).is_none());
        assert_eq!(leases.expired(Nanos(40)), [seven]);
        let third = leases.acquire(8, Nanos(40), 6);
        leases.restore(8, released);
        assert!(leases.get(other).is_some() && leases.get(third).is_none());
        assert_eq!(leases.expired(Nanos(40)), [eight, seven]);
    }
}
