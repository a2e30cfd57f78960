//! What is promised of the sender, as numbers.

use crate::delivery::{DeliveryScenario, HeaderStyle, RegularStalls, RetryAfterStyle, Service};
use weir_base::Nanos;
use weir_delivery::key_window::{KeyLimit, KeyRules};
use weir_limits::limit_unit::LimitUnit;
use weir_limits::models::{LimitModel, LimitWindow};
use weir_workload::delay::Delay;

pub(crate) fn delay(text: &str) -> Delay {
    Delay::read(text).expect(text)
}

pub(crate) fn window(text: &str) -> LimitWindow {
    LimitWindow::read(text, LimitModel::SlidingLog).expect(text)
}

/// A service with this limit, whose sender was told of `declared`.
pub(crate) fn world(limit: &str, declared: &[&str]) -> DeliveryScenario {
    let limits = declared.iter().map(|text| KeyLimit { window: window(text), unit: LimitUnit::Requests });
    DeliveryScenario {
        service: Service::new(window(limit)),
        rules: KeyRules { limits: limits.collect(), ..KeyRules::default() },
        in_flight: 256,
        jobs: 3000,
        end: Nanos::from_secs(600),
        latency_in: delay("2ms..20ms"),
        latency_out: delay("2ms..20ms"),
        service_time: delay("10ms..50ms"),
        stalls: None,
    }
}

/// How much longer the sender took than the oracle, and how many it had rejected.
fn against_oracle(name: &str, world: &DeliveryScenario, seed: u64) -> (f64, usize) {
    let (delivered, oracle) = (world.deliver(seed), world.oracle(seed));
    assert_eq!(oracle.accepted.len() as u64, world.jobs, "{name}: the oracle delivers all");
    let (took, least) = (delivered.last_accepted_at.as_secs_f64(), oracle.last_accepted_at.as_secs_f64());
    let (accepted, rejected) = (delivered.accepted.len(), delivered.rejected.len());
    println!("{name}: {accepted} in {took:.2} s, the oracle {least:.2} s, {rejected} rejected");
    let left = world.jobs - accepted as u64;
    (if left > 0 { f64::INFINITY } else { took / least }, rejected)
}

