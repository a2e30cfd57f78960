//! The open loop: arrivals come whether or not answers do.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use weir_measure::Run;
use weir_testing::{Reply, Seen, Server, Stalling, Stalls, Weir, close, load, until};

/// When requests were meant to start, in ms after the first of them, as the log has it.
fn intended(weir: &Weir, log: &str) -> Vec<u64> {
    let mut times: Vec<u64> =
        weir.read(log).lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    times.sort_unstable();
    let first = times[0];
    times.iter().map(|time| time - first).collect()
}

fn shares(server: &Server) -> BTreeMap<Vec<u8>, u64> {
    let mut counts = BTreeMap::new();
    server.seen().into_iter().for_each(|seen| *counts.entry(seen.body).or_insert(0) += 1);
    counts
}

#[test]
fn arrivals_are_rate_times_duration_on_any_number_of_threads() {
    let mut all = Vec::new();
    for threads in ["1", "2", "3", "4"] {
        let (weir, server) = (Weir::new(), Server::hello());
        let run = weir.load(&server.url("/"), &["-r", "600", "-d", "500ms", "-t", threads, "--jtl", "log"]);
        assert_eq!((run.requests.total, run.requests.ok, server.requests()), (300, 300, 300), "-t {threads}");
        assert!(close(run.rate_per_s.offered, 600.0, 1e-9), "{}", run.rate_per_s.offered);
        assert_eq!(run.manifest.threads.to_string(), threads);
        all.push(intended(&weir, "log"));
    }
    let even: Vec<u64> = (0..300).map(|k| (f64::from(k) / 0.6).round() as u64).collect();
    assert!(all[0].iter().zip(&even).all(|(a, b)| a.abs_diff(*b) <= 1), "{:?}", all[0]);
    assert!(all.iter().all(|times| *times == all[0]), "other times on other numbers of threads");
}

#[test]
fn poisson_arrivals_are_those_of_their_seed_on_any_number_of_threads() {
    let run = |seed: &str, threads: &str| {
        let (weir, server) = (Weir::new(), Server::hello());
        let flags =
            ["-r", "500", "-d", "400ms", "--arrivals", "poisson", "--seed", seed, "-t", threads, "--jtl", "log"];
        let run = weir.load(&server.url("/"), &flags);
        assert_eq!(run.requests.total, server.requests());
        assert_eq!(run.manifest.seed.to_string(), seed);
        intended(&weir, "log")
    };
    let times = run("7", "1");
    assert!((140..=260).contains(&times.len()), "{}: more than 4 sigma from 200", times.len());
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let sd = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((0.7..1.4).contains(&(sd / mean)), "the gaps of independent arrivals spread as much as their mean: {sd}");
    for threads in ["1", "2", "4"] {
        assert_eq!(run("7", threads), times, "-t {threads}");
    }
    assert_ne!(run("8", "1"), times);
}

#[test]
fn stages_have_as_many_arrivals_as_the_area_under_them() {
    for threads in ["1", "3"] {
        let (weir, server) = (Weir::new(), Server::hello());
        let run =
            weir.load(&server.url("/"), &["--stages", "0-400/500ms, 0/250ms,200/250ms", "-t", threads, "--jtl", "log"]);
        assert_eq!((run.requests.total, server.requests()), (150, 150));
        assert!(close(run.duration_s, 1.0, 1e-9));
        let times = intended(&weir, "log");
        assert_eq!(times.iter().filter(|at| **at < 500).count(), 100, "a ramp from 0 to 400 in 0.5 s");
        assert_eq!(times.iter().filter(|at| (500..749).contains(*at)).count(), 0, "a pause");
        assert!(times[25].abs_diff(250) <= 1, "a quarter of the ramp's arrivals in its first half: {}", times[25]);
    }
}

