//! A rate or a budget that several gates share.

use std::sync::{Mutex, PoisonError};

use ring::digest;

use crate::decide::Nanos;
use crate::decide::budget::Ledger;
use crate::decide::portion::{Claim, Portions};
use crate::gate::standing::Standing;

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
pub(in crate::gate) enum Limit<'a> {
    /// What each caller of a route may send.
    Rate(u64, &'a Standing),
    /// What extra attempts may come to.
    Budget(u64, &'a Mutex<Ledger>),
}

fn ledger<T>(of: &Mutex<Ledger>, does: impl FnOnce(&mut Ledger) -> T) -> T {
    does(&mut of.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Limit<'_> {
    /// From now on it is kept by what is ours of it.
    pub(super) fn follow(&self, now: Nanos, portions: &Portions) {
        match self {
            Self::Rate(limit, standing) => standing.follow(now, portions.usual(), portions.of_limit(*limit)),
            Self::Budget(limit, of) => {
                let portion = portions.of(Claim { limit: *limit, key: 0 });
                ledger(of, |ledger| ledger.follow(now, portion));
            }
        }
    }

    /// What could be used of it, since this was asked last.
    pub(super) fn wanted(&self, now: Nanos) -> Vec<(Claim, u32)> {
        match self {
            Self::Rate(limit, standing) => {
                let wanted = standing.wanted(now).into_iter();
                wanted.map(|(key, wants)| (Claim { limit: *limit, key }, wants)).collect()
            }
            Self::Budget(limit, of) => {
                let wants = ledger(of, |ledger| ledger.wanted(now));
                wants.map(|wants| (Claim { limit: *limit, key: 0 }, wants)).into_iter().collect()
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
