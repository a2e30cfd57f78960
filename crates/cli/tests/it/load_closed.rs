//! The closed loop: how many requests on how many connections, and when.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use weir_testing::{Reply, Server, Weir, close, load, stall_once};

#[test]
fn a_number_of_requests_is_exact_on_any_number_of_threads() {
    for (threads, connections, requests) in
        [("1", "7", 1000), ("2", "7", 1001), ("4", "16", 997), ("4", "50", 13), ("2", "1", 3), ("3", "64", 65)]
    {
        let server = Server::hello();
        let asked = requests.to_string();
        let run = load(&server.url("/"), &["-n", &asked, "-c", connections, "-t", threads]);
        assert_eq!(server.requests(), requests, "-t {threads} -c {connections}");
        assert_eq!((run.requests.total, run.requests.ok, run.requests.failed), (requests, requests, 0));
        assert_eq!(run.status, BTreeMap::from([("200".to_owned(), requests)]));
        let most: u64 = connections.parse().unwrap();
        assert_eq!(run.connections.opened, most.min(requests));
        assert_eq!(server.counts().connections, run.connections.opened + 1, "one more, to see whether it is there");
        assert_eq!(run.series.iter().map(|point| point.ok).sum::<u64>(), requests);
    }
}

#[test]
fn requests_with_a_duration_end_at_whichever_comes_first() {
    let server = Server::hello();
    let run = load(&server.url("/"), &["-n", "40", "-d", "1m", "-c", "2"]);
    assert_eq!((run.requests.total, server.requests()), (40, 40));
    assert!(run.duration_s < 50.0, "{}", run.duration_s);

    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(200)));
    let run = load(&server.url("/"), &["-n", "100000", "-d", "3s", "-c", "2"]);
    assert!(run.requests.total < 40 && run.requests.total == server.requests(), "{}", run.requests.total);
}

#[test]
fn a_duration_bounds_the_starts_and_every_response_is_awaited() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(30)));
    let begun = Instant::now();
    let run = load(&server.url("/"), &["-d", "3s", "-c", "4", "-t", "2"]);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    assert_eq!(run.requests.total, server.requests());
    assert_eq!(run.requests.unfinished, 0);
    assert!(close(run.duration_s, 3.0, 1e-9), "{}", run.duration_s);
    // 100 turns of 30 ms each for 4 connections, if nothing else takes time; a busy machine makes it less.
    assert!(run.requests.total <= 4 * 101, "{}", run.requests.total);
}

#[test]
fn users_make_their_loops_and_no_more() {
    for threads in ["1", "2", "4"] {
        let server = Server::hello();
        let run = load(&server.url("/"), &["--users", "9", "--loops", "7", "-t", threads]);
        assert_eq!((run.requests.total, server.requests()), (63, 63));
        let mut by_connection = BTreeMap::new();
        server.seen().iter().for_each(|seen| *by_connection.entry(seen.connection).or_insert(0) += 1);
        assert_eq!(by_connection.values().collect::<Vec<_>>(), [&7; 9], "a user keeps its connection");
    }
}

#[test]
fn users_whose_start_is_missed_at_the_end_are_not_awaited() {
    for threads in ["1", "2"] {
        let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(10)));
        let weir = Weir::new();
        let (url, users) = (server.url("/"), ["--users", "100", "--ramp-up", "1s", "-d", "1s"]);
        let running = weir.start(&[["load", &url].as_slice(), &users, &["-t", threads, "-f", "json", "-q"]].concat());
        server.wait_for("half of the users", |counts| counts.requests > 500);
        stall_once(running.pid(), Duration::from_millis(1100));
        let output = running.finish();
        assert_eq!((output.code, output.json().requests.failed), (0, 0), "{output:?}");
    }
}

#[test]
fn a_ramp_up_beyond_the_duration_starts_only_those_whose_turn_comes() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(400)));
    let run = load(&server.url("/"), &["--users", "10", "--ramp-up", "40s", "-d", "7s", "--loops", "1"]);
    // The second one has 3 s left, in case it begins late.
    assert_eq!((run.requests.total, server.requests()), (2, 2), "at 0 and 4 s");
}

#[test]
fn no_keepalive_takes_a_connection_for_each_request() {
    for flags in
        [["--users", "3", "--loops", "5", "--no-keepalive"].as_slice(), &["-c", "3", "-n", "15", "--no-keepalive"]]
    {
        let server = Server::hello();
        let run = load(&server.url("/"), flags);
        let counts = server.counts();
        assert_eq!((run.requests.ok, counts.requests, counts.used), (15, 15, 15), "{flags:?}");
        assert_eq!((run.connections.opened, counts.connections), (15, 16));
        assert_eq!(run.requests.failed, 0);
        assert!(server.seen().iter().all(|seen| seen.header("connection") == Some("close")));
        assert!(run.connect_ms.max.unwrap() > 0.0);
    }
}

#[test]
fn a_pipeline_is_as_deep_as_asked() {
    for (requests, connections) in [("8", "1"), ("64", "2"), ("320", "4")] {
        let server = Server::build().answers_in_batches_of(8).start(|_| Reply::ok("hello"));
        let flags = ["-n", requests, "-c", connections, "-t", "1", "--pipeline", "8", "--timeout", "30s"];
        let output = Weir::new().run(&[&["load", &server.url("/"), "--format", "json"], flags.as_slice()].concat());
        let run = output.json();
        assert_eq!(run.requests.ok.to_string(), requests, "{flags:?}: {:?}", run.failures);
        assert_eq!(run.connections.opened.to_string(), connections);
    }
}