#[test]
fn a_difference_that_many_responses_report_is_booked_once() {
    let declared = ["bucket:2000/10s"];
    let mut slow = Vec::new();
    for headers in [HeaderStyle::Full, HeaderStyle::Draft, HeaderStyle::Remaining] {
        for (case, used, neighbour, weight, limit) in [
            ("half used", 1000, None, 1, "bucket:2000/10s"),
            ("neighbour", 1000, Some(Nanos::from_millis(20)), 1, "bucket:2000/10s"),
            ("declared too high", 0, None, 1, "bucket:1000/10s"),
            ("weight too low", 0, None, 2, "bucket:2000/10s"),
        ] {
            let mut world = world(limit, &declared);
            (world.service.initial_used, world.service.neighbour) = (used, neighbour);
            (world.service.weight, world.service.headers) = (weight, headers);
            world.service.retry_after = RetryAfterStyle::Seconds;
            let name = format!("{headers:?}, {case}");
            let runs = [1, 2, 3].map(|seed| against_oracle(&name, &world, seed));
            let (ratio, rejected) = runs.into_iter().fold((0.0, 0), |(a, b), (c, d)| (f64::max(a, c), b.max(d)));
            if ratio > 1.05 || rejected > 180 {
                slow.push(format!("{name}: {ratio:.2}, {rejected} rejected"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

/// Two minutes without any declared limit: what fraction of the oracle's requests after the first 10 s, and how many
/// were rejected after that, and in all.
fn learnt(name: &str, world: &DeliveryScenario, seed: u64) -> (f64, f64, f64) {
    let (delivered, oracle) = (world.deliver(seed), world.oracle(seed));
    let begin = Nanos::from_secs(10);
    let got = delivered.accepted_within(begin, world.end);
    let mut most = oracle.accepted_within(begin, world.end);
    if let Some(gap) = world.service.neighbour {
        // The oracle takes all before others come; what they ask for is theirs.
        let limit = world.service.limits[0];
        let rate = limit.limit() as f64 / limit.per().as_secs_f64() - 1.0 / gap.as_secs_f64();
        most = most.min((rate * (world.end - begin).as_secs_f64()) as usize);
    }
    let (late, all) = (delivered.rejected_fraction_from(begin), delivered.rejected_fraction_from(Nanos::ZERO));
    let share = got as f64 / most as f64;
    println!(
        "{name}, seed {seed}: {got} of {most}: {:.1} %; rejected {:.2} %, in all {:.2} %",
        100.0 * share,
        100.0 * late,
        100.0 * all
    );
    (share, late, all)
}

#[test]
fn without_declared_limits_the_pace_is_learnt() {
    let mut missed = Vec::new();
    for (limit, work) in [
        ("bucket:200/10s", "10ms..50ms"),
        ("bucket:2000/10s", "10ms..50ms"),
        ("bucket:5/250ms", "10ms..50ms"),
        ("bucket:100/1s", "1s..3s"),
        ("aligned:20/1s", "10ms..50ms"),
        ("aligned:200/10s", "10ms..50ms"),
        ("aligned:1000/1s", "10ms..50ms"),
        ("log:20/1s", "10ms..50ms"),
        ("log:200/10s", "10ms..50ms"),
        ("log:1000/1s", "10ms..50ms"),
        ("counter:200/10s", "10ms..50ms"),
        ("concurrency:5", "100ms..300ms"),
        ("concurrency:20", "100ms..300ms"),
        ("concurrency:100", "100ms..300ms"),
        ("concurrency:20", "1s..3s"),
    ] {
        for retry_after in [RetryAfterStyle::None, RetryAfterStyle::Exact, RetryAfterStyle::Seconds] {
            let concurrency = limit.starts_with("conc");
            if concurrency && retry_after != RetryAfterStyle::None {
                continue;
            }
            for seed in 1..=3 {
                let mut world = world(limit, &[]);
                (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(120));
                world.service_time = delay(work);
                if concurrency {
                    (world.latency_in, world.latency_out) = (delay("1ms..4ms"), delay("1ms..4ms"));
                }
                world.service.retry_after = retry_after;
                let name = format!("{limit}, work {work}, Retry-After {retry_after:?}");
                let (share, late, all) = learnt(&name, &world, seed);
                if share < 0.9 || late > 0.02 || all > 0.05 {
                    missed.push(name);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Half of what was declared, or another user of it, and nothing is reported but rejections.
#[test]
fn a_declared_limit_that_is_too_high_is_mended_by_rejections_alone() {
    let mut missed = Vec::new();
    for (limit, declared, gap) in [
        ("bucket:1000/10s", "bucket:2000/10s", None),
        ("bucket:2000/10s", "bucket:2000/10s", Some(20)),
        ("bucket:200/1s", "bucket:2000/1s", None),
        ("bucket:100/1s", "bucket:200/1s", None),
        ("log:1000/10s", "log:2000/10s", None),
        ("log:2000/10s", "log:2000/10s", Some(20)),
        ("log:500/1s", "log:1000/1s", None),
        ("aligned:1000/10s", "aligned:2000/10s", None),
        ("counter:1000/10s", "counter:2000/10s", None),
        ("counter:2000/10s", "counter:2000/10s", None),
    ] {
        for retry_after in [RetryAfterStyle::None, RetryAfterStyle::Exact, RetryAfterStyle::Seconds] {
            for seed in 1..=2 {
                let mut world = world(limit, &[declared]);
                (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(120));
                world.service.neighbour = gap.map(Nanos::from_millis);
                world.service.retry_after = retry_after;
                let name = format!("{limit}, declared {declared}, every {gap:?} ms, Retry-After {retry_after:?}");
                let (share, late, _) = learnt(&name, &world, seed);
                // A counter that is exceeded looks back on two windows.
                let least = if limit.starts_with("counter") && limit != declared { 0.8 } else { 0.9 };
                if share < least || late > 0.05 {
                    missed.push(format!("{name}: {share:.3}, {late:.3}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Limits that the service reports, and the sender has not declared, cost nothing and save rejections.
#[test]
fn reported_limits_are_used_where_none_is_declared() {
    let mut missed = Vec::new();
    for limit in ["bucket:200/10s", "bucket:2000/10s", "aligned:200/10s", "log:200/10s", "log:1000/1s"] {
        for headers in [HeaderStyle::Full, HeaderStyle::Draft, HeaderStyle::Remaining] {
            for retry_after in [RetryAfterStyle::None, RetryAfterStyle::Seconds] {
                let mut world = world(limit, &[]);
                (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(120));
                (world.service.headers, world.service.retry_after) = (headers, retry_after);
                let name = format!("{limit}, {headers:?}, Retry-After {retry_after:?}");
                let (share, late, all) = learnt(&name, &world, 1);
                if share < 0.9 || late > 0.02 || all > 0.05 {
                    missed.push(name);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Half of the limit for a while; a neighbour; a machine that stands still.
#[test]
fn a_pace_follows_what_the_service_allows() {
    let mut missed = Vec::new();
    for (limit, lower) in
        [("bucket:200/1s", "bucket:100/1s"), ("log:200/1s", "log:100/1s"), ("aligned:500/10s", "aligned:250/10s")]
    {
        for case in ["half, then all", "neighbour", "stalls"] {
            let mut world = world(limit, &[]);
            (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(180));
            match case {
                "half, then all" => {
                    world.service.limit_changes =
                        vec![(Nanos::from_secs(60), vec![window(lower)]), (Nanos::from_secs(90), vec![window(limit)])];
                }
                "neighbour" => world.service.neighbour = Some(Nanos::from_millis(40)),
                _ => {
                    world.stalls =
                        Some(RegularStalls { every: Nanos::from_millis(200), length: Nanos::from_millis(20) });
                }
            }
            let name = format!("{limit}, {case}");
            let (share, late, all) = learnt(&name, &world, 1);
            // A long window that comes back is found in steps.
            let least = if limit.ends_with("10s") && case != "stalls" { 0.8 } else { 0.9 };
            if share < least || late > 0.02 || all > 0.05 {
                missed.push(name);
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}

/// Limits that are declared as they are, too high, or with weights that are too low; a neighbour; with and without
/// reports.
#[test]
fn with_declared_limits_a_sender_is_idle_no_longer_than_the_service_needs_to_be_free() {
    let mut missed = Vec::new();
    for model in ["bucket", "log", "aligned", "counter"] {
        for (limit, declared, weight, gap) in [
            ("20/1s", "20/1s", 1, None),
            ("20/1s", "40/1s", 1, None),
            ("20/1s", "20/1s", 2, None),
            ("20/1s", "20/1s", 1, Some(100)),
            ("2000/10s", "2000/10s", 1, None),
            ("1000/10s", "2000/10s", 1, None),
            ("2000/10s", "2000/10s", 2, None),
            ("2000/10s", "2000/10s", 1, Some(20)),
        ] {
            for headers in [HeaderStyle::None, HeaderStyle::Full, HeaderStyle::Draft, HeaderStyle::Remaining] {
                let mut world = world(&format!("{model}:{limit}"), &[&format!("{model}:{declared}")]);
                (world.jobs, world.end) = (u64::MAX, Nanos::from_secs(60));
                (world.service.weight, world.service.headers) = (weight, headers);
                world.service.neighbour = gap.map(Nanos::from_millis);
                let idle = (1..=2).map(|seed| world.deliver(seed).idle).max().unwrap_or_default();
                let name =
                    format!("{model}:{limit}, declared {declared}, weight {weight}, {gap:?}, {headers:?}: {idle}");
                println!("{name}");
                // The way in, the tick of the service's clock, and one and a half of the short windows for waits that
                // nothing was said of.
                if idle > Nanos::from_millis(1600) {
                    missed.push(name);
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} missed: {missed:#?}", missed.len());
}
