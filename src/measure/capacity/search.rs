//! Which load to try next.
//!
//! Doubling from a start until a load fails (or halving until one passes), then bisection of the bracket by ratio. A load so
//! near the limit that a whole step cannot tell stays inside of the bracket, and both of its sides are narrowed. At the end
//! the lower bound is tried once more, for as long as a step may last: what seemed to hold in a few seconds may have been
//! lucky.

/// A search for the highest load that passes: requests per second, or users.
#[derive(Clone, Debug)]
pub struct Search {
    range: SearchRange,
    /// Loads that held, in rising order: the first ones again if a later look takes the last one back.
    sustained: Vec<SustainedLoad>,
    /// Loads that nothing could be told of.
    inconclusive: Vec<f64>,
    fails: Option<f64>,
    /// The highest load that held has held for a whole step.
    confirmed: bool,
}

/// A load that held.
#[derive(Clone, Copy, Debug)]
struct SustainedLoad {
    load: f64,
    /// As much of it as the service has surely kept up with.
    sustained: f64,
}

/// Where and how finely to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchRange {
    /// The first load to try; > 0.
    pub start: f64,
    /// The least load of interest: if it fails, so be it.
    pub min_load: f64,
    /// The highest load to try.
    pub max_load: f64,
    /// How far apart two loads with different ends may be in the end, as a share of the lower one.
    pub precision: f64,
    /// Loads are whole numbers: users.
    pub integer: bool,
    /// Bounds need not be closer than this: 1/s, or a user.
    pub min_gap: f64,
    /// How long a step looks at a load at most, in seconds: fewer requests tell less than `precision`.
    pub step_s: f64,
}

/// Why a search needs no more loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The bounds are as close as was asked for.
    Precise,
    /// They are 1/s or a user apart.
    Gap,
    /// They are closer than steps of this length can tell loads apart.
    Noise,
    /// Not even the least load passes, or can be told.
    MinLoad,
    /// The highest load that was to be tried passes, or cannot be told.
    MaxLoad,
}

/// What to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The load.
    pub load: f64,
    /// For as long as a step may last, however clear it looks.
    pub thorough: bool,
    /// An overload of less than this share need not be told from a load that passes.
    pub precision: f64,
}

/// While the bracket is as wide as a doubling, steps may be short; the last one makes sure.
const COARSE_PRECISION_FRACTION: f64 = 0.1;

/// What came of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// It passes, for sure.
    Passes,
    /// A whole step could not tell.
    Inconclusive,
    /// It fails, for sure.
    Fails,
}

/// Between which loads the limit lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// The most that surely passes; none if not even the least load did.
    pub passes: Option<f64>,
    /// The lowest load that failed; none if the highest one tried held.
    pub fails: Option<f64>,
}

impl Search {
    /// Nothing is known yet.
    pub fn new(range: SearchRange) -> Self {
        Self { range, sustained: Vec::new(), inconclusive: Vec::new(), fails: None, confirmed: false }
    }

    /// What to try next; none when the bracket is narrow enough.
    pub fn next(&self) -> Option<Trial> {
        let SearchRange { start, min_load: least, max_load: most, .. } = self.range;
        let fine = self.range.precision.min(COARSE_PRECISION_FRACTION);
        let quick = |load: f64, precision: f64| {
            Some(Trial { load: self.round(load).clamp(least, most), thorough: false, precision })
        };
        let between = |low: f64, high: f64| {
            let load = (low * high).sqrt();
            quick(if self.range.integer { load.clamp(low + 1.0, high - 1.0) } else { load }, fine)
        };
        let passes = self.sustained.last().map(|held| held.load);
        // What is known of the next loads above the highest that held, and below the lowest that failed.
        let above = self.inconclusive.iter().copied().chain(self.fails).reduce(f64::min);
        let below = self.inconclusive.iter().copied().chain(passes).reduce(f64::max);
        match (passes, above) {
            (None, None) => return quick(start, COARSE_PRECISION_FRACTION),
            // Too few requests to tell, most likely: there are more at higher loads.
            (None, Some(above)) if self.fails.is_none() && below.unwrap_or(above) < most => {
                return quick(below.unwrap_or(above) * 2.0, COARSE_PRECISION_FRACTION);
            }
            (None, Some(above)) if above > self.min_bound() => {
                return quick((above / 2.0).max(self.min_bound()), COARSE_PRECISION_FRACTION);
            }
            (None, Some(_)) => {}
            (Some(passes), None) if passes < most => return quick(passes * 2.0, COARSE_PRECISION_FRACTION),
            (Some(passes), Some(above)) if !self.is_narrow(passes, above) => return between(passes, above),
            (Some(_), _) => {}
        }
        match (below, self.fails) {
            (Some(below), None) if below < most && above.is_some() => {
                return quick(below * 2.0, COARSE_PRECISION_FRACTION);
            }
            (Some(below), Some(fails)) if !self.is_narrow(below, fails) => return between(below, fails),
            _ => {}
        }
        passes.filter(|_| !self.confirmed).map(|load| Trial { load, thorough: true, precision: fine })
    }

