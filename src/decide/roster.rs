//! What is known of each of many keys, in fixed memory.
//!
//! Who sends requests chooses how many callers there seem to be, so a table that grows with them is a way to use up
//! memory. This one has a fixed number of places, as a processor's cache has: a key belongs to one set of 16, and when
//! that is full, the key with the least to remember makes room. What that is says the owner. Nothing is linked, nothing
//! is moved, and a look costs the comparison of 16 numbers that lie together.
//!
//! What it costs: some sets are full before all are. With half as many keys as places one set in 250 is too small.
//!
//! A key is the hash of what names a caller. It must spread in its low bits and be seeded by the process, or else a
//! caller can choose names that push another one out of its set. Two names with the same hash are one caller; among
//! a million names that happens with a probability of 3e-8.

/// The places of a set.
const SET_SIZE: usize = 16;

/// A value for each key; one that was never set, or forgotten, is the default.
#[derive(Clone, Debug)]
pub(super) struct SetCache<V> {
    keys: Vec<[u64; SET_SIZE]>,
    values: Vec<[V; SET_SIZE]>,
}

impl<V: Copy + Default> SetCache<V> {
    /// All places are free: at least so many, rounded up to 16 times a power of two, and at most 2^24.
    pub(super) fn new(places: usize) -> Self {
        let sets = places.clamp(1, 1 << 24).div_ceil(SET_SIZE).next_power_of_two();
        Self { keys: vec![[0; SET_SIZE]; sets], values: vec![[V::default(); SET_SIZE]; sets] }
    }

    /// What is known of this key. If that is nothing, it takes the place whose value is worth the least.
    pub(super) fn get_or_insert<W: PartialOrd>(&mut self, key: u64, worth: impl Fn(&V) -> W) -> &mut V {
        let set = (key as usize) & (self.keys.len() - 1);
        let (keys, values) = (&mut self.keys[set], &mut self.values[set]);
        if let Some(way) = keys.iter().position(|of| *of == key) {
            return &mut values[way];
        }
        let (mut least, mut least_worth) = (0, worth(&values[0]));
        for (way, value) in values.iter().enumerate().skip(1) {
            let its = worth(value);
            if its < least_worth {
                (least, least_worth) = (way, its);
            }
        }
        keys[least] = key;
        values[least] = V::default();
        &mut values[least]
    }

    /// All values, those of free places included.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
    }

    /// All values, to change them.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_are_rounded_up_and_bounded() {
        let places = |asked| SetCache::<u8>::new(asked).values().count();
        assert_eq!([0, 1, 16, 17, 65_536, 65_537, usize::MAX].map(places), [16, 16, 16, 32, 65_536, 131_072, 1 << 24]);
    }

    proptest! {
        #[test]
        fn the_one_of_least_worth_in_its_set_makes_room(
            places in 1_usize..64, steps in prop::collection::vec((0_u64..200, 1_u32..1000), 1..400),
        ) {
            let mut roster = SetCache::<u32>::new(places);
            let sets = (roster.values().count() / SET_SIZE) as u64;
            let mut naive: Vec<(u64, u32)> = Vec::new();
            for (key, worth) in steps {
                let known = naive.iter().position(|(of, _)| *of == key);
                let value = roster.get_or_insert(key, |worth| *worth);
                prop_assert_eq!(*value, known.map_or(0, |at| naive[at].1));
                *value = worth;
                if let Some(at) = known {
                    naive[at].1 = worth;
                    continue;
                }
                let in_set = |of: &u64| of % sets == key % sets;
                if naive.iter().filter(|(of, _)| in_set(of)).count() == SET_SIZE {
                    let worths = naive.iter().filter(|(of, _)| in_set(of)).map(|(_, worth)| *worth);
                    let least = worths.min().expect("full");
                    // Among equals it is not said which.
                    if naive.iter().filter(|(of, worth)| in_set(of) && *worth == least).count() > 1 {
                        break;
                    }
                    naive.retain(|(of, worth)| !(in_set(of) && *worth == least));
                }
                naive.push((key, worth));
            }
        }
    }
}
