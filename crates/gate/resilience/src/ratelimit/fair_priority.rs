//! Fair use of high priorities: which callers' claims of a high priority are honoured.
//!
//! Under overload the lowest priorities are shed first. A caller then gains by marking all its calls urgent, and where
//! callers set the priority, soon all do. So the claims of a caller are bounded by its *fair share*: the part of the
//! calls accepted recently that it would get if all priorities were equal. Up to there a claim gains no more than the
//! caller is due; beyond it, the call gets the lowest priority. Honest callers are not affected, since only some of
//! their calls are urgent.
//!
//! Fair is max-min fair: a caller that requests less than an equal part gets its requests, and the remainder is divided
//! among the others. So there is a level, and each caller's share is the minimum of its requests and the level. A flood
//! of calls does not raise the level. While all calls are accepted there is no level, and all claims are honoured.
//!
//! Counts are of the last `window` and decay evenly. The level is computed 32 times per window, in one pass over the
//! table (about 10 us for 4,096 callers), so it lags a little behind a flood. A caller's claims so far are then capped
//! at the new level: claims from times without overload do not count against it.
//!
//! Memory is fixed. With more callers than entries, those with the fewest requests are evicted. The others divide the
//! accepted calls in proportion; if evicted callers were due all their requests, a flood of names that are used once
//! would leave nothing for the claims of any caller. The price: a caller with N names has N shares. A key is suitable
//! if names are costly to obtain.

use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_base::set_cache::SetCache;

/// Bound on the claims of each caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriorityFairnessRule {
    /// Time for which calls count.
    pub window: Nanos,
    /// Multiple of the fair share up to which claims are honoured; at least 1. Dishonest callers gain the part above 1.
    pub slack: f64,
    /// Claims of a caller that are always honoured, per window.
    pub min_claims: f64,
    /// Maximum number of callers in the table, rounded up to 16 times a power of two.
    pub entries: usize,
}

impl Default for PriorityFairnessRule {
    /// The fair share itself, of the last 10 s, for 4096 callers (100 kB).
    fn default() -> Self {
        Self { window: Nanos::from_secs(10), slack: 1.0, min_claims: 5.0, entries: 4096 }
    }
}

impl PriorityFairnessRule {
    /// Maximum of `entries`; a pass over that number takes about a millisecond.
    pub const MAX_ENTRIES: usize = 1 << 18;

    /// Fault of the first invalid field; `None` if the rule is valid.
    pub fn fault(&self) -> Option<Fault> {
        let Self { window, slack, min_claims: floor, entries } = *self;
        if window == Nanos::ZERO {
            Some(Fault::new(format!("a window of {window} is too short"), "make it longer, e.g. 10s"))
        } else if !(slack >= 1.0 && slack.is_finite()) {
            let what = format!("a slack of {slack} would cut callers below their share");
            Some(Fault::new(what, "make it 1 at least"))
        } else if !(floor >= 0.0 && floor.is_finite()) {
            Some(Fault::new(format!("a floor of {floor} is not possible"), "make it 0 at least, e.g. 5"))
        } else if !(1..=Self::MAX_ENTRIES).contains(&entries) {
            let what = format!("{entries} callers cannot be remembered");
            Some(Fault::new(what, format!("make it 1 at least and {} at most, e.g. 4096", Self::MAX_ENTRIES)))
        } else {
            None
        }
    }
}

/// Number of times that the level is computed in a window.
const STEPS_PER_WINDOW: u64 = 32;
/// Fraction of a count that remains after a step: the weight of a call falls to 1/e in a window.
const STEP_DECAY_FACTOR: f64 = 1.0 - 1.0 / STEPS_PER_WINDOW as f64;
/// Count below which a caller's entry is cleared, in calls.
const MIN_REQUESTED_CALLS: f64 = 0.01;
/// Classes of callers by their requested calls, from 1 to 2^32: 2^`CLASS_BITS` in each doubling.
const CLASS_BITS: u32 = 4;
const DEMAND_CLASSES: usize = 32 << CLASS_BITS;

/// Decaying counts of one caller's calls: requested, and claimed as high priority.
#[derive(Clone, Copy, Debug, Default)]
struct CallerUsage {
    requested: f64,
    claimed: f64,
}

