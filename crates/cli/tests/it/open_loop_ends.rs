//! The end of an open loop: every arrival of its time is sent or counted as dropped, whatever the requests come from.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Reply, Server, Weir, stall_once, until};

const SCRIPT: &str = "function request() return wrk.format('GET', '/x') end";

/// A folder with a script, and with a log of 200 requests in each of three seconds.
fn folder() -> Weir {
    let weir = Weir::new();
    weir.write("users.lua", SCRIPT);
    let line =
        |n: u32| format!("127.0.0.1 - - [10/Oct/2000:13:55:{:02} +0000] \"GET /x HTTP/1.1\" 200 2\n", 30 + n / 200);
    weir.write("access.log", (0..600).map(line).collect::<String>());
    weir
}

/// Output of a command whose process stands still from `requests` requests, before the end of its second, until after it.
fn stopped_at_the_end(args: &[&str], requests: u64) -> (Run, u64) {
    let (weir, server) = (folder(), Server::hello());
    let url = server.url("/");
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "URL" { &url } else { *arg }).collect();
    let running = weir.start(&[&args, ["-d", "1s", "--format", "json", "-q"].as_slice()].concat());
    until("most requests", Duration::from_secs(60), || server.requests() >= requests);
    stall_once(running.pid(), Duration::from_millis(600));
    let run = running.finish().json();
    (run, server.requests())
}

#[test]
fn a_generator_that_stands_still_at_the_end_sends_every_arrival() {
    for args in [
        ["load", "URL", "-r", "200"].as_slice(),
        &["load", "-s", "users.lua", "URL", "-r", "200"],
        &["replay", "access.log", "--target", "URL"],
    ] {
        let (run, seen) = stopped_at_the_end(args, 120);
        assert_eq!((run.requests.total, run.requests.ok, seen), (200, 200, 200), "{args:?}: {run:?}");
        assert_eq!(run.iterations.map_or(0, |iterations| iterations.unfinished), 0, "{args:?}");
    }
}

#[test]
fn arrivals_that_wait_for_a_user_at_the_end_are_dropped_and_counted() {
    let server = Server::start(|_| Reply::ok("slow").after(Duration::from_millis(300)));
    let weir = folder();
    let url = server.url("/");
    for args in [
        ["load", "-s", "users.lua", &url, "-r", "100"].as_slice(),
        &["replay", "access.log", "--target", &url, "--speed", "0.5"],
    ] {
        let output = weir.run(&[args, &["-c", "4", "-d", "1s", "--format", "json", "-q"]].concat());
        let (run, before) = (output.json(), server.requests());
        assert_eq!(run.requests.total, 100, "{args:?}: {run:?}");
        assert_eq!(run.requests.total, run.requests.ok + run.requests.dropped, "{args:?}: {run:?}");
        assert!(run.requests.ok >= 4 && before >= 4, "{run:?}");
    }
}