#[test]
fn without_a_pipeline_a_connection_has_one_request_at_a_time() {
    let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(2)));
    load(&server.url("/"), &["-n", "60", "-c", "3"]);
    assert_eq!(server.counts().deepest, 1);
    // Not `most_open`: the connection that weir looked with, before the run, may not be closed yet.
    assert_eq!(server.counts().used, 3);
}

#[test]
fn a_service_that_says_close_each_time_gets_a_new_connection_each_time() {
    for pipeline in ["1", "4"] {
        let script = |_: &weir_testing::Seen| {
            Reply::raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi").close()
        };
        let server = Server::start(script);
        let output = Weir::new().run(&[
            "load",
            &server.url("/"),
            "-n",
            "40",
            "-c",
            "2",
            "--format",
            "json",
            "--pipeline",
            pipeline,
        ]);
        let run = output.json();
        assert_eq!(run.requests.total, 40);
        if pipeline == "1" {
            assert_eq!((run.requests.ok, run.connections.opened), (40, 40));
        } else {
            // What was behind in the pipeline went with the connection: said, not hidden.
            assert_eq!(run.requests.ok + run.failures_of("closed") + run.failures_of("reset"), 40);
            assert!(run.requests.ok >= 10, "{}", run.requests.ok);
        }
    }
}

#[test]
fn hundreds_of_users_meet_no_failure_of_our_own_making() {
    for flags in [["--users", "400", "--loops", "5"].as_slice(), &["--users", "400", "--loops", "2", "--no-keepalive"]]
    {
        let server = Server::hello();
        let run = load(&server.url("/"), flags);
        assert_eq!((run.requests.ok, run.requests.failed), (server.requests(), 0), "{:?}", run.target.failure_details);
        assert!(run.requests.ok == 2000 || run.requests.ok == 800);
    }
}

#[test]
fn the_warm_up_is_left_out_of_the_result_and_not_of_the_series() {
    // The first responses are failures, so that one warm-up request in the result would show.
    let script = |seen: &weir_testing::Seen| {
        let reply = if seen.number < 2 { Reply::status(503, "") } else { Reply::ok("hello") };
        reply.after(Duration::from_millis(20))
    };
    let server = Server::start(script);
    let run = load(&server.url("/"), &["-c", "2", "-d", "6s", "--warmup", "3s"]);
    assert!(close(run.duration_s, 3.0, 1e-6) && close(run.warmup_s, 3.0, 1e-6));
    assert!(run.requests.total < server.requests());
    assert_eq!((run.requests.failed, run.requests.ok), (0, run.requests.total), "{:?}", run.failures);
    let all = run.series.iter().map(|point| (point.ok, point.failed));
    let (ok, failed) = all.fold((0, 0), |(ok, failed), point| (ok + point.0, failed + point.1));
    assert_eq!((ok + failed, failed), (server.requests(), 2));
}

#[test]
fn stages_of_users_are_a_closed_loop() {
    let server = Server::hello();
    let run = weir_testing::load(&server.url("/"), &["--stages", "0-4u/400ms,4u/4s,1u/400ms"]);
    assert_eq!((run.connections.max, run.connections.opened, run.requests.failed), (4, 4, 0));
    assert!((run.duration_s - 4.8).abs() < 0.01 && run.requests.total > 10, "{run:?}");
    let weir = Weir::new();
    for (flags, expected) in [
        (["--stages", "5u/1s", "--users", "3"], "cannot be combined with --users"),
        (["--stages", "5u/1s", "-n", "3"], "--stages with users and --requests"),
        (["--stages", "5u/1s,5/1s", "-c", "1"], "the others are of users"),
    ] {
        let output = weir.run(&[&["load", "http://127.0.0.1:1/"], flags.as_slice()].concat());
        assert!(output.code == 2 && output.one_line().contains(expected), "{output:?}");
    }
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_closed_loop_obeys_littles_law() {
        let server = Server::start(|seen| Reply::ok("hello").after(Duration::from_millis(2 + seen.number % 7)));
        for flags in [&["-d", "1s", "-t", "1"][..], &["-d", "1s", "-t", "2"], &["-d", "2s", "--warmup", "1s"]] {
            let run = load(&server.url("/"), &[&["-c", "10"], flags].concat());
            let product = run.rate_per_s.achieved * run.response_ms.mean.unwrap() / 1e3;
            assert!(close(product, run.in_flight_mean, 0.05), "X R = {product}, N = {}", run.in_flight_mean);
            assert!(close(run.in_flight_mean, 10.0, 0.05), "{}", run.in_flight_mean);
        }
    }

    #[test]
    fn users_start_evenly_over_the_ramp_up() {
        for (threads, extra) in [("1", ["-n", "30"]), ("2", ["-d", "1m"])] {
            let server = Server::start(|_| Reply::ok("hello").after(Duration::from_millis(700)));
            let users = ["--users", "30", "--ramp-up", "660ms", "--loops", "1", "-t", threads];
            let run = load(&server.url("/"), &[users.as_slice(), &extra].concat());
            assert_eq!(run.requests.total, 30);
            let seen = server.seen();
            let first = seen[0].at;
            let mut offsets: Vec<f64> =
                seen.iter().enumerate().map(|(i, seen)| (seen.at - first).as_secs_f64() - i as f64 * 0.022).collect();
            offsets.sort_by(f64::total_cmp);
            // The first one may itself be noticed late.
            let middle = offsets[15];
            let mut late: Vec<f64> = offsets.iter().map(|offset| (offset - middle).abs()).collect();
            late.sort_by(f64::total_cmp);
            // All at once, half of them would be 165 ms or more away from the middle, and the last one 640 ms early.
            assert!(late[15] < 0.08 && late[29] < 0.3, "half of them within four steps, -t {threads}: {late:?}");
        }
    }
}
