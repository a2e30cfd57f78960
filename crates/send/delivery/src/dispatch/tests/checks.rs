//! Responses that fail the check of their content.

use super::fates::{DispatchDriver, ms, rules};
use crate::dispatch::{DispatchAction, DispatchFailure, Event, ResponseClass};

#[test]
fn a_failed_check_counts_as_an_attempt_of_a_job_whose_host_is_up() {
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    // As many as would open the circuit of a host that is down.
    (0..20).for_each(|job| drop(world.submit(ms(0), job)));
    let why = DispatchFailure::Response(ResponseClass::FailedCheck);
    for job in 0..20 {
        let actions = world.respond(ms(1), job, 1, ResponseClass::FailedCheck);
        let is_down = actions.iter().any(|action| action.host_down().is_some());
        let reason = actions.iter().find_map(|action| match action {
            DispatchAction::ScheduleRetry { job: of, reason, .. } if *of == job => Some(*reason),
            _ => None,
        });
        assert_eq!((reason, is_down), (Some(why), false), "{actions:?}");
    }
    let mut world = DispatchDriver::new(rules("100/1s"), 1);
    world.submit(ms(0), 7);
    let mut now = ms(0);
    for attempt in 1..3 {
        let retrying = world.respond(now, 7, attempt, ResponseClass::FailedCheck);
        let [DispatchAction::ScheduleRetry { until, .. }] = retrying[..] else { panic!("{retrying:?}") };
        world.on(until, Event::Tick);
        now = until + ms(1);
    }
    let buried = world.respond(now, 7, 3, ResponseClass::FailedCheck);
    assert_eq!(buried, [DispatchAction::DeadLetter { job: 7, reason: why }], "its attempts are limited");
}