    /// Why there is nothing more to try, once there is not.
    pub fn stop_reason(&self) -> Option<StopReason> {
        if self.next().is_some() {
            return None;
        }
        let SearchRange { precision, min_gap: gap, .. } = self.range;
        let passes = self.sustained.last().map(|held| held.load);
        let fails = self.inconclusive.iter().copied().chain(self.fails).reduce(f64::min);
        Some(match (passes, fails) {
            (None, _) => StopReason::MinLoad,
            (Some(_), None) => StopReason::MaxLoad,
            (Some(low), Some(high)) if high - low <= low * precision => StopReason::Precise,
            (Some(low), Some(high)) if high - low <= gap => StopReason::Gap,
            _ => StopReason::Noise,
        })
    }

    /// What came of a trial; if it held, with how much of its load the service has surely kept up ([`CapacityStep::sustained`]).
    ///
    /// [`CapacityStep::sustained`]: super::step::Step::surely
    pub fn record(&mut self, trial: Trial, end: TrialResult, surely: f64) {
        let Trial { load, thorough, .. } = trial;
        match end {
            TrialResult::Passes => {
                self.confirmed = thorough;
                self.inconclusive.retain(|inconclusive| *inconclusive > load);
                // A longer look at the same load knows better.
                self.sustained.retain(|held| held.load < load);
                self.sustained.push(SustainedLoad { load, sustained: surely });
            }
            TrialResult::Fails | TrialResult::Inconclusive => {
                // A load that held before and does not now has not held.
                self.sustained.retain(|held| held.load < load);
                self.confirmed = false;
                if end == TrialResult::Inconclusive {
                    self.inconclusive.push(load);
                } else {
                    self.inconclusive.retain(|inconclusive| *inconclusive < load);
                    self.fails = Some(self.fails.map_or(load, |fails| fails.min(load)));
                }
            }
        }
    }

    /// What is known so far.
    pub fn bracket(&self) -> Bracket {
        Bracket { passes: self.sustained.iter().map(|held| held.sustained).reduce(f64::max), fails: self.fails }
    }

    /// Below the gap no two bounds differ.
    fn min_bound(&self) -> f64 {
        self.range.min_load.max(self.range.min_gap.min(self.range.start))
    }

    fn is_narrow(&self, low: f64, high: f64) -> bool {
        let SearchRange { precision, min_gap: gap, step_s, integer: whole, .. } = self.range;
        // Random arrivals differ by the square root of their number.
        let noise = if whole { 0.0 } else { low / (low * step_s).sqrt() };
        high - low <= (low * precision).max(gap).max(noise)
    }

