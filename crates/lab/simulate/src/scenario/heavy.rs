//! Scenarios with few calls that take most of the time.

use super::noise::ms;
use crate::world::{CallerKind, DeadlineSignal, KindWork, Scenario, ScenarioPhase, TimeRange};
use weir_base::Nanos;
use weir_resilience::admission::Priority;
use weir_workload::delay::{Delay, DelayRange};

/// Time of a heavy call, as a multiple of the others': with 2% of the calls that is 60% of the time.
pub(super) const HEAVY_FACTOR: f64 = 73.5;
/// Time from which the calls are heavy.
const HEAVY_FROM: Nanos = Nanos::from_secs(20);
/// Time from which they are as others again.
const HEAVY_UNTIL: Nanos = Nanos::from_secs(80);

/// 600 calls per second of 20 to 80 ms at 50 slots, of which they need 30, and 12 others per second. Those take 3.7 s for
/// a minute, and then need 45 slots.
pub(crate) fn heavy(mut scenario: Scenario, work: KindWork) -> Scenario {
    scenario.upstream.service = Delay::Uniform(DelayRange { low: ms(20), high: ms(80) });
    let light = CallerKind {
        weight: 0.98,
        deadline_range: TimeRange::constant(Nanos::SECOND),
        deadline_signal: DeadlineSignal::Sent,
        work: KindWork { routes: 1, ..KindWork::default() },
    };
    let patient = TimeRange::constant(Nanos::from_secs(20));
    scenario.callers.kinds = vec![light, CallerKind { weight: 0.02, deadline_range: patient, work, ..light }];
    let mut scenario = scenario.with_phase("all", 0.6122, 0.6122, Nanos::from_secs(120));
    let phase = |name: &str, from, to| ScenarioPhase { name: name.to_owned(), from, to };
    // The last heavy calls take 6 s.
    let after = HEAVY_UNTIL + Nanos::from_secs(10);
    scenario.phases = vec![
        phase("before", scenario.warmup, HEAVY_FROM),
        phase("heavy", HEAVY_FROM, HEAVY_UNTIL),
        phase("after", after, scenario.length()),
    ];
    scenario
}

/// Calls that are heavy for a minute.
pub(crate) fn heavy_work(route: u64, callers: u64) -> KindWork {
    KindWork {
        route,
        routes: 1,
        callers,
        factor: HEAVY_FACTOR,
        heavy_from: HEAVY_FROM,
        heavy_until: HEAVY_UNTIL,
        priority: None,
    }
}

pub(super) fn heavy_route(scenario: Scenario) -> Scenario {
    heavy(scenario, heavy_work(1, 100))
}

pub(super) fn heavy_caller(scenario: Scenario) -> Scenario {
    heavy(scenario, KindWork { priority: Some(Priority::Critical), ..heavy_work(0, 1) })
}
