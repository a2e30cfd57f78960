//! Stretches of a run that several tell of, each what it saw: whole once all have.

use std::collections::BTreeMap;

use super::recorder::Interval;

/// Puts together what several tell of the same stretches.
#[derive(Debug)]
pub struct IntervalMerger {
    sources: u64,
    /// How many have told of a stretch, and what.
    parts: BTreeMap<u64, (u64, Interval)>,
}

impl IntervalMerger {
    /// For so many who tell.
    pub fn new(sources: u64) -> Self {
        Self { sources, parts: BTreeMap::new() }
    }

    /// One of them tells of a stretch; what all saw in it, if it was the last.
    pub fn add(&mut self, stretch: u64, interval: &Interval) -> Option<Interval> {
        let (told, sum) = self.parts.entry(stretch).or_default();
        *told += 1;
        sum.add(interval);
        if *told < self.sources {
            return None;
        }
        self.parts.remove(&stretch).map(|(_, sum)| sum)
    }

    /// One of them has nothing more to tell.
    pub fn remove_source(&mut self) {
        self.sources = self.sources.saturating_sub(1);
    }

    /// Stretches of which not all have told.
    pub fn into_partial(self) -> impl Iterator<Item = (u64, Interval)> {
        self.parts.into_iter().map(|(stretch, (_, sum))| (stretch, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saw(ok: u64) -> Interval {
        Interval { ok, ..Interval::default() }
    }

    #[test]
    fn a_stretch_is_whole_once_all_have_told_of_it_in_whatever_order() {
        let mut gathering = IntervalMerger::new(2);
        assert!(gathering.add(0, &saw(1)).is_none());
        assert!(gathering.add(1, &saw(2)).is_none());
        assert_eq!(gathering.add(1, &saw(30)).map(|whole| whole.ok), Some(32));
        assert_eq!(gathering.add(0, &saw(40)).map(|whole| whole.ok), Some(41));
        assert_eq!(gathering.into_partial().count(), 0);
    }

    #[test]
    fn nobody_waits_for_one_who_has_left_and_nothing_is_lost() {
        let mut gathering = IntervalMerger::new(3);
        assert!(gathering.add(0, &saw(1)).is_none());
        assert!(gathering.add(0, &saw(2)).is_none());
        gathering.remove_source();
        assert!(gathering.add(1, &saw(4)).is_none());
        assert_eq!(gathering.add(1, &saw(8)).map(|whole| whole.ok), Some(12));
        assert_eq!(gathering.into_partial().map(|(at, part)| (at, part.ok)).collect::<Vec<_>>(), [(0, 3)]);
    }
}
