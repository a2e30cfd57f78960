//! Which host an attempt goes to, and how many may be at one upstream.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use support::{Reply, Server, calling, get, ms, origin, upstream, waiting};
use weir::call::{Engine, Host, Plan, Reason, Success, Upstream};
use weir::decide::Nanos;
use weir::decide::admit::Why;
use weir::decide::hosts::{Balance, Health};
use weir::decide::policy::{After, Backoff, Policy, Retry, Stage};
use weir::machine::clock::Clock;

fn retrying(times: u32) -> Policy {
    let backoff = Backoff { first: ms(1), most: ms(2) };
    Policy { retry: Retry { times, backoff, ..Retry::default() }, budget: None, ..Policy::default() }
}

fn hosts(of: &[(&Server, u32)], health: Health) -> Arc<Upstream> {
    let host = |(server, weight): &(&Server, u32)| Host { origin: origin(&server.url("/")), weight: *weight };
    Arc::new(Upstream::new(of.iter().map(host).collect(), Balance::RoundRobin, health))
}

async fn calls(engine: &Engine, plan: &Plan, count: usize) -> usize {
    let mut good = 0;
    for _ in 0..count {
        good += usize::from(get(engine, plan).await.is_ok());
    }
    good
}

#[test]
fn attempts_are_shared_out_by_weight() {
    let servers = [Server::hello(), Server::hello(), Server::hello()];
    let of = [(&servers[0], 1), (&servers[1], 2), (&servers[2], 5)];
    let plan = Plan::new(Policy::default(), Success::default(), hosts(&of, Health::default()));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 80).await, 80);
        assert_eq!(servers.each_ref().map(Server::requests), [10, 20, 50]);
    });
}

#[test]
fn the_attempt_after_a_failure_goes_elsewhere() {
    let (bad, good) = (Server::start(|_| Reply::status(503, "")), Server::hello());
    // Round robin alone would send the second attempt to the heavy one again.
    let health = Health { failures: 0, ..Health::default() };
    let plan = Plan::new(retrying(1), Success::default(), hosts(&[(&bad, 10), (&good, 1)], health));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 22).await, 22);
        assert_eq!((bad.requests(), good.requests()), (20, 22));
    });
}

#[test]
fn a_host_that_keeps_failing_sits_out_and_comes_back() {
    let well = Arc::new(Mutex::new(false));
    let ill = Server::start({
        let well = Arc::clone(&well);
        move |_| if *well.lock().unwrap() { Reply::ok("") } else { Reply::nothing().close() }
    });
    let good = Server::hello();
    let health = Health { failures: 3, rest: ms(100), most_out: 0.5 };
    let plan = Plan::new(Policy::default(), Success::default(), hosts(&[(&ill, 1), (&good, 1)], health));
    let out = |engine: &Engine| plan.upstream.out(engine.timer().now());
    calling(async |engine| {
        let good = calls(&engine, &plan, 30).await;
        assert_eq!(good, 27, "after three failures nothing goes there");
        assert_eq!(out(&engine), [true, false]);
        *well.lock().unwrap() = true;
        engine.timer().sleep(ms(100)).await;
        assert_eq!(calls(&engine, &plan, 30).await, 30);
        assert_eq!(out(&engine), [false, false]);
        assert!(ill.requests() > 10, "{}", ill.requests());
    });
}

#[test]
fn a_host_that_hangs_until_the_deadline_sits_out_too() {
    let (hangs, good) = (Server::start(|_| Reply::nothing()), Server::hello());
    let health = Health { failures: 2, rest: Nanos::from_secs(100), most_out: 0.5 };
    let policy = Policy { deadline: ms(20), ..Policy::default() };
    let plan = Plan::new(policy, Success::default(), hosts(&[(&hangs, 1), (&good, 1)], health));
    calling(async |engine| {
        let good = calls(&engine, &plan, 20).await;
        // A busy machine may have another one late.
        assert!((15..=18).contains(&good), "{good}");
        assert_eq!(hangs.requests(), 2);
    });
}

