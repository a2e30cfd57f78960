//! The callers with the most rejections, in fixed memory.
//!
//! "Space-Saving" (Metwally, Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams", 2005): a caller without a counter takes the one with the lowest count, and what that counted is what the
//! new one may count too many. So a caller with more rejections than all of them over the number of counters always has
//! one, and callers that are invented, each with a few rejections, take one another's counters.
//!
//! Counts are those of two windows, the current one and the one before, so that a caller of last week gives way.

use weir_base::Nanos;

/// Number of counters of a window.
const COUNTERS: usize = 128;

/// Length of a window.
const WINDOW: Nanos = Nanos::from_secs(300);

/// Rejections of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedCaller {
    /// Name for output, without secrets.
    pub name: String,
    /// Reason of its latest rejection.
    pub reason: &'static str,
    /// Rejections for certain, in the last five to ten minutes.
    pub count: u64,
}

#[derive(Clone, Debug)]
struct CallerCounter {
    key: u64,
    name: String,
    reason: &'static str,
    count: u64,
    /// Rejections that may be of others.
    excess: u64,
}

/// The callers of a route with the most rejections.
#[derive(Clone, Debug, Default)]
pub struct TopCallers {
    /// Number of the current window.
    window: u64,
    current: Vec<CallerCounter>,
    previous: Vec<CallerCounter>,
}

impl TopCallers {
    /// Counts a rejection of the caller with this key. `name` is called only if the caller has no counter yet.
    pub fn rejected(&mut self, now: Nanos, key: u64, reason: &'static str, name: impl FnOnce() -> String) {
        self.advance(now);
        if let Some(counter) = self.current.iter_mut().find(|counter| counter.key == key) {
            counter.count += 1;
            counter.reason = reason;
            return;
        }
        let mut fresh = CallerCounter { key, name: name(), reason, count: 1, excess: 0 };
        if self.current.len() < COUNTERS {
            self.current.push(fresh);
        } else if let Some(least) = self.current.iter_mut().min_by_key(|counter| counter.count) {
            (fresh.count, fresh.excess) = (least.count + 1, least.count);
            *least = fresh;
        }
    }

    /// The callers with the most rejections, up to this many, the most first.
    pub fn top(&mut self, now: Nanos, max: usize) -> Vec<RejectedCaller> {
        self.advance(now);
        let mut all: Vec<(u64, RejectedCaller)> = Vec::new();
        for counter in self.current.iter().chain(&self.previous) {
            let count = counter.count - counter.excess;
            match all.iter_mut().find(|(key, _)| *key == counter.key) {
                Some((_, caller)) => caller.count += count,
                None => {
                    let CallerCounter { name, reason, .. } = counter;
                    all.push((counter.key, RejectedCaller { name: name.clone(), reason, count }));
                }
            }
        }
        let mut all: Vec<RejectedCaller> = all.into_iter().map(|(_, caller)| caller).collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        all.truncate(max);
        all
    }

    fn advance(&mut self, now: Nanos) {
        let window = now.0 / WINDOW.0;
        match window.saturating_sub(self.window) {
            0 => return,
            1 => self.previous = std::mem::take(&mut self.current),
            _ => (self.current, self.previous) = (Vec::new(), Vec::new()),
        }
        self.window = window;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    fn names(top: &[RejectedCaller]) -> Vec<(&str, u64)> {
        top.iter().map(|caller| (caller.name.as_str(), caller.count)).collect()
    }

    #[test]
    fn a_million_invented_callers_take_no_memory_and_hide_no_caller_that_is_rejected_often() {
        let (mut top, mut rng) = (TopCallers::default(), SeededRng::new(7, 7));
        for n in 0..1_000_000_u64 {
            let stranger = rng.bits();
            top.rejected(Nanos(n), stranger, "rate_limited", || "stranger".to_owned());
            if n % 20 == 0 {
                top.rejected(Nanos(n), 1, "rate_limited", || "loop".to_owned());
            }
        }
        assert!(top.current.len() <= COUNTERS);
        let found = top.top(Nanos(1_000_000), 10);
        assert_eq!(found[0].name, "loop");
        assert!(found[0].count > 40_000 && found[1].count < 10_000, "{:?}", names(&found));
    }

    #[test]
    fn callers_of_long_ago_give_way() {
        let mut top = TopCallers::default();
        let at = Nanos::from_secs;
        (0..9).for_each(|_| top.rejected(at(0), 1, "rate_limited", || "old".to_owned()));
        (0..3).for_each(|_| top.rejected(at(299), 2, "queue_full", || "both".to_owned()));
        top.rejected(at(301), 2, "shed", || "both".to_owned());
        assert_eq!(names(&top.top(at(301), 10)), [("old", 9), ("both", 4)]);
        assert_eq!(top.top(at(301), 10)[1].reason, "shed", "of the latest");
        assert_eq!(names(&top.top(at(301), 1)), [("old", 9)]);
        assert_eq!(names(&top.top(at(650), 10)), [("both", 1)]);
        assert!(top.top(at(10_000), 10).is_empty());
    }

    proptest! {
        /// Counts are never too high, and a caller with more than its part of all is there.
        #[test]
        fn counts_are_certain(callers in prop::collection::vec(0_u64..400, 1..3000)) {
            let (mut top, mut naive) = (TopCallers::default(), HashMap::<String, u64>::new());
            for caller in &callers {
                // Some are frequent.
                let key = if caller % 3 == 0 { caller % 5 } else { *caller };
                top.rejected(Nanos::ZERO, key, "rate_limited", || key.to_string());
                *naive.entry(key.to_string()).or_default() += 1;
            }
            let found = top.top(Nanos::ZERO, usize::MAX);
            for caller in &found {
                prop_assert!(caller.count <= naive[&caller.name]);
            }
            for (name, count) in naive {
                let certain = count > callers.len() as u64 / COUNTERS as u64;
                prop_assert!(!certain || found.iter().any(|caller| caller.name == name), "{name}");
            }
        }
    }
}
