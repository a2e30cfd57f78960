//! Load balancing of attempts, and concurrency limits of upstreams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, Method};

use crate::calling::{calling, get, ms, origin, upstream, waiting};
use weir_base::Nanos;
use weir_call::{CallEngine, CallFailureReason, CallPlan, CallRequest, Success, Upstream, UpstreamHost};
use weir_machine::clock::Clock;
use weir_net::client::OutgoingBody;
use weir_resilience::admission::RejectionReason;
use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};
use weir_retry::backoff::Backoff;
use weir_retry::policy::RetryPolicy;
use weir_testing::{Reply, Server};

fn retrying(times: u32) -> Policy {
    let backoff = Backoff { min: ms(1), max: ms(2) };
    Policy {
        retry: RetryPolicy { max_retries: times, backoff, ..RetryPolicy::default() },
        budget: None,
        ..Policy::default()
    }
}

fn host((server, weight): &(&Server, u32)) -> UpstreamHost {
    UpstreamHost { origin: origin(&server.url("/")), weight: *weight }
}

fn hosts(of: &[(&Server, u32)], health: OutlierRule) -> Arc<Upstream> {
    Arc::new(Upstream::new(of.iter().map(host).collect(), BalancePolicy::RoundRobin, health))
}

async fn calls(engine: &CallEngine, plan: &CallPlan, count: usize) -> usize {
    let mut good = 0;
    for _ in 0..count {
        good += usize::from(get(engine, plan).await.is_ok());
    }
    good
}

#[test]
fn attempts_are_balanced_by_weight() {
    let servers = [Server::hello(), Server::hello(), Server::hello()];
    let of = [(&servers[0], 1), (&servers[1], 2), (&servers[2], 5)];
    let plan = CallPlan::new(Policy::default(), Success::default(), hosts(&of, OutlierRule::default()));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 80).await, 80);
        assert_eq!(servers.each_ref().map(Server::requests), [10, 20, 50]);
    });
}

#[test]
fn a_retry_goes_to_another_host() {
    let (bad, good) = (Server::start(|_| Reply::status(503, "")), Server::hello());
    // Round robin alone would send the second attempt to the heavy one again.
    let health = OutlierRule { consecutive_failures: 0, ..OutlierRule::default() };
    let plan = CallPlan::new(retrying(1), Success::default(), hosts(&[(&bad, 10), (&good, 1)], health));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 22).await, 22);
        assert_eq!((bad.requests(), good.requests()), (20, 22));
    });
}

fn ejected(plan: &CallPlan, engine: &CallEngine) -> Vec<bool> {
    plan.upstream.hosts(engine.timer().now()).iter().map(|host| host.is_ejected).collect()
}

#[test]
fn a_failing_host_is_ejected_and_returns() {
    let well = Arc::new(Mutex::new(false));
    let ill = Server::start({
        let well = Arc::clone(&well);
        move |_| if *well.lock().unwrap() { Reply::ok("") } else { Reply::nothing().close() }
    });
    let good = Server::hello();
    let health = OutlierRule {
        consecutive_failures: 3,
        base_ejection: ms(5000),
        max_ejected_fraction: 0.5,
        ..OutlierRule::default()
    };
    let plan = CallPlan::new(Policy::default(), Success::default(), hosts(&[(&ill, 1), (&good, 1)], health));
    let out = |engine: &CallEngine| ejected(&plan, engine);
    calling(async |engine| {
        let good = calls(&engine, &plan, 30).await;
        assert_eq!(good, 27, "after three failures nothing goes there");
        assert_eq!(out(&engine), [true, false]);
        *well.lock().unwrap() = true;
        engine.timer().sleep(ms(5000)).await;
        assert_eq!(calls(&engine, &plan, 30).await, 30);
        assert_eq!(out(&engine), [false, false]);
        assert!(ill.requests() > 10, "{}", ill.requests());
    });
}

