//! A rate or a budget that several gates share.

use std::sync::{Mutex, PoisonError};

use ring::digest;

use crate::decide::Nanos;
use crate::decide::budget::RetryBudget;
use crate::decide::portion::{AllocationKey, Allocations};
use crate::gate::standing::CallerPolicy;

/// The first 64 bits of SHA-256 of these parts: the same at all gates. Nobody finds another name that has the number of a
/// given one.
pub(in crate::gate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        // So that no two lists of parts are the same bytes.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    context.finish().as_ref().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// A limit, and its number in the table.
#[derive(Debug)]
pub(in crate::gate) enum DistributedLimit<'a> {
    /// What each caller of a route may send.
    Rate(u64, &'a CallerPolicy),
    /// What extra attempts may come to.
    Budget(u64, &'a Mutex<RetryBudget>),
}

fn with_budget<T>(of: &Mutex<RetryBudget>, does: impl FnOnce(&mut RetryBudget) -> T) -> T {
    does(&mut of.lock().unwrap_or_else(PoisonError::into_inner))
}

impl DistributedLimit<'_> {
    /// From now on it is kept by what is ours of it.
    pub(super) fn apply_split(&self, now: Nanos, portions: &Allocations) {
        match self {
            Self::Rate(limit, standing) => {
                standing.apply_split(now, portions.default_fraction(), portions.own_of_limit(*limit));
            }
            Self::Budget(limit, of) => {
                let portion = portions.fraction_of(AllocationKey { limit: *limit, key: 0 });
                with_budget(of, |ledger| ledger.apply_split(now, portion));
            }
        }
    }

    /// What could be used of it, since this was asked last.
    pub(super) fn wanted(&self, now: Nanos) -> Vec<(AllocationKey, u32)> {
        match self {
            Self::Rate(limit, standing) => {
                let wanted = standing.wanted(now).into_iter();
                wanted.map(|(key, wants)| (AllocationKey { limit: *limit, key }, wants)).collect()
            }
            Self::Budget(limit, of) => {
                let wants = with_budget(of, |ledger| ledger.wanted(now));
                wants.map(|wants| (AllocationKey { limit: *limit, key: 0 }, wants)).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn names_have_numbers_that_are_the_same_everywhere() {
        // The same at all gates, whatever their version: it is part of what they say to one another.
        assert_eq!(hash(&[]), 0xe3b0_c442_98fc_1c14);
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
        assert_ne!(hash(&[b"a"]), hash(&[b"a", b""]));
    }
}
