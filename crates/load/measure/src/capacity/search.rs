//! Choice of the next load level.
//!
//! Loads are doubled until one fails (or halved until one passes), then the bracket is bisected by ratio. An
//! inconclusive load stays inside of the bracket, and both of its sides are narrowed. At the end the lower bound is
//! tried again for a whole step: a load that passed within a few seconds may have done so by chance.

/// Search for the highest load that passes, in requests per second or users.
#[derive(Clone, Debug)]
pub struct Search {
    range: SearchRange,
    /// Loads that passed, ascending; a later failure removes the last ones.
    sustained: Vec<SustainedLoad>,
    /// Inconclusive loads.
    inconclusive: Vec<f64>,
    fails: Option<f64>,
    /// Whether the highest load has passed a whole step.
    confirmed: bool,
}

/// Load that passed.
#[derive(Clone, Copy, Debug)]
struct SustainedLoad {
    load: f64,
    /// Throughput that the service has significantly kept up with.
    sustained: f64,
}

/// Range and precision of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchRange {
    /// First load; > 0.
    pub start: f64,
    /// Lowest load.
    pub min_load: f64,
    /// Highest load.
    pub max_load: f64,
    /// Maximum distance of the final bounds, as a fraction of the lower one.
    pub precision: f64,
    /// Whether loads are whole numbers: users.
    pub integer: bool,
    /// Minimum useful distance of bounds: 1/s, or a user.
    pub min_gap: f64,
    /// Maximum length of a step, in seconds; it limits the precision at low rates.
    pub step_s: f64,
}

/// Reason why a search is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The bounds are within the precision.
    Precise,
    /// The bounds are 1/s or a user apart.
    Gap,
    /// The bounds are closer than the random variation of arrivals in a step.
    Noise,
    /// The lowest load fails or is inconclusive.
    MinLoad,
    /// Loads have too few requests in a step for an outcome.
    TooFew,
    /// The highest load passes or is inconclusive.
    MaxLoad,
}

/// Load level to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Requests per second, or users.
    pub load: f64,
    /// Whether a pass needs a whole step.
    pub thorough: bool,
    /// Overload below this fraction need not be detected.
    pub precision: f64,
}

/// Precision of steps while loads are doubled or halved.
const COARSE_PRECISION_FRACTION: f64 = 0.1;

/// Number of inconclusive loads from which on no lower one is tried: it would have fewer requests still. One that is
/// inconclusive since it is near the limit has a factor of two to the next, which is not.
const MAX_INCONCLUSIVE: usize = 3;

/// Outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialResult {
    /// The load passes, with statistical confidence.
    Passes,
    /// Not decided within a whole step.
    Inconclusive,
    /// The load fails, with statistical confidence.
    Fails,
}

/// Bounds of the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// Lower bound; none if not even the lowest load passed.
    pub passes: Option<f64>,
    /// Upper bound: the lowest load that failed; none if the highest one passed.
    pub fails: Option<f64>,
}

impl Search {
    /// Search without results.
    pub fn new(range: SearchRange) -> Self {
        Self { range, sustained: Vec::new(), inconclusive: Vec::new(), fails: None, confirmed: false }
    }