#[test]
fn a_host_that_hangs_until_the_deadline_is_ejected() {
    let (hangs, good) = (Server::start(|_| Reply::nothing()), Server::hello());
    let health = OutlierRule {
        consecutive_failures: 2,
        base_ejection: Nanos::from_secs(100),
        max_ejected_fraction: 0.5,
        ..OutlierRule::default()
    };
    let policy = Policy { deadline: ms(4000), ..Policy::default() };
    let plan = CallPlan::new(policy, Success::default(), hosts(&[(&hangs, 1), (&good, 1)], health));
    calling(async |engine| {
        assert_eq!((calls(&engine, &plan, 20).await, hangs.requests()), (18, 2));
    });
}

#[test]
fn a_cancelled_attempt_is_no_failure_of_its_host() {
    let (slow, good) = (Server::start(|_| Reply::nothing()), Server::hello());
    let health = OutlierRule {
        consecutive_failures: 1,
        base_ejection: Nanos::from_secs(100),
        max_ejected_fraction: 0.5,
        ..OutlierRule::default()
    };
    let stages = vec![HedgeStage { after: StageTrigger::Time(ms(3)), on_failure: true, attempts: 1 }];
    let policy = Policy { stages, budget: None, deadline: Nanos::from_secs(10), ..Policy::default() };
    let plan = CallPlan::new(policy, Success::default(), hosts(&[(&slow, 1), (&good, 1)], health));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 10).await, 10);
        assert_eq!(ejected(&plan, &engine), [false, false]);
        let [(_, won), (_, lost), (_, cancelled)] = plan.upstream.counts.outcomes();
        assert!(won == 10 && lost == 0 && cancelled >= 5, "{won} {lost} {cancelled}");
    });
}

#[test]
fn the_limit_holds_and_the_queue_is_first_in_first_out() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(5)));
    let places = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(3, 100));
    let plan = CallPlan::new(Policy::default(), Success::default(), Arc::clone(&places));
    assert_eq!(places.concurrency_limit(), Some(3));
    calling(async |engine| {
        let order = Mutex::new(Vec::new());
        let one = async |number: u32| {
            let answer = get(&engine, &plan).await.unwrap();
            order.lock().unwrap().push(number);
            assert!(places.counts.in_flight() <= 3);
            drop(answer);
        };
        let mut all: Vec<_> = (0..30).map(|number| Box::pin(one(number))).collect();
        poll_fn(|cx| {
            all.retain_mut(|call| call.as_mut().poll(cx).is_pending());
            if all.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!(server.counts().most_open, 3);
        let order = order.lock().unwrap();
        // Concurrent calls end in any order: a call has a slot once two of the three before it have ended.
        for (place, number) in order.iter().enumerate() {
            let later = order[place..].iter().filter(|other| *other < number).count();
            assert!(later <= 2, "{number} overtook {later}: {order:?}");
        }
        assert_eq!((places.counts.in_flight(), waiting(&plan)), (0, 0));
        let waited = places.permits().unwrap().waited_s();
        assert!(waited > 0.1, "{waited}");
    });
}

#[test]
fn a_full_queue_rejects_at_once() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(30)));
    let places = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 1));
    let plan = CallPlan::new(retrying(60), Success::default(), Arc::clone(&places));
    calling(async |engine| {
        let (first, second, third) = tokio::join!(get(&engine, &plan), get(&engine, &plan), get(&engine, &plan));
        assert!(first.is_ok() && second.is_ok());
        let failed = third.unwrap_err();
        let CallFailureReason::Rejected(refusal) = failed.reason else { panic!("{failed:?}") };
        assert!(refusal.reason == RejectionReason::QueueFull && refusal.retry_after >= Nanos::SECOND, "{refusal:?}");
        assert!(
            failed.call_trace.to_string().contains("rejected (queue_full, priority normal)"),
            "{}",
            failed.call_trace
        );
        assert!(failed.call_trace.json().get().contains(r#""rejected":"queue_full","priority":"normal""#));
        let [(_, won), (_, lost), (_, cancelled)] = places.counts.outcomes();
        let sent: u64 = places.counts.sent().iter().map(|(_, count)| count).sum();
        assert_eq!((won, cancelled, won + lost, server.requests()), (2, 0, sent, 2));
        assert_eq!(plan.counts.outcomes().map(|(_, count)| count), [2, 0, 0, 0, 1]);
    });
}

#[test]
fn all_event_loops_share_the_slots() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(5)));
    let places = Arc::new(upstream(&[server.url("/")]).with_fixed_limit(1, 100));
    let plan = Arc::new(CallPlan::new(Policy::default(), Success::default(), places));
    let begun = Clock::starting_in(Nanos::ZERO);
    let loops = [(); 2].map(|()| {
        let plan = Arc::clone(&plan);
        std::thread::spawn(move || calling(async |engine| assert_eq!(calls(&engine, &plan, 20).await, 20)))
    });
    loops.into_iter().for_each(|one| one.join().unwrap());
    assert!(begun.now() >= ms(40 * 5), "one after the other: {}", begun.now());
    let counts = &plan.upstream.counts;
    assert_eq!((counts.in_flight(), waiting(&plan), counts.outcomes()[0]), (0, 0, ("won", 40)));
}