#[test]
fn a_loser_is_not_held_against_its_host() {
    let (slow, good) = (Server::start(|_| Reply::nothing()), Server::hello());
    let health = Health { failures: 1, rest: Nanos::from_secs(100), most_out: 0.5 };
    let stages = vec![Stage { after: After::Time(ms(3)), on_failure: true, copies: 1 }];
    let policy = Policy { stages, budget: None, deadline: Nanos::from_secs(10), ..Policy::default() };
    let plan = Plan::new(policy, Success::default(), hosts(&[(&slow, 1), (&good, 1)], health));
    calling(async |engine| {
        assert_eq!(calls(&engine, &plan, 10).await, 10);
        assert_eq!(plan.upstream.out(engine.timer().now()), [false, false]);
        let [(_, won), (_, lost), (_, cancelled)] = plan.upstream.counts.ends();
        assert!(won == 10 && lost == 0 && cancelled >= 5, "{won} {lost} {cancelled}");
    });
}

#[test]
fn never_more_attempts_than_there_are_places_and_first_come_is_first_served() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(5)));
    let places = Arc::new(upstream(&[server.url("/")]).with_places(3, 100));
    let plan = Plan::new(Policy::default(), Success::default(), Arc::clone(&places));
    assert_eq!(places.most_at_once(), Some(3));
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
        // Those that are served at once may end in any order: a call has a place once two of the three before it have left.
        for (place, number) in order.iter().enumerate() {
            let later = order[place..].iter().filter(|other| *other < number).count();
            assert!(later <= 2, "{number} overtook {later}: {order:?}");
        }
        assert_eq!((places.counts.in_flight(), waiting(&plan)), (0, 0));
        let waited = places.places().unwrap().waited_s();
        assert!(waited > 0.1, "{waited}");
    });
}

#[test]
fn a_full_queue_turns_away_at_once_and_nothing_is_sent() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(30)));
    let places = Arc::new(upstream(&[server.url("/")]).with_places(1, 1));
    let plan = Plan::new(retrying(60), Success::default(), Arc::clone(&places));
    calling(async |engine| {
        let (first, second, third) = tokio::join!(get(&engine, &plan), get(&engine, &plan), get(&engine, &plan));
        assert!(first.is_ok() && second.is_ok());
        let failed = third.unwrap_err();
        let Reason::Refused(refusal) = failed.reason else { panic!("{failed:?}") };
        assert!(refusal.why == Why::Full && refusal.retry_after >= Nanos::SECOND, "{refusal:?}");
        assert!(failed.story.to_string().contains("refused (full, priority normal)"), "{}", failed.story);
        assert!(failed.story.json().get().contains(r#""refused":"full","priority":"normal""#));
        let [(_, won), (_, lost), (_, cancelled)] = places.counts.ends();
        let sent: u64 = places.counts.sent().iter().map(|(_, count)| count).sum();
        assert_eq!((won, cancelled, won + lost, server.requests()), (2, 0, sent, 2));
        assert_eq!(plan.counts.ends().map(|(_, count)| count), [2, 0, 0, 0, 1]);
    });
}

#[test]
fn all_event_loops_share_the_places() {
    let server = Server::start(|_| Reply::ok("").after(Duration::from_millis(5)));
    let places = Arc::new(upstream(&[server.url("/")]).with_places(1, 100));
    let plan = Arc::new(Plan::new(Policy::default(), Success::default(), places));
    let begun = Clock::starting_in(Nanos::ZERO);
    let loops = [(); 2].map(|()| {
        let plan = Arc::clone(&plan);
        std::thread::spawn(move || calling(async |engine| assert_eq!(calls(&engine, &plan, 20).await, 20)))
    });
    loops.into_iter().for_each(|one| one.join().unwrap());
    assert!(begun.now() >= ms(40 * 5), "one after the other: {}", begun.now());
    let counts = &plan.upstream.counts;
    assert_eq!((counts.in_flight(), waiting(&plan), counts.ends()[0]), (0, 0, ("won", 40)));
}
