//! A set-associative cache: a value for each of many keys, in fixed memory.
//!
//! Clients choose how many callers there seem to be, so a table that grows with them can be made to use up memory. This
//! one has a fixed number of slots, as a processor's cache has: a key belongs to one set of 16, and when that is full,
//! the entry with the lowest worth is evicted. The user of the cache defines worth. Nothing is linked or moved, and a
//! look-up compares 16 adjacent numbers.
//!
//! The cost: some sets are full before others. With half as many keys as slots, one set in 250 is too small.
//!
//! A key is the hash of a caller's name. It must be uniform in its low bits and seeded per process, otherwise a client
//! can choose names that evict another's entry. Names with the same hash count as one caller; among a million names
//! that happens with a probability of 3e-8.

/// Slots of a set.
const SET_SIZE: usize = 16;

/// The cache; a key that is not in it has the default value.
#[derive(Clone, Debug)]
pub struct SetCache<V> {
    keys: Vec<[u64; SET_SIZE]>,
    values: Vec<[V; SET_SIZE]>,
}

impl<V: Copy + Default> SetCache<V> {
    /// An empty cache with at least `slots` slots, rounded up to 16 times a power of two, at most 2^24.
    pub fn new(slots: usize) -> Self {
        let sets = slots.clamp(1, 1 << 24).div_ceil(SET_SIZE).next_power_of_two();
        Self { keys: vec![[0; SET_SIZE]; sets], values: vec![[V::default(); SET_SIZE]; sets] }
    }

    /// The key's value, if it is in the cache.
    pub fn get(&self, key: u64) -> Option<&V> {
        let set = (key as usize) & (self.keys.len() - 1);
        let way = self.keys[set].iter().position(|of| *of == key)?;
        Some(&self.values[set][way])
    }

    /// The key's value, mutable, if it is in the cache.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let set = (key as usize) & (self.keys.len() - 1);
        let way = self.keys[set].iter().position(|of| *of == key)?;
        Some(&mut self.values[set][way])
    }

    /// The key's value; a new key evicts the entry of its set with the lowest worth.
    pub fn get_or_insert<W: PartialOrd>(&mut self, key: u64, worth: impl Fn(&V) -> W) -> &mut V {
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

    /// All values, those of free slots included.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
    }

    /// All values, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_rounded_up_and_bounded() {
        let slots = |asked| SetCache::<u8>::new(asked).values().count();
        assert_eq!([0, 1, 16, 17, 65_536, 65_537, usize::MAX].map(slots), [16, 16, 16, 32, 65_536, 131_072, 1 << 24]);
    }

    proptest! {
        #[test]
        fn the_entry_of_least_worth_in_its_set_is_evicted(
            slots in 1_usize..64, steps in prop::collection::vec((0_u64..200, 1_u32..1000), 1..400),
        ) {
            let mut cache = SetCache::<u32>::new(slots);
            let sets = (cache.values().count() / SET_SIZE) as u64;
            let mut naive: Vec<(u64, u32)> = Vec::new();
            for (key, worth) in steps {
                let known = naive.iter().position(|(of, _)| *of == key);
                let value = cache.get_or_insert(key, |worth| *worth);
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
                    // Among equals the evicted one is unspecified.
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