#[test]
fn hosts_come_and_go_while_attempts_are_in_flight() {
    let (old, new) = (Server::start(|_| Reply::ok("old").after(Duration::from_millis(50))), Server::hello());
    let upstream = |of: &[&Server]| of.iter().map(|server| host(&(*server, 1))).collect::<Vec<_>>();
    let fixed = Upstream::new(upstream(&[&old]), BalancePolicy::RoundRobin, OutlierRule::default());
    let plan = CallPlan::new(Policy::default(), Success::default(), Arc::new(fixed.with_changing_hosts()));
    calling(async |engine| {
        let headers = HeaderMap::new();
        let request = CallRequest::new(&plan, &Method::GET, "/", &headers);
        let in_flight = engine.call(&request, OutgoingBody::Empty);
        let change = async {
            while old.requests() == 0 {
                engine.timer().sleep(ms(1)).await;
            }
            assert!(plan.upstream.set_hosts(engine.timer().now(), upstream(&[&new])));
            assert!(!plan.upstream.set_hosts(engine.timer().now(), Vec::new()), "without hosts the old ones stay");
        };
        let (answer, ()) = tokio::join!(in_flight, change);
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(calls(&engine, &plan, 10).await, 10);
        assert_eq!((old.requests(), new.requests()), (1, 10));
    });
}

#[test]
fn a_key_keeps_its_host() {
    let servers = [Server::hello(), Server::hello(), Server::hello()];
    let of: Vec<(&Server, u32)> = servers.iter().map(|server| (server, 1)).collect();
    let balance = BalancePolicy::ConsistentHash { max_load_percent: 200 };
    let upstream = Upstream::new(of.iter().map(host).collect(), balance, OutlierRule::default());
    let plan = CallPlan::new(Policy::default(), Success::default(), Arc::new(upstream));
    calling(async |engine| {
        let headers = HeaderMap::new();
        for key in 0..30 {
            let before: Vec<u64> = servers.iter().map(Server::requests).collect();
            for _ in 0..3 {
                let request = CallRequest { key: Some(key), ..CallRequest::new(&plan, &Method::GET, "/", &headers) };
                assert!(engine.call(&request, OutgoingBody::Empty).await.is_ok());
            }
            let grown = servers.iter().zip(before).filter(|(server, before)| server.requests() > *before).count();
            assert_eq!(grown, 1, "{key}");
        }
    });
    assert!(servers.iter().all(|server| server.requests() > 0), "the keys are spread");
}