#[test]
fn a_number_of_requests_bounds_the_open_loop_too() {
    for (flags, count) in [
        (["-n", "30", "-r", "100"].as_slice(), 30),
        (&["-n", "30", "-r", "100", "-d", "60s"], 30),
        (&["-n", "300", "-r", "100", "-d", "200ms"], 20),
        (&["-n", "30", "--stages", "100/1s", "-t", "2"], 30),
    ] {
        let server = Server::hello();
        let run = load(&server.url("/"), flags);
        assert_eq!((run.requests.total, server.requests()), (count, count), "{flags:?}");
        assert!(run.duration_s < 50.0, "{}", run.duration_s);
    }
}

#[test]
fn bodies_come_in_the_shares_of_their_weights_and_the_same_again() {
    let run = |seed: &str, threads: &str| {
        let server = Server::hello();
        let bodies = ["-b", "one", "-b", "never", "-b", "three", "--weights", "1,0,3"];
        let flags = ["-r", "2000", "-d", "200ms", "--seed", seed, "-t", threads];
        load(&server.url("/"), &[bodies.as_slice(), &flags].concat());
        shares(&server)
    };
    let first = run("5", "1");
    assert_eq!(first.values().sum::<u64>(), 400);
    assert_eq!(first.len(), 2, "a weight of 0 is never: {first:?}");
    assert!(first[b"one".as_slice()].abs_diff(100) < 35, "{first:?}");
    for threads in ["1", "2", "4"] {
        assert_eq!(run("5", threads), first, "-t {threads}");
    }
    assert_ne!(run("6", "1"), first);
}

#[test]
fn the_closed_loop_chooses_bodies_by_number_too() {
    let run = |threads: &str| {
        let server = Server::hello();
        load(&server.url("/"), &["-n", "300", "-c", "4", "-t", threads, "-b", "a", "-b", "b", "-b", "c"]);
        shares(&server)
    };
    let first = run("1");
    assert!(first.len() == 3 && first.values().all(|n| n.abs_diff(100) < 35), "{first:?}");
    assert_eq!(run("2"), first);
    assert_eq!(run("4"), first);
}

#[test]
fn what_waits_for_a_connection_keeps_its_intended_start() {
    // One connection, 50 ms each: 20/s can be served of the 60/s that come.
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(50)));
    let run = load(&server.url("/"), &["-r", "60", "-d", "500ms", "-c", "1"]);
    assert_eq!((run.requests.total, run.requests.dropped, server.requests()), (30, 0, 30));
    assert_eq!(server.counts().used, 1);
    // A stall of weir lets one more find the connection free.
    assert!((20..=29).contains(&run.requests.waited), "all but the first ones wait: {}", run.requests.waited);
    // The last was meant to start at 483 ms and ends at 30 x 50 ms.
    assert!(run.response_ms.max.unwrap() >= 1500.0 - 484.0, "{}", run.response_ms.max.unwrap());
    // Most wait for hundreds of milliseconds; the service takes none of those, and weir is not late by them.
    assert!(
        run.service_ms.p50.unwrap() >= 50.0 && run.service_ms.p50.unwrap() < run.response_ms.p50.unwrap() / 2.0,
        "{}",
        run.service_ms.p50.unwrap()
    );
    assert!(run.connections.max_backlog >= 10, "{}", run.connections.max_backlog);
    // Were the wait for a connection lateness, nothing would be left of this.
    let [response, service, late] = [&run.response_ms, &run.service_ms, &run.lateness_ms].map(|it| it.mean.unwrap());
    assert!(response - service - late >= 200.0, "{response} {service} {late}");
}

#[test]
fn what_waits_beyond_the_timeout_is_dropped_and_counted() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_secs(1)));
    let flags = ["-r", "100", "-d", "1s", "-c", "1", "--timeout", "5s", "--format", "json"];
    let output = Weir::new().run(&[&["load", &server.url("/")], flags.as_slice()].concat());
    let run = output.json();
    assert_eq!(output.code, 0);
    assert_eq!((run.requests.total, run.failures_of("dropped")), (100, run.requests.dropped));
    assert_eq!(run.requests.total, server.requests() + run.requests.dropped);
    assert!(run.requests.dropped >= 80, "{}", run.requests.dropped);
    // The service takes a second; one that a busy machine delays exceeds the timeout.
    assert_eq!(run.requests.failed, run.requests.dropped + run.failures_of("timeout"));
    // The last that is sent has waited for almost as long as it may. Were all of them sent, the last one would wait for 99 s.
    let longest = run.response_ms.max.unwrap();
    assert!((4000.0..40_000.0).contains(&longest), "{longest}");
    assert!(!run.trust.ok && run.trust.reasons.iter().any(|why| why.contains("never sent")), "{:?}", run.trust);
}