/// Recent requests, admissions and claims of all callers. Allocates only when it is made.
#[derive(Clone, Debug)]
pub struct PriorityFairness {
    rule: PriorityFairnessRule,
    callers: SetCache<CallerUsage>,
    /// Calls of all callers, evicted ones included.
    requested: f64,
    accepted: f64,
    /// Fair share of one caller, in calls per window; infinite while all can be served.
    level: f64,
    step: u64,
}

impl PriorityFairness {
    /// Empty table: all claims are honoured.
    pub fn new(rule: PriorityFairnessRule) -> Self {
        let callers = SetCache::new(rule.entries.min(PriorityFairnessRule::MAX_ENTRIES));
        Self { rule, callers, requested: 0.0, accepted: 0.0, level: f64::INFINITY, step: 0 }
    }

    /// Counts an arrival, admitted or not. To be called once per call.
    pub fn arrived(&mut self, now: Nanos, key: u64) {
        self.advance(now);
        self.requested += 1.0;
        self.callers.get_or_insert(key, |usage| usage.requested).requested += 1.0;
    }

    /// Counts an admitted call, of any caller.
    pub fn accepted(&mut self, now: Nanos) {
        self.advance(now);
        self.accepted += 1.0;
    }

    /// Whether a caller's latest arrival may have the high priority that it claims; if so, the claim is counted. A call
    /// whose claim is not honoured has the lowest priority.
    pub fn honours(&mut self, now: Nanos, key: u64) -> bool {
        self.advance(now);
        let max_claims = self.max_claims();
        let usage = self.callers.get_or_insert(key, |usage| usage.requested);
        let is_alone = self.requested - usage.requested < 0.5;
        let is_honoured = is_alone || usage.claimed + 1.0 <= max_claims;
        if is_honoured {
            usage.claimed += 1.0;
        }
        is_honoured
    }

    /// Maximum number of claims of one caller per window; infinite while all callers can be served.
    pub fn max_claims(&self) -> f64 {
        (self.level * self.rule.slack).max(self.rule.min_claims)
    }

    /// Decays the counts and computes the level, if a step has ended.
    fn advance(&mut self, now: Nanos) {
        let step = now.0 / self.rule.window.0.div_ceil(STEPS_PER_WINDOW).max(1);
        if step <= self.step {
            return;
        }
        let kept = STEP_DECAY_FACTOR.powi(i32::try_from(step - self.step).unwrap_or(i32::MAX));
        self.step = step;
        self.level = self.find_level();
        let max_claims = self.max_claims();
        for usage in self.callers.values_mut() {
            let requested = usage.requested * kept;
            *usage = if requested < MIN_REQUESTED_CALLS {
                CallerUsage::default()
            } else {
                CallerUsage { requested, claimed: usage.claimed.min(max_claims) * kept }
            };
        }
        self.requested *= kept;
        self.accepted *= kept;
    }

    /// Level at which all shares add up to the accepted calls, within a tenth.
    fn find_level(&self) -> f64 {
        if self.accepted >= self.requested * 0.999 {
            return f64::INFINITY;
        }
        let mut classes = [(0_u32, 0.0); DEMAND_CLASSES];
        let (mut callers, mut known) = (0.0, 0.0);
        for usage in self.callers.values().filter(|usage| usage.requested > 0.0) {
            let class = &mut classes[class(usage.requested)];
            *class = (class.0 + 1, class.1 + usage.requested);
            callers += 1.0;
            known += usage.requested;
        }
        // Evicted callers are assumed to get the same fraction of their requests as all others.
        let mut remaining = self.accepted * (known / self.requested).min(1.0);
        for (count, requested) in classes.into_iter().filter(|class| class.0 > 0) {
            let count = f64::from(count);
            // All callers of a class count as its mean.
            if requested / count * callers >= remaining {
                return (remaining / callers).max(0.0);
            }
            remaining -= requested;
            callers -= count;
        }
        f64::INFINITY
    }
}

