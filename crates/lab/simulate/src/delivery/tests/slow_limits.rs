//! Undeclared limits of one request per second or fewer.

use super::acceptance::{delay, window, world};
use crate::delivery::{DeliveryScenario, HeaderStyle, RetryAfterStyle};
use weir_base::Nanos;

/// The fraction of the oracle's requests after `begin`, and what was rejected after that and in all.
fn learnt(name: &str, world: &DeliveryScenario, begin: Nanos) -> (f64, f64, usize) {
    let (delivered, oracle) = (world.deliver(1), world.oracle(1));
    let (got, most) = (delivered.accepted_within(begin, world.end), oracle.accepted_within(begin, world.end));
    let share = got as f64 / most as f64;
    let (late, all) = (delivered.rejected_fraction_from(begin), delivered.rejected_fraction_from(Nanos::ZERO));
    println!(
        "{name}: {got} of {most}: {:.1} %; rejected {:.2} %, in all {:.2} %: {}",
        100.0 * share,
        100.0 * late,
        100.0 * all,
        delivered.rejected.len(),
    );
    (share, late, delivered.rejected.len())
}

#[test]
fn slow_limits_are_learnt_too() {
    let mut missed = Vec::new();
    for limit in [
        "bucket:1/1s",
        "log:1/1s",
        "aligned:1/1s",
        "bucket:1/5s",
        "log:1/5s",
        "aligned:1/5s",
        "bucket:10/1m",
        "log:10/1m",
        "aligned:10/1m",
        "counter:10/1m",
        "bucket:60/1m",
        "log:60/1m",
        "aligned:60/1m",
    ] {
        for retry_after in [RetryAfterStyle::None, RetryAfterStyle::Exact, RetryAfterStyle::Seconds] {
            for headers in [HeaderStyle::None, HeaderStyle::Full] {
                let mut world = world(limit, &[]);
                (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(3600));
                (world.service.retry_after, world.service.headers) = (retry_after, headers);
                world.service_time = delay("10ms..50ms");
                let per = window(limit).per();
                let begin = Nanos(10 * per.0).max(Nanos::from_secs(10));
                let name = format!("{limit}, Retry-After {retry_after:?}, headers {headers:?}");
                let (share, late, all) = learnt(&name, &world, begin);
                if share < 0.9 || late > 0.02 || all > 90 {
                    missed.push(format!("{name}: {share:.3}, {late:.3}, {all}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}