#[test]
fn what_is_dropped_in_the_warm_up_is_left_out_as_well() {
    let begun = OnceLock::new();
    let script =
        move |seen: &Seen| Reply::ok("hello").not_before(*begun.get_or_init(|| seen.at) + Duration::from_millis(4500));
    let server = Server::start(script);
    let flags = ["-r", "100", "-d", "6s", "-c", "1", "--timeout", "4s", "--warmup", "5500ms", "--format", "json"];
    let run = Weir::new().run(&[&["load", &server.url("/")], flags.as_slice()].concat()).json();
    assert!(close(run.rate_per_s.offered, 100.0, 1e-9));
    assert_eq!((run.requests.total, run.requests.ok, run.requests.dropped), (50, 50, 0), "{:?}", run.failures);
    assert!(server.requests() < 600, "some of the warm-up were dropped: {}", server.requests());
}

#[test]
fn a_service_that_closes_idle_connections_causes_no_failure() {
    let server = Server::build().closes_idle_after(Duration::from_millis(20)).start(|_| Reply::ok("hello"));
    let run = load(&server.url("/"), &["-r", "2", "-d", "4s"]);
    assert_eq!(run.requests.total, 8);
    assert_few_crossed(&run);
    assert!(run.connections.opened >= 6, "each was closed before the next arrival: {}", run.connections.opened);
}

/// Checks that requests have not been sent on closed connections, but for a few: on a busy machine a close can be so late
/// that the next request crosses it.
fn assert_few_crossed(run: &Run) {
    let crossed = run.failures_of("reset") + run.failures_of("closed");
    assert_eq!(run.requests.failed, crossed, "{:?}", run.failures);
    assert!(crossed <= run.requests.total / 4, "{:?}", run.failures);
}

#[test]
fn a_connection_that_was_closed_since_the_last_look_is_not_used() {
    // One arrival each 250 ms, and the service closes after 15 ms.
    let server = Server::build().closes_idle_after(Duration::from_millis(15)).start(|_| Reply::ok("hello"));
    let run = load(&server.url("/"), &["--stages", "4/4s"]);
    assert_eq!(run.requests.total, 16);
    assert_few_crossed(&run);
}

#[test]
fn connections_grow_as_needed_and_no_further() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(100)));
    let run = load(&server.url("/"), &["-r", "100", "-d", "1s"]);
    assert_eq!((run.requests.ok, run.requests.waited), (100, 0));
    // 10 are in flight at a time; on a busy machine as many as become due while the slowest one is.
    let most = (run.response_ms.max.unwrap() / 10.0).ceil() as u64 + 1;
    assert!((10..=most).contains(&run.connections.opened), "{} of {most}", run.connections.opened);

    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(100)));
    let run = load(&server.url("/"), &["-r", "100", "-d", "500ms", "-c", "3", "-t", "2"]);
    assert_eq!((run.requests.ok, server.counts().used), (50, 3));
    assert_eq!(run.connections.max, 3);
}

#[test]
fn a_rate_that_the_service_cannot_take_is_seen_as_such() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(20)));
    let run = load(&server.url("/"), &["-r", "200", "-d", "1s", "-c", "2"]);
    assert!(close(run.rate_per_s.offered, 200.0, 1e-9));
    assert!(run.rate_per_s.achieved <= 101.0, "{}", run.rate_per_s.achieved);
    assert_eq!((run.requests.total, server.requests()), (200, 200), "all are sent in the end");
}