    fn round(&self, load: f64) -> f64 {
        if self.range.integer { load.floor().max(1.0) } else { load }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches against a service that passes up to `limit`.
    fn find(range: SearchRange, limit: f64) -> (Bracket, usize) {
        let mut search = Search::new(range);
        let mut trials = 0;
        while let Some(trial) = search.next() {
            search.record(
                trial,
                if trial.load <= limit { TrialResult::Passes } else { TrialResult::Fails },
                trial.load,
            );
            trials += 1;
            assert!(trials < 200, "{search:?}");
        }
        (search.bracket(), trials)
    }

    const RANGE: SearchRange = SearchRange {
        start: 100.0,
        min_load: 1.0,
        max_load: 1e6,
        precision: 0.03,
        integer: false,
        min_gap: 1.0,
        step_s: 30.0,
    };

    #[test]
    fn a_limit_above_the_highest_load_is_not_found_and_said_so() {
        assert_eq!(find(RANGE, 1e9).0, Bracket { passes: Some(1e6), fails: None });
        assert_eq!(find(RANGE, 0.5).0, Bracket { passes: None, fails: Some(1.0) });
    }

    #[test]
    fn a_load_that_does_not_hold_for_a_whole_step_is_searched_below() {
        let mut search = Search::new(RANGE);
        while let Some(trial) = search.next() {
            let limit = if trial.thorough { 400.0 } else { 500.0 };
            search.record(
                trial,
                if trial.load <= limit { TrialResult::Passes } else { TrialResult::Fails },
                trial.load,
            );
        }
        let Bracket { passes: Some(passes), fails: Some(fails) } = search.bracket() else { panic!("{search:?}") };
        assert!(passes <= 400.0 && fails > 400.0, "{search:?}");
    }

    /// How close the bounds have to be in the end.
    fn narrow(low: f64, whole: bool) -> f64 {
        let noise = if whole { 0.0 } else { (low / RANGE.step_s).sqrt() };
        (low * RANGE.precision).max(RANGE.min_gap).max(noise)
    }

    #[test]
    fn a_step_too_short_to_tell_ends_the_search_and_does_not_halve_for_ever() {
        // Nothing can be told of loads of fewer than 20 requests a step; all others fail.
        for least in [0.1, 1.0] {
            let mut search = Search::new(SearchRange { step_s: 3.0, min_load: least, ..RANGE });
            let mut trials = Vec::new();
            while let Some(trial) = search.next() {
                let end = if trial.load * 3.0 < 20.0 { TrialResult::Inconclusive } else { TrialResult::Fails };
                search.record(trial, end, trial.load);
                trials.push(trial.load);
                assert!(trials.len() < 20, "{trials:?}");
            }
            assert_eq!(search.stop_reason(), Some(StopReason::MinLoad));
            assert!(trials.iter().all(|load| *load >= 1.0), "less than 1/s is nothing to search for: {trials:?}");
        }
    }

    #[test]
    fn a_search_says_why_it_is_over() {
        let done = |range: SearchRange, limit: f64| {
            let mut search = Search::new(range);
            while let Some(trial) = search.next() {
                assert_eq!(search.stop_reason(), None);
                search.record(
                    trial,
                    if trial.load <= limit { TrialResult::Passes } else { TrialResult::Fails },
                    trial.load,
                );
            }
            search.stop_reason().expect("it is over")
        };
        assert_eq!(done(RANGE, 5_000.0), StopReason::Precise);
        assert_eq!(done(RANGE, 8.5), StopReason::Gap);
        assert_eq!(done(SearchRange { step_s: 3.0, ..RANGE }, 60.0), StopReason::Noise);
        assert_eq!(done(RANGE, 0.5), StopReason::MinLoad);
        assert_eq!(done(RANGE, 1e9), StopReason::MaxLoad);
    }

    proptest! {
        /// Wherever the limit is and however wide the stretch around it in which nothing can be told.
        #[test]
        fn what_cannot_be_told_stays_inside_of_the_bracket(
            limit in prop_oneof![2.0..60.0_f64, 2.0..500_000.0_f64], start in 1.0..10_000.0_f64, width in 0.0..0.2_f64, whole: bool
        ) {
            let mut search = Search::new(SearchRange { start, integer: whole, ..RANGE });
            let mut trials = 0;
            while let Some(trial) = search.next() {
                let end = match trial.load {
                    load if load <= limit / (1.0 + width) => TrialResult::Passes,
                    load if load > limit * (1.0 + width) => TrialResult::Fails,
                    _ => TrialResult::Inconclusive,
                };
                search.record(trial, end, trial.load);
                trials += 1;
                prop_assert!(trials < 100, "{search:?}");
            }
            let (passes, fails) = (search.bracket().passes.unwrap_or(0.0), search.bracket().fails.unwrap_or(1e9));
            prop_assert!(passes <= limit && limit <= fails, "{passes} {fails}");
            let gap = |load: f64| narrow(load, whole) + 1e-6;
            let (low, high) = (limit / (1.0 + width), limit * (1.0 + width));
            prop_assert!(low - passes <= gap(low) && fails - high <= gap(fails), "{passes} {low} {high} {fails}");
        }

        #[test]
        fn the_limit_is_between_bounds_that_are_close_and_few_steps_find_it(
            limit in prop_oneof![2.0..60.0_f64, 2.0..900_000.0_f64], start in 1.0..10_000.0_f64, whole: bool
        ) {
            let (bracket, trials) = find(SearchRange { start, integer: whole, ..RANGE }, limit);
            let (passes, fails) = (bracket.passes.unwrap(), bracket.fails.unwrap());
            prop_assert!(passes <= limit && limit < fails);
            prop_assert!(fails - passes <= narrow(passes, whole) + 1e-6, "{passes} {fails}");
            let doublings = (limit / start).log2().abs().ceil() as usize;
            prop_assert!(trials <= doublings + 9, "{trials} against {doublings}");
        }
    }
}
