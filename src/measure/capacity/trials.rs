//! The whole search, on services whose capacity is known by construction, in virtual time.

use super::search::{Bracket, Search, SearchRange, Trial, TrialResult};
use super::step::{CapacityStep, StepLength};
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::measure::recorder::Interval;
use crate::measure::slo::SloCriterion;

/// Slots of a fixed time each, first come, first served; Poisson arrivals.
#[derive(Clone, Copy, Debug)]
struct Service {
    slots: usize,
    time_s: f64,
    /// The highest rate at which 1% of requests at most take longer than [`LIMIT_S`] in the long run. A little below
    /// slots / time, for arrivals are random; `the_truth_is_true` passes it.
    capacity_per_s: f64,
}

const SERVICES: [Service; 3] = [
    Service { slots: 10, time_s: 0.020, capacity_per_s: 487.5 },
    Service { slots: 4, time_s: 0.005, capacity_per_s: 788.3 },
    Service { slots: 50, time_s: 0.050, capacity_per_s: 984.8 },
];
const LIMIT_S: f64 = 0.2;

/// Requests as they come and go.
struct SimulatedTraffic {
    service: Service,
    rate: f64,
    dice: Dice,
    next: f64,
    /// When each slot is free; with equal times they become free in the order in which they were taken.
    free: Vec<f64>,
    started: usize,
}

impl Service {
    fn traffic(self, rate: f64, dice: Dice) -> SimulatedTraffic {
        SimulatedTraffic { service: self, rate, dice, next: 0.0, free: vec![0.0; self.slots], started: 0 }
    }

    /// The share of requests later than the limit at this rate, over half an hour.
    fn late_fraction(self, rate: f64) -> f64 {
        let requests = self.traffic(rate, Dice::new(1, 1)).take_while(|(start, _)| *start < 1800.0);
        let (late, all) = requests
            .fold((0_u64, 0_u64), |(late, all), (start, done)| (late + u64::from(done - start > LIMIT_S), all + 1));
        late as f64 / all as f64
    }

    /// A step, as the edge makes it: the first second is cut off.
    fn step(self, trial: Trial, seed: u64) -> (TrialResult, f64, u64) {
        let demands = [
            SloCriterion::InTime { limit: Nanos::from_secs_f64(LIMIT_S), allowed: 0.01 },
            SloCriterion::Ok { allowed: 0.01 },
        ];
        let rate = trial.load;
        let mut traffic = self.traffic(rate, Dice::new(seed, 7)).peekable();
        let mut step: Option<CapacityStep> = None;
        let mut open: Vec<(f64, f64)> = Vec::new();
        for second in 1.. {
            let end = second as f64;
            while let Some(request) = traffic.next_if(|(start, _)| *start < end) {
                open.push(request);
            }
            let mut seen = Interval::default();
            open.retain(|(start, done)| {
                if *done < end {
                    seen.ok += 1;
                    seen.response.record(Nanos::from_secs_f64(done - start));
                }
                *done >= end
            });
            seen.in_flight = open.len() as u64;
            let Some(step) = &mut step else {
                step = Some(CapacityStep::new(
                    &demands,
                    Some(rate),
                    trial.precision,
                    StepLength { min_s: 3, max_s: 30 },
                    seen.in_flight,
                ));
                continue;
            };
            if let Some(decision) = step.add(&seen, trial.thorough) {
                return (decision.end(), step.sustained(rate), second);
            }
        }
        unreachable!("a step ends");
    }

    fn find(self, seed: u64) -> (Bracket, u64) {
        // From another load each time, so that others are tried.
        let start = 100.0 * (1.0 + seed as f64 * 0.618 % 1.0);
        let range = SearchRange {
            start,
            min_load: 1.0,
            max_load: 1e6,
            precision: 0.03,
            integer: false,
            min_gap: 1.0,
            step_s: 30.0,
        };
        let mut search = Search::new(range);
        let mut seconds = 0;
        while let Some(trial) = search.next() {
            let (end, surely, took) = self.step(trial, seed * 1000 + seconds);
            seconds += took;
            search.record(trial, end, surely);
        }
        (search.bracket(), seconds)
    }
}

impl Iterator for SimulatedTraffic {
    /// When a request starts, and when it is answered.
    type Item = (f64, f64);

    fn next(&mut self) -> Option<(f64, f64)> {
        self.next += self.dice.exponential() / self.rate;
        let slot = &mut self.free[self.started % self.service.slots];
        *slot = slot.max(self.next) + self.service.time_s;
        self.started += 1;
        Some((self.next, *slot))
    }
}

#[test]
fn the_truth_is_true() {
    for service in SERVICES {
        let late = |part: f64| service.late_fraction(part * service.capacity_per_s);
        assert!(late(0.995) < 0.01 && late(1.005) > 0.01, "{service:?}: {} {}", late(0.995), late(1.005));
    }
}

/// Of so many searches, how many have the capacity between their bounds and neither further from it than 5%; and how long
/// they take on average.
fn true_and_close(service: Service, searches: u64) -> (u64, u64) {
    let (mut good, mut seconds) = (0, 0);
    for seed in 0..searches {
        let (bracket, took) = service.find(seed);
        let part = |load: Option<f64>| load.unwrap_or(f64::NAN) / service.capacity_per_s;
        good += u64::from((0.95..=1.0).contains(&part(bracket.passes)) && (1.0..=1.05).contains(&part(bracket.fails)));
        seconds += took;
    }
    (good, seconds / searches)
}

#[test]
fn nineteen_of_twenty_searches_have_the_capacity_between_bounds_that_are_within_5_percent_of_it() {
    // The fewer requests, the less sure: the first one gets the most searches.
    for (service, searches) in SERVICES.into_iter().zip([500, 100, 100]) {
        let (good, seconds) = true_and_close(service, searches);
        assert!(20 * good >= 19 * searches && seconds < 180, "{service:?}: {good} good, {seconds} s each");
    }
}

#[test]
fn a_light_load_holds_and_a_heavy_one_fails_within_seconds() {
    for service in SERVICES {
        let trial = |part: f64| Trial { load: part * service.capacity_per_s, thorough: false, precision: 0.1 };
        let step = |part: f64| service.step(trial(part), 3);
        let (light, heavy) = (step(0.7), step(1.5));
        assert!(light.0 == TrialResult::Passes && light.2 <= 6, "{service:?}: {light:?}");
        assert!(heavy.0 == TrialResult::Fails && heavy.2 <= 5, "{service:?}: {heavy:?}");
    }
}
