//! Intervals of a run in bounded memory, and what a page that returns has missed.
//!
//! A run of a day must not fill the memory, neither here nor in the page. Both keep [`MAX_BINS`] bins at most; then
//! neighbours are merged and bins become twice as wide. The last intervals are kept one by one, too: a page that was
//! away for a while gets those after its last one, and one that was away for longer starts anew from the bins.

use std::collections::VecDeque;

use super::live_bin::LiveBin;

/// Maximum number of bins; the page has the same.
pub(crate) const MAX_BINS: u64 = 1800;
/// Number of intervals that are kept one by one.
const MAX_RECENT: usize = 120;

/// Intervals of a run.
#[derive(Debug, Default)]
pub(crate) struct LiveStore {
    bins: Vec<LiveBin>,
    /// Binary logarithm of the width of a bin.
    doublings: u32,
    recent: VecDeque<LiveBin>,
    /// Number of the interval after the last one.
    next: u64,
}

/// Bins that a page has missed.
#[derive(Debug, PartialEq)]
pub(crate) struct MissedBins {
    /// Whether the page discards what it has.
    pub(crate) is_all: bool,
    /// Bins, in order.
    pub(crate) bins: Vec<LiveBin>,
    /// Number of the interval after the last one.
    pub(crate) next: u64,
}

impl LiveStore {
    /// Adds an interval; one that is not after the last one is ignored.
    pub(crate) fn add(&mut self, bin: LiveBin) {
        if bin.n < self.next {
            return;
        }
        self.next = bin.n + 1;
        while bin.n >> self.doublings >= MAX_BINS {
            self.widen();
        }
        match self.bins.last_mut() {
            Some(last) if last.n >> self.doublings == bin.n >> self.doublings => last.add(&bin),
            _ => self.bins.push(bin.clone()),
        }
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(bin);
    }

    fn widen(&mut self) {
        self.doublings += 1;
        let mut merged: Vec<LiveBin> = Vec::with_capacity(self.bins.len() / 2 + 1);
        for bin in std::mem::take(&mut self.bins) {
            match merged.last_mut() {
                Some(last) if last.n >> self.doublings == bin.n >> self.doublings => last.add(&bin),
                _ => merged.push(bin),
            }
        }
        self.bins = merged;
    }

    /// Bins missed by a page that has all intervals before `since`; `None`: it has none.
    pub(crate) fn missed(&self, since: Option<u64>) -> MissedBins {
        let since = since.filter(|since| *since <= self.next);
        let first = self.recent.front().map_or(self.next, |bin| bin.n);
        // Intervals may be left out where nothing was reported, so the first one that is kept may be later.
        let is_kept = |since: u64| since >= first || (self.recent.len() < MAX_RECENT && self.doublings == 0);
        match since.filter(|since| is_kept(*since)) {
            Some(since) => {
                let bins = self.recent.iter().filter(|bin| bin.n >= since).cloned().collect();
                MissedBins { is_all: false, bins, next: self.next }
            }
            None => MissedBins { is_all: true, bins: self.bins.clone(), next: self.next },
        }
    }

    /// Number of the interval after the last one.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::live_bin::BinTimes;
    use super::*;

    fn bin(n: u64) -> LiveBin {
        LiveBin { n, w: 1, ok: n % 7, times: BinTimes(vec![(n % 5 + 1, n % 7)]), ..LiveBin::default() }
    }

    #[test]
    fn a_day_at_a_second_has_no_more_bins_than_fit_and_loses_nothing() {
        let mut store = LiveStore::default();
        (0..86_400).for_each(|n| store.add(bin(n)));
        let all = store.missed(None);
        assert!(all.bins.len() as u64 <= MAX_BINS && all.bins.len() as u64 > MAX_BINS / 2, "{}", all.bins.len());
        assert_eq!(all.bins.iter().map(|bin| bin.ok).sum::<u64>(), (0..86_400).map(|n| n % 7).sum::<u64>());
        let times: u64 = all.bins.iter().flat_map(|bin| &bin.times.0).map(|(_, n)| n).sum();
        assert_eq!(times, (0..86_400).map(|n| n % 7).sum::<u64>());
        assert_eq!(all.bins.iter().map(|bin| bin.w).sum::<u64>(), 86_400);
        assert!(store.recent.len() <= MAX_RECENT);
    }

    proptest! {
        /// Oracle: the sum of all. A page asks now and then, with what it has had.
        #[test]
        fn a_page_that_comes_and_goes_has_all_intervals_once(
            steps in prop::collection::vec((1..400_u64, 1..3_u64), 1..20)
        ) {
            let mut store = LiveStore::default();
            let (mut n, mut sum) = (0, 0);
            let (mut had, mut since) = (0, None);
            for (intervals, distance) in steps {
                for _ in 0..intervals {
                    n += distance;
                    sum += bin(n).ok;
                    store.add(bin(n));
                }
                let missed = store.missed(since);
                if missed.is_all {
                    had = 0;
                }
                had += missed.bins.iter().map(|bin| bin.ok).sum::<u64>();
                since = Some(missed.next);
                prop_assert_eq!(had, sum);
                prop_assert_eq!(store.missed(since).bins, vec![]);
            }
            prop_assert!(store.missed(Some(u64::MAX)).is_all, "a page of another run");
        }
    }
}
