//! Simulation of the whole search on services whose capacity is known by construction.

use crate::capacity::search::tests::RANGE;
use crate::capacity::search::{Bracket, Search, SearchRange, Trial, TrialResult};
use crate::capacity::step::{CapacityStep, StepLength};
use crate::recorder::Interval;
use crate::slo::{SloCriterion, TimeKind};
use weir_base::Nanos;
use weir_base::rng::SeededRng;

/// Service of slots with constant service time, first come, first served; Poisson arrivals.
#[derive(Clone, Copy, Debug)]
struct Service {
    slots: usize,
    time_s: f64,
    /// Highest rate at which at most 1% of requests take longer than [`LIMIT_S`] in the long run. Slightly below
    /// slots / time, because arrivals are random; `capacities_are_correct` checks it.
    capacity_per_s: f64,
}

const SERVICES: [Service; 3] = [
    Service { slots: 10, time_s: 0.020, capacity_per_s: 487.5 },
    Service { slots: 4, time_s: 0.005, capacity_per_s: 788.3 },
    Service { slots: 50, time_s: 0.050, capacity_per_s: 984.8 },
];
const LIMIT_S: f64 = 0.2;

/// Simulated requests.
struct SimulatedTraffic {
    service: Service,
    rate: f64,
    rng: SeededRng,
    next: f64,
    /// Time when each slot becomes free; with equal service times in the order in which they were taken.
    free: Vec<f64>,
    started: usize,
}

impl Service {
    fn traffic(self, rate: f64, rng: SeededRng) -> SimulatedTraffic {
        SimulatedTraffic { service: self, rate, rng, next: 0.0, free: vec![0.0; self.slots], started: 0 }
    }

    /// Fraction of requests later than the limit at this rate, over half an hour.
    fn late_fraction(self, rate: f64) -> f64 {
        let requests = self.traffic(rate, SeededRng::new(1, 1)).take_while(|(start, _)| *start < 1800.0);
        let (late, all) = requests
            .fold((0_u64, 0_u64), |(late, all), (start, done)| (late + u64::from(done - start > LIMIT_S), all + 1));
        late as f64 / all as f64
    }

    /// Step as in production: the first second is excluded.
    fn step(self, trial: Trial, seed: u64) -> (TrialResult, f64, u64) {
        let demands = [
            SloCriterion::InTime { kind: TimeKind::Response, limit: Nanos::from_secs_f64(LIMIT_S), allowed: 0.01 },
            SloCriterion::Ok { allowed: 0.01 },
        ];
        let rate = trial.load;
        let mut traffic = self.traffic(rate, SeededRng::new(seed, 7)).peekable();
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
        // Another start for each seed, so that other loads are tried.
        let start = 100.0 * (1.0 + seed as f64 * 0.618 % 1.0);
        let mut search = Search::new(SearchRange { start, ..RANGE });
        let mut seconds = 0;
        while let Some(trial) = search.next() {
            let (end, sustained, took) = self.step(trial, seed * 1000 + seconds);
            seconds += took;
            search.record(trial, end, sustained);
        }
        (search.bracket(), seconds)
    }
}

impl Iterator for SimulatedTraffic {
    /// Start and end of a request, in seconds.
    type Item = (f64, f64);

    fn next(&mut self) -> Option<(f64, f64)> {
        self.next += self.rng.exponential() / self.rate;
        let slot = &mut self.free[self.started % self.service.slots];
        *slot = slot.max(self.next) + self.service.time_s;
        self.started += 1;
        Some((self.next, *slot))
    }
}

#[test]
fn capacities_are_correct() {
    for service in SERVICES {
        let late = |part: f64| service.late_fraction(part * service.capacity_per_s);
        assert!(late(0.995) < 0.01 && late(1.005) > 0.01, "{service:?}: {} {}", late(0.995), late(1.005));
    }
}

/// Number of searches with the capacity between bounds that are within 5% of it, and their mean length in seconds.
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
    // The service with the fewest requests is the least certain, so it has the most searches.
    for (service, searches) in SERVICES.into_iter().zip([500, 100, 100]) {
        let (good, seconds) = true_and_close(service, searches);
        assert!(20 * good >= 19 * searches && seconds < 180, "{service:?}: {good} good, {seconds} s each");
    }
}

#[test]
fn a_light_load_passes_and_a_heavy_one_fails_within_seconds() {
    for service in SERVICES {
        let trial = |part: f64| Trial { load: part * service.capacity_per_s, thorough: false, precision: 0.1 };
        let step = |part: f64| service.step(trial(part), 3);
        let (light, heavy) = (step(0.7), step(1.5));
        assert!(light.0 == TrialResult::Passes && light.2 <= 6, "{service:?}: {light:?}");
        assert!(heavy.0 == TrialResult::Fails && heavy.2 <= 5, "{service:?}: {heavy:?}");
    }
}