#[test]
fn what_is_offered_with_a_number_of_requests_is_the_rate_and_not_that_until_the_last_answer() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(700)));
    let run = load(&server.url("/"), &["-r", "6000/m", "-n", "20"]);
    assert_eq!(run.requests.ok, 20);
    assert!(run.duration_s > 0.8, "the last answer came {} s after the start", run.duration_s);
    assert!(close(run.rate_per_s.offered, 100.0, 1e-6), "{}", run.rate_per_s.offered);
}

#[test]
fn nobody_is_said_to_have_waited_where_a_connection_was_free_in_time() {
    // One connection, and answers long before the next arrival is due.
    let (weir, server) = (Weir::new(), Server::hello());
    let run = weir.load(&server.url("/"), &["-r", "50", "-n", "40", "-c", "1", "--spin", "--jtl", "log"]);
    let log = weir.read("log");
    let mut times: Vec<[u64; 2]> =
        log.lines().skip(1).map(|line| [0, 1].map(|at| line.split(',').nth(at).unwrap().parse().unwrap())).collect();
    times.sort_unstable();
    // A machine that stands still makes those wait that are due before the response to one before them, and the first one
    // for its connection.
    let (mut free_at, mut may_wait) = (0, u64::from(times[0][1] > 2));
    for [due, took] in times {
        may_wait += u64::from(due <= free_at + 1);
        free_at = free_at.max(due + took);
    }
    assert!(run.requests.waited <= may_wait, "{} waited, {may_wait} had to: {log}", run.requests.waited);
}

/// Response times in ms, sorted, of arrivals at `rate_per_s` by when their responses were sent; the fastest took no
/// time.
pub(crate) fn response_times(sent: &BTreeMap<u64, Instant>, rate_per_s: f64) -> Vec<f64> {
    let first = *sent.values().min().unwrap();
    let after = |(k, at): (&u64, &Instant)| at.duration_since(first).as_secs_f64() - *k as f64 / rate_per_s;
    let mut times: Vec<f64> = sent.iter().map(after).collect();
    times.sort_unstable_by(f64::total_cmp);
    times.iter().map(|time| (time - times[0]) * 1e3).collect()
}

fn check_freezes(connections: &[&str]) {
    let begun = Instant::now();
    // What the service did in truth: on a busy machine its freezes end late.
    let sent: Arc<Mutex<BTreeMap<u64, Instant>>> = Arc::default();
    let log = Arc::clone(&sent);
    let script = move |seen: &Seen| {
        // Two whole periods pass in 5 s, wherever in one the run begins; the first 1.5 s of each are fine.
        let into = begun.elapsed().as_secs_f64() % 2.5;
        if into >= 1.5 {
            std::thread::sleep(Duration::from_secs_f64(2.5 - into));
        }
        log.lock().unwrap().insert(seen.number, Instant::now());
        Reply::ok("hello")
    };
    let server = Server::start(script);
    let run = load(&server.url("/"), &[["-r", "500", "-d", "5s"].as_slice(), connections].concat());
    assert_eq!((run.requests.ok, server.requests()), (2500, 2500));
    let truth = response_times(&sent.lock().unwrap(), 500.0);
    assert!(truth[2499] > 900.0, "the service has frozen: {}", truth[2499]);
    for (measured, q) in [
        (run.response_ms.p75.unwrap(), 0.75),
        (run.response_ms.p90.unwrap(), 0.9),
        (run.response_ms.p99.unwrap(), 0.99),
    ] {
        let truth = truth[(q * 2500.0) as usize];
        // Nothing is shorter than it was, up to the order in which a late machine sends; how much later a response is
        // read is the machine's affair.
        let longest = truth * 1.05 + run.lateness_ms.max.unwrap().max(5.0);
        let shortest = truth * 0.97 - run.lateness_ms.max.unwrap().max(1.0);
        let what = format!("{connections:?} q {q}: {measured} ms, not {truth}; late {}", run.lateness_ms.max.unwrap());
        assert!(measured >= shortest && measured <= longest, "{what}");
    }
    // What a tool shows that does not count from the intended start, and one reason why there are two clocks.
    if !connections.is_empty() {
        assert!(run.service_ms.p90.unwrap() < run.response_ms.p90.unwrap() / 2.0, "{}", run.service_ms.p90.unwrap());
        assert!(run.requests.waited > 500, "{}", run.requests.waited);
    }
}