    /// Next load level; none when the search is complete.
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
        // The next known loads above the highest that passed, and below the lowest that failed.
        let above = self.inconclusive.iter().copied().chain(self.fails).reduce(f64::min);
        let below = self.inconclusive.iter().copied().chain(passes).reduce(f64::max);
        match (passes, above) {
            (None, None) => return quick(start, COARSE_PRECISION_FRACTION),
            // Probably too few requests for an outcome: there are more at higher loads.
            (None, Some(above)) if self.fails.is_none() && below.unwrap_or(above) < most => {
                return quick(below.unwrap_or(above) * 2.0, COARSE_PRECISION_FRACTION);
            }
            (None, Some(above)) if above > self.min_bound() && self.inconclusive.len() < MAX_INCONCLUSIVE => {
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

    /// Reason why the search is complete; none before.
    pub fn stop_reason(&self) -> Option<StopReason> {
        if self.next().is_some() {
            return None;
        }
        let SearchRange { precision, min_gap: gap, .. } = self.range;
        let passes = self.sustained.last().map(|held| held.load);
        let fails = self.inconclusive.iter().copied().chain(self.fails).reduce(f64::min);
        Some(match (passes, fails) {
            (None, _) if self.inconclusive.len() >= MAX_INCONCLUSIVE => StopReason::TooFew,
            (None, _) => StopReason::MinLoad,
            (Some(_), None) => StopReason::MaxLoad,
            (Some(low), Some(high)) if high - low <= low * precision => StopReason::Precise,
            (Some(low), Some(high)) if high - low <= gap => StopReason::Gap,
            _ => StopReason::Noise,
        })
    }

    /// Records the outcome of a trial; `sustained` is that of [`CapacityStep::sustained`], used if it passed.
    ///
    /// [`CapacityStep::sustained`]: super::step::CapacityStep::sustained
    pub fn record(&mut self, trial: Trial, end: TrialResult, sustained: f64) {
        let Trial { load, thorough, .. } = trial;
        match end {
            TrialResult::Passes => {
                self.confirmed = thorough;
                self.inconclusive.retain(|inconclusive| *inconclusive > load);
                // A later trial of the same load replaces the earlier one.
                self.sustained.retain(|held| held.load < load);
                self.sustained.push(SustainedLoad { load, sustained });
            }
            TrialResult::Fails | TrialResult::Inconclusive => {
                // A load that passed before and does not now has not passed.
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

    /// Bounds so far.
    pub fn bracket(&self) -> Bracket {
        Bracket { passes: self.sustained.iter().map(|held| held.sustained).reduce(f64::max), fails: self.fails }
    }

    /// Lowest load of the search.
    fn min_bound(&self) -> f64 {
        self.range.min_load.max(self.range.min_gap.min(self.range.start))
    }

    fn is_narrow(&self, low: f64, high: f64) -> bool {
        let SearchRange { precision, min_gap: gap, step_s, integer: whole, .. } = self.range;
        // The standard deviation of random arrivals is the square root of their number.
        let noise = if whole { 0.0 } else { low / (low * step_s).sqrt() };
        high - low <= (low * precision).max(gap).max(noise)
    }

    fn round(&self, load: f64) -> f64 {
        if self.range.integer { load.floor().max(1.0) } else { load }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Search on a service that passes up to `limit`.
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

    pub(crate) const RANGE: SearchRange = SearchRange {
        start: 100.0,
        min_load: 1.0,
        max_load: 1e6,
        precision: 0.03,
        integer: false,
        min_gap: 1.0,
        step_s: 30.0,
    };

    #[test]
    fn a_limit_outside_of_the_range_is_an_open_bracket() {
        assert_eq!(find(RANGE, 1e9).0, Bracket { passes: Some(1e6), fails: None });
        assert_eq!(find(RANGE, 0.5).0, Bracket { passes: None, fails: Some(1.0) });
    }

    #[test]
    fn a_load_that_fails_a_whole_step_is_searched_below() {
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

    /// Maximum distance of the final bounds.
    fn narrow(low: f64, whole: bool) -> f64 {
        let noise = if whole { 0.0 } else { (low / RANGE.step_s).sqrt() };
        (low * RANGE.precision).max(RANGE.min_gap).max(noise)
    }

    #[test]
    fn steps_without_an_outcome_end_the_search() {
        // Loads of fewer than 20 requests per step are inconclusive; all others fail.
        for least in [0.1, 1.0] {
            let mut search = Search::new(SearchRange { step_s: 3.0, min_load: least, ..RANGE });
            let mut trials = Vec::new();
            while let Some(trial) = search.next() {
                let end = if trial.load * 3.0 < 20.0 { TrialResult::Inconclusive } else { TrialResult::Fails };
                search.record(trial, end, trial.load);
                trials.push(trial.load);
                assert!(trials.len() < 20, "{trials:?}");
            }
            assert_eq!(search.stop_reason(), Some(StopReason::TooFew));
            assert!(trials.iter().all(|load| *load >= 1.0), "no load is below 1/s: {trials:?}");
            assert!(trials.len() < 15, "{trials:?}");
        }
    }

    #[test]
    fn loads_with_too_few_requests_are_followed_by_higher_ones_alone() {
        let trials = |outcome: fn(f64) -> TrialResult| {
            let mut search = Search::new(SearchRange { start: 1.0, max_load: 64.0, ..RANGE });
            let mut trials = Vec::new();
            while let Some(trial) = search.next() {
                search.record(trial, outcome(trial.load), trial.load);
                trials.push(trial.load);
            }
            (trials, search.stop_reason(), search.bracket().passes)
        };
        let (loads, reason, _) = trials(|_| TrialResult::Inconclusive);
        assert_eq!(
            (loads.as_slice(), reason),
            ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].as_slice(), Some(StopReason::TooFew))
        );
        let few = |load: f64| match load {
            load if load < 20.0 => TrialResult::Inconclusive,
            load if load < 25.0 => TrialResult::Passes,
            _ => TrialResult::Fails,
        };
        let (loads, _, passes) = trials(few);
        assert!(loads.iter().all(|load| *load >= 1.0) && passes.is_some_and(|passes| passes > 20.0), "{loads:?}");
    }

    #[test]
    fn a_complete_search_has_a_reason() {
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
        /// For any limit, and any width of the inconclusive range around it.
        #[test]
        fn inconclusive_loads_stay_inside_of_the_bracket(
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
