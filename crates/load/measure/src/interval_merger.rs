//! Merger of intervals that several threads or agents report.

use std::collections::BTreeMap;

use super::recorder::Interval;

/// Sums of the intervals of several sources; an interval is complete when all sources have reported it.
#[derive(Debug)]
pub struct IntervalMerger {
    sources: u64,
    /// Number of reports and their sum, by interval.
    parts: BTreeMap<u64, (u64, Interval)>,
}

impl IntervalMerger {
    /// Merger for a number of sources.
    pub fn new(sources: u64) -> Self {
        Self { sources, parts: BTreeMap::new() }
    }

    /// Adds a source's report of interval `number`; returns the sum if all sources have reported it.
    pub fn add(&mut self, number: u64, interval: &Interval) -> Option<Interval> {
        let (reports, sum) = self.parts.entry(number).or_default();
        *reports += 1;
        sum.add(interval);
        if *reports < self.sources {
            return None;
        }
        self.parts.remove(&number).map(|(_, sum)| sum)
    }

    /// Removes a source that reports no more.
    pub fn remove_source(&mut self) {
        self.sources = self.sources.saturating_sub(1);
    }

    /// Incomplete intervals, by number.
    pub fn into_partial(self) -> impl Iterator<Item = (u64, Interval)> {
        self.parts.into_iter().map(|(number, (_, sum))| (number, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ok: u64) -> Interval {
        Interval { ok, ..Interval::default() }
    }

    #[test]
    fn an_interval_is_complete_after_all_reports_in_any_order() {
        let mut merger = IntervalMerger::new(2);
        assert!(merger.add(0, &interval(1)).is_none());
        assert!(merger.add(1, &interval(2)).is_none());
        assert_eq!(merger.add(1, &interval(30)).map(|whole| whole.ok), Some(32));
        assert_eq!(merger.add(0, &interval(40)).map(|whole| whole.ok), Some(41));
        assert_eq!(merger.into_partial().count(), 0);
    }

    #[test]
    fn a_removed_source_is_not_awaited_and_its_counts_stay() {
        let mut merger = IntervalMerger::new(3);
        assert!(merger.add(0, &interval(1)).is_none());
        assert!(merger.add(0, &interval(2)).is_none());
        merger.remove_source();
        assert!(merger.add(1, &interval(4)).is_none());
        assert_eq!(merger.add(1, &interval(8)).map(|whole| whole.ok), Some(12));
        assert_eq!(merger.into_partial().map(|(at, part)| (at, part.ok)).collect::<Vec<_>>(), [(0, 3)]);
    }
}