/// Class of a caller with N requested calls. The first bits of a float are nearly its logarithm: linear between the
/// powers of two.
fn class(requested: f64) -> usize {
    let bits = |of: f64| of.to_bits() >> (f64::MANTISSA_DIGITS - 1 - CLASS_BITS);
    ((bits(requested.max(1.0)) - bits(1.0)) as usize).min(DEMAND_CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    /// A caller: what it asks for in a second, and which share of that it claims to be urgent.
    #[derive(Clone, Copy)]
    struct CallerSimulation {
        per_s: f64,
        urgent: f64,
    }

    /// What became of it.
    #[derive(Clone, Copy, Default)]
    struct CallerTally {
        accepted: u32,
        claims: u32,
        honoured: u32,
    }

    /// A gate that takes `takes` calls a second, those that are urgent first and the lowest last, by tenths of a
    /// second.
    fn run(
        shares: &mut Option<PriorityFairness>,
        callers: &[CallerSimulation],
        takes: usize,
        seconds: u64,
        from_s: u64,
    ) -> Vec<CallerTally> {
        let mut rng = SeededRng::new(11, 4);
        let mut tallies = vec![CallerTally::default(); callers.len()];
        let mut due: Vec<f64> = callers.iter().map(|_| rng.exponential()).collect();
        for tenth in from_s * 10..(from_s + seconds) * 10 {
            let now = Nanos::from_millis(tenth * 100);
            let mut calls = Vec::new();
            for (key, caller) in callers.iter().enumerate() {
                due[key] -= caller.per_s / 10.0;
                while due[key] < 0.0 {
                    due[key] += rng.exponential();
                    calls.push((rng.bits(), key));
                }
            }
            calls.sort_unstable();
            let mut queue: Vec<(u8, u64, usize)> = Vec::new();
            for (order, key) in calls {
                let claims = rng.unit() <= callers[key].urgent;
                if let Some(shares) = shares {
                    shares.arrived(now, key as u64);
                }
                let honoured = claims && shares.as_mut().is_none_or(|shares| shares.honours(now, key as u64));
                tallies[key].claims += u32::from(claims);
                tallies[key].honoured += u32::from(honoured);
                queue.push((if honoured { 0 } else { 1 + u8::from(claims) }, order, key));
            }
            queue.sort_unstable();
            for (_, _, key) in queue.into_iter().take(takes / 10) {
                tallies[key].accepted += 1;
                if let Some(shares) = shares {
                    shares.accepted(now);
                }
            }
        }
        tallies
    }

    /// Twenty callers with one urgent call in ten, and one that says so of all.
    fn with_a_liar(honest_per_s: f64, liar_per_s: f64) -> Vec<CallerSimulation> {
        let mut callers = vec![CallerSimulation { per_s: honest_per_s, urgent: 0.1 }; 20];
        callers.push(CallerSimulation { per_s: liar_per_s, urgent: 1.0 });
        callers
    }

    /// The liar's part of all that was accepted, and the part of the honest ones' claims that was honoured.
    fn outcome(tallies: &[CallerTally]) -> (f64, f64) {
        let all: u32 = tallies.iter().map(|of| of.accepted).sum();
        let honest = &tallies[..20];
        let sum = |of: fn(&CallerTally) -> u32| f64::from(honest.iter().map(of).sum::<u32>());
        (f64::from(tallies[20].accepted) / f64::from(all), sum(|of| of.honoured) / sum(|of| of.claims))
    }

    #[test]
    fn a_liar_gets_its_share_at_most_and_honest_claims_are_honoured() {
        for (honest, liar) in [(140.0, 200.0), (140.0, 2000.0), (60.0, 500.0), (250.0, 100.0), (250.0, 5000.0)] {
            let callers = with_a_liar(honest, liar);
            let mut shares = Some(PriorityFairness::new(PriorityFairnessRule::default()));
            run(&mut shares, &callers, 1000, 20, 0);
            let (part, honoured) = outcome(&run(&mut shares, &callers, 1000, 60, 20));
            assert!(part <= 1.05 / 21.0, "{honest} and {liar} a second: {part}");
            assert!(part >= 0.9 / 21.0, "nor is anything of it taken away: {part}");
            assert!(honoured >= 0.99, "{honest} and {liar} a second: {honoured}");
            let (part, _) = outcome(&run(&mut None, &callers, 1000, 60, 0));
            assert!(part >= 1.9 / 21.0, "else it would gain: {part}");
        }
    }

    #[test]
    fn the_first_seconds_of_a_flood_are_the_liars_and_no_more() {
        let mut shares = Some(PriorityFairness::new(PriorityFairnessRule::default()));
        // All is well, the liar is alone with its claims, and nothing is held against it.
        let calm = run(&mut shares, &with_a_liar(30.0, 100.0), 1000, 30, 0);
        assert_eq!(calm[20].claims, calm[20].honoured);
        let flood = run(&mut shares, &with_a_liar(140.0, 2000.0), 1000, 10, 30);
        let (part, honoured) = outcome(&flood);
        assert!(part < 0.2 && honoured >= 0.99, "{part} and {honoured}");
        let (part, honoured) = outcome(&run(&mut shares, &with_a_liar(140.0, 2000.0), 1000, 30, 40));
        assert!((0.9 / 21.0..1.05 / 21.0).contains(&part) && honoured >= 0.99, "{part} and {honoured}");
    }

    #[test]
    fn who_is_alone_is_always_believed() {
        let mut shares = Some(PriorityFairness::new(PriorityFairnessRule::default()));
        let result = run(&mut shares, &[CallerSimulation { per_s: 3000.0, urgent: 1.0 }], 100, 30, 0)[0];
        assert_eq!(result.claims, result.honoured);
    }

    #[test]
    fn callers_that_are_forgotten_cost_nobody_a_claim() {
        let mut shares =
            PriorityFairness::new(PriorityFairnessRule { entries: 256, ..PriorityFairnessRule::default() });
        let mut rng = SeededRng::new(5, 5);
        let (mut claims, mut honoured) = (0, 0);
        for call in 0..400_000_u64 {
            let now = Nanos(call * 100_000);
            // Half of all calls come under names that are used once, the others from twenty callers.
            let key = if call % 2 == 0 { rng.bits() } else { call % 20 };
            shares.arrived(now, key);
            if key < 20 && rng.unit() < 0.1 {
                claims += 1;
                honoured += u32::from(shares.honours(now, key));
            }
            if call % 3 == 0 {
                shares.accepted(now);
            }
        }
        assert_eq!(shares.callers.values().count(), 256);
        assert!(claims > 10_000 && honoured * 100 >= claims * 99, "{honoured} of {claims}");
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_told_with_its_remedy() {
        let rule = PriorityFairnessRule::default();
        assert_eq!(rule.fault(), None);
        let faults = [
            PriorityFairnessRule { window: Nanos::ZERO, ..rule },
            PriorityFairnessRule { slack: 0.5, ..rule },
            PriorityFairnessRule { min_claims: -1.0, ..rule },
            PriorityFairnessRule { entries: 0, ..rule },
        ];
        let errors = faults.map(|rule| rule.fault().map(|fault| fault.to_string()).unwrap_or_default());
        assert_eq!(
            errors,
            [
                "a window of 0ns is too short; make it longer, e.g. 10s",
                "a slack of 0.5 would cut callers below their share; make it 1 at least",
                "a floor of -1 is not possible; make it 0 at least, e.g. 5",
                "0 callers cannot be remembered; make it 1 at least and 262144 at most, e.g. 4096",
            ]
        );
    }

    /// Fills what all ask for to the level, by halving.
    fn water_level(requested: &[u32], accepted: u32) -> f64 {
        let sum = |level: f64| requested.iter().map(|requested| f64::from(*requested).min(level)).sum::<f64>();
        let (mut low, mut high) = (0.0, f64::from(requested.iter().sum::<u32>()));
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if sum(middle) < f64::from(accepted) { low = middle } else { high = middle }
        }
        low
    }

    proptest! {
        #[test]
        fn the_level_is_that_of_water(
            requested in prop::collection::vec(prop_oneof![1_u32..10, 1_u32..1000], 1..16), share in 0.01_f64..0.99,
        ) {
            let mut shares = PriorityFairness::new(PriorityFairnessRule { min_claims: 0.0, ..PriorityFairnessRule::default() });
            for (key, requested) in requested.iter().enumerate() {
                (0..*requested).for_each(|_| shares.arrived(Nanos::ZERO, key as u64));
            }
            let accepted = (f64::from(requested.iter().sum::<u32>()) * share) as u32;
            (0..accepted).for_each(|_| shares.accepted(Nanos::ZERO));
            shares.advance(Nanos::SECOND);
            let (level, exact) = (shares.max_claims(), water_level(&requested, accepted));
            prop_assert!((level - exact).abs() <= 0.1 * exact, "{level} for {exact}");
        }

        #[test]
        fn no_rule_and_no_instants_upset_it(
            rule: (u64, f64, f64), steps in prop::collection::vec((any::<u64>(), any::<u64>()), 1..60),
        ) {
            let (window, slack, floor) = rule;
            let mut shares = PriorityFairness::new(PriorityFairnessRule { window: Nanos(window), slack, min_claims: floor, entries: 1 });
            for (now, key) in steps {
                shares.arrived(Nanos(now), key % 40);
                shares.honours(Nanos(now), key % 40);
                shares.accepted(Nanos(now / 2));
            }
        }
    }
}