#[test]
fn a_generator_that_stood_still_does_not_trust_itself() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let running = weir.start(&["load", &url, "-r", "200", "-d", "3s", "--format", "json"]);
    until("some requests", Duration::from_secs(20), || server.requests() > 100);
    running.signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(700));
    running.signal(Signal::CONT);
    let run = running.finish().json();
    // What waited meanwhile had no connection yet; that it was asked for late is the generator's own fault.
    assert!(!run.trust.ok && run.trust.reasons.iter().any(|why| why.contains("sent late")), "{:?}", run.trust);
    let late = run.lateness_ms.p90.unwrap();
    assert!((300.0..60_000.0).contains(&late), "a fifth of all: {late}");
}

#[test]
fn stalls_of_the_generator_lose_no_request_and_are_told_in_full_as_its_own_lateness() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let running = weir.start(&["load", &url, "-r", "500", "-d", "3s", "--format", "json"]);
    until("some requests", Duration::from_secs(20), || server.requests() > 20);
    let stalls = Stalls::of(running.pid(), Stalling::default());
    let run = running.finish().json();
    let happened = stalls.end();
    assert_eq!((run.requests.total, run.requests.ok, server.requests()), (1500, 1500, 1500));
    // A stall at the very end may find nothing that is left to send.
    let (first, last) = (server.seen().first().unwrap().at, server.seen().last().unwrap().at);
    let within = happened.iter().filter(|(begun, ended)| *begun > first && *ended < last);
    let longest = within.map(|(begun, ended)| ended.duration_since(*begun)).max().unwrap();
    // The request after the beginning of a stall was due within 2 ms of it.
    let least = longest.as_secs_f64() * 1e3 - 2.5;
    assert!(
        run.lateness_ms.max.unwrap() >= least * 0.99,
        "{} ms late, after a stall of {longest:?}",
        run.lateness_ms.max.unwrap()
    );
    assert!(
        run.response_ms.max.unwrap() >= least * 0.99,
        "the user waits for the generator, too: {}",
        run.response_ms.max.unwrap()
    );
    assert!(!run.trust.ok, "one of ten requests was late: {:?}", run.lateness_ms);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn freezes_of_the_service_show_in_full_with_a_cap_on_connections() {
        check_freezes(&["-c", "50"]);
    }

    #[test]
    fn freezes_of_the_service_show_in_full_without_a_cap() {
        check_freezes(&[]);
    }

    #[test]
    fn a_constant_service_time_is_measured_as_it_is() {
        let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(20)));
        for flags in [["-r", "100", "-d", "1s"].as_slice(), &["-c", "4", "-d", "1s"]] {
            let run = load(&server.url("/"), flags);
            // The service never answers earlier; how much later it does is the machine's affair, but for the quickest.
            assert!(
                run.response_ms.min.unwrap() >= 20.0 && run.service_ms.min.unwrap() >= 20.0,
                "{}",
                run.service_ms.min.unwrap()
            );
            assert!(run.service_ms.min.unwrap() < 20.2 + 3.0, "{flags:?}: {}", run.service_ms.min.unwrap());
            assert!(
                run.response_ms.p50.unwrap() <= run.service_ms.p50.unwrap() + run.lateness_ms.max.unwrap() + 0.1,
                "{flags:?}: {run:?}"
            );
            assert!(
                run.first_byte_ms.p50.unwrap() >= 20.0
                    && run.first_byte_ms.p50.unwrap() <= run.service_ms.p50.unwrap() * 1.001
            );
        }
    }
}
