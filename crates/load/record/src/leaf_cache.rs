//! TLS configurations by host, made on demand: a bounded number of them. PURE.

use std::collections::{HashMap, VecDeque};

/// Values by name; the one that was made first leaves when a new one has no room.
#[derive(Debug)]
pub(crate) struct LeafCache<T> {
    values: HashMap<String, T>,
    /// Names, in the order in which their values were made.
    order: VecDeque<String>,
    max: usize,
}

impl<T: Clone> LeafCache<T> {
    /// A cache without values, for at most `max` of them.
    pub(crate) fn new(max: usize) -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), max }
    }

    /// Value of a name, which is made if there is none.
    ///
    /// # Errors
    /// That of `make`.
    pub(crate) fn get<E>(&mut self, name: &str, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(value) = self.values.get(name) {
            return Ok(value.clone());
        }
        let value = make()?;
        while self.values.len() >= self.max {
            let Some(oldest) = self.order.pop_front() else { break };
            self.values.remove(&oldest);
        }
        self.values.insert(name.to_owned(), value.clone());
        self.order.push_back(name.to_owned());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list that is searched from the end.
        #[test]
        fn the_latest_values_are_kept(names in proptest::collection::vec(0..12_u8, 0..100), max in 1..6_usize) {
            let mut cache = LeafCache::new(max);
            let mut made: Vec<(u8, usize)> = Vec::new();
            for (turn, name) in names.into_iter().enumerate() {
                let known = made.iter().rev().take(max).find(|(own, _)| *own == name).copied();
                let value = cache.get(&name.to_string(), || Ok::<_, ()>(turn)).unwrap();
                prop_assert_eq!(value, known.map_or(turn, |(_, value)| value));
                if known.is_none() {
                    made.push((name, turn));
                }
                prop_assert!(cache.values.len() <= max && cache.order.len() == cache.values.len());
            }
        }
    }
}
