//! Weighted rendezvous hashing: which of a few candidates a key belongs to.
//!
//! For each candidate the key has an exponential random number, which depends on the two alone, divided by the
//! candidate's weight; the smallest wins (Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates",
//! 1998; weights by the race of exponentials). The shares are those of the weights, and when a weight grows the only
//! keys that move are those that move to it: its numbers have become smaller, all others are what they were. When one
//! shrinks, or a candidate goes, the only keys that move are its own. Rings and Maglev's tables approximate both, to be
//! faster with thousands of candidates; here there are at most [`super::hosts::MAX_HOSTS`].

use weir_base::rng::SeededRng;

/// Candidate for keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Hash of its name, so that it keeps its keys wherever it stands in a list.
    pub id: u64,
    /// Weight; 0 for no keys.
    pub weight: u32,
}

impl Candidate {
    /// Cost of a key at this candidate, at least 0; the lowest wins. Infinite without a weight.
    pub fn cost(self, key: u64) -> f64 {
        if self.weight == 0 {
            return f64::INFINITY;
        }
        SeededRng::new(key, self.id).exponential() / f64::from(self.weight)
    }
}

/// Index of the candidate that a key belongs to; None if none has a weight.
pub fn owner(key: u64, candidates: &[Candidate]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, candidate) in candidates.iter().enumerate() {
        let cost = candidate.cost(key);
        if cost.is_finite() && best.is_none_or(|(_, least)| cost < least) {
            best = Some((index, cost));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidates(weights: &[u32]) -> Vec<Candidate> {
        let candidate = |(n, weight): (usize, &u32)| Candidate { id: n as u64 * 7919 + 3, weight: *weight };
        weights.iter().enumerate().map(candidate).collect()
    }

    /// Numbers of keys that belong to each candidate.
    fn counts(candidates: &[Candidate], keys: u64) -> Vec<u64> {
        let mut counts = vec![0; candidates.len()];
        (0..keys).filter_map(|key| owner(key, candidates)).for_each(|index| counts[index] += 1);
        counts
    }

    #[test]
    fn shares_are_those_of_the_weights() {
        let weights = [95, 5, 0, 100];
        let counts = counts(&candidates(&weights), 200_000);
        for (count, weight) in counts.iter().zip(weights) {
            let expected = f64::from(weight) * 1000.0;
            // Five standard deviations.
            assert!((*count as f64 - expected).abs() <= 5.0 * expected.sqrt(), "{counts:?}");
        }
    }

    #[test]
    fn without_weights_nobody_owns_a_key() {
        assert_eq!(owner(1, &[]), None);
        assert_eq!(owner(1, &candidates(&[0, 0])), None);
    }

    #[test]
    fn the_owner_of_a_key_is_the_same_in_every_version() {
        let all = candidates(&[3, 1, 2]);
        let owners: Vec<_> = (0..12).filter_map(|key| owner(key, &all)).collect();
        assert_eq!(owners.len(), 12);
        let again: Vec<_> = (0..12).filter_map(|key| owner(key, &all)).collect();
        assert_eq!(owners, again);
    }

    /// A rollout of two days in steps, with users that call at random, and a way back.
    #[test]
    fn a_user_of_a_growing_canary_changes_sides_once() {
        use weir_base::rng::SeededRng;

        const USERS: usize = 5000;
        let mut random = SeededRng::new(3, 1);
        let sides = |percent: u32| [Candidate { id: 11, weight: 100 - percent }, Candidate { id: 12, weight: percent }];
        let mut last: Vec<Option<usize>> = vec![None; USERS];
        for (hour, percent) in [1, 1, 5, 5, 10, 25, 25, 50, 75, 100].into_iter().flat_map(|p| [p; 5]).enumerate() {
            let mut on_canary = 0;
            for _ in 0..20_000 {
                let user = random.below(USERS);
                let side = owner(user as u64, &sides(percent)).unwrap_or_default();
                assert!(last[user] != Some(1) || side == 1, "user {user} left the canary in hour {hour}");
                last[user] = Some(side);
                on_canary += u32::from(side == 1);
            }
            let fraction = f64::from(on_canary) / 20_000.0;
            let expected = f64::from(percent) / 100.0;
            // Users are a sample of their own: five standard deviations of both.
            let deviation = (expected * (1.0 - expected) * (1.0 / USERS as f64 + 1.0 / 20_000.0)).sqrt();
            assert!((fraction - expected).abs() <= 5.0 * deviation, "{fraction} of {expected} in hour {hour}");
        }
    }

    proptest! {
        #[test]
        fn the_owner_is_the_least_of_all_costs(weights in prop::collection::vec(0_u32..9, 0..9), key: u64) {
            let all = candidates(&weights);
            let mut costs: Vec<(f64, usize)> =
                all.iter().map(|it| it.cost(key)).zip(0..).filter(|(cost, _)| cost.is_finite()).collect();
            costs.sort_by(|a, b| a.0.total_cmp(&b.0));
            prop_assert_eq!(owner(key, &all), costs.first().map(|(_, index)| *index));
        }

        #[test]
        fn only_the_keys_of_a_changed_weight_move(
            weights in prop::collection::vec(0_u32..50, 2..8), changed in 0_usize..8, to in 0_u32..50, first: u64,
        ) {
            let changed = changed % weights.len();
            let before = candidates(&weights);
            let mut after = before.clone();
            after[changed].weight = to;
            for key in (0..200).map(|k| first.wrapping_add(k)) {
                let (old, new) = (owner(key, &before), owner(key, &after));
                if old != new {
                    let side = if to > weights[changed] { new } else { old };
                    prop_assert_eq!(side, Some(changed), "{:?} {:?}", old, new);
                }
            }
        }

        #[test]
        fn the_order_of_candidates_does_not_matter(weights in prop::collection::vec(1_u32..9, 1..9), key: u64) {
            let all = candidates(&weights);
            let mut turned = all.clone();
            turned.reverse();
            let of = |list: &[Candidate]| owner(key, list).map(|index| list[index].id);
            prop_assert_eq!(of(&all), of(&turned));
        }
    }
}
