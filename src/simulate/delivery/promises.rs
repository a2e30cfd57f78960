//! What is promised of the sender, as numbers.

use super::{Headers, RetryAfter, Service, World};
use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::limit::{Model, Window};
use crate::decide::window::{Limit, Rules, Unit};

pub(super) fn delay(text: &str) -> Delay {
    Delay::read(text).expect(text)
}

pub(super) fn window(text: &str) -> Window {
    Window::read(text, Model::SlidingLog).expect(text)
}

/// A service with this limit, whose sender was told of `declared`.
pub(super) fn world(limit: &str, declared: &[&str]) -> World {
    let limits = declared.iter().map(|text| Limit { window: window(text), unit: Unit::Requests });
    World {
        service: Service::new(window(limit)),
        rules: Rules { limits: limits.collect(), ..Rules::default() },
        in_flight: 256,
        jobs: 3000,
        until: Nanos::from_secs(600),
        way_in: delay("2ms..20ms"),
        way_out: delay("2ms..20ms"),
        work: delay("10ms..50ms"),
        stalls: None,
    }
}

/// How much longer the sender took than the oracle, and how many it had rejected.
fn against_oracle(name: &str, world: &World) -> (f64, usize) {
    let (delivered, oracle) = (world.deliver(1), world.oracle(1));
    assert_eq!(oracle.accepted.len() as u64, world.jobs, "{name}: the oracle delivers all");
    let (took, least) = (delivered.ended.as_secs_f64(), oracle.ended.as_secs_f64());
    let (accepted, rejected) = (delivered.accepted.len(), delivered.rejected.len());
    println!("{name}: {accepted} in {took:.2} s, the oracle {least:.2} s, {rejected} rejected");
    let left = world.jobs - accepted as u64;
    (if left > 0 { f64::INFINITY } else { took / least }, rejected)
}

#[test]
fn a_difference_that_many_responses_report_is_booked_once() {
    let declared = ["bucket:2000/10s"];
    let mut slow = Vec::new();
    for headers in [Headers::Full, Headers::Draft, Headers::Remaining] {
        for (case, used, neighbour, weight, limit) in [
            ("half used", 1000, None, 1, "bucket:2000/10s"),
            ("neighbour", 1000, Some(Nanos::from_millis(20)), 1, "bucket:2000/10s"),
            ("declared too high", 0, None, 1, "bucket:1000/10s"),
            ("weight too low", 0, None, 2, "bucket:2000/10s"),
        ] {
            let mut world = world(limit, &declared);
            (world.service.used, world.service.neighbour) = (used, neighbour);
            (world.service.weight, world.service.headers) = (weight, headers);
            world.service.retry_after = RetryAfter::Seconds;
            let name = format!("{headers:?}, {case}");
            let (ratio, rejected) = against_oracle(&name, &world);
            // Rejections are learnt from, see below.
            if rejected == 0 && ratio > 1.05 {
                slow.push(format!("{name}: {ratio:.2}, {rejected} rejected"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
