//! Loads with the rate and the mix of an access log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use super::replay::{combined, even, intended, lines};
use weir_testing::{Server, Weir};

#[test]
fn a_load_has_the_rate_of_a_log() {
    let (weir, server) = (Weir::new(), Server::hello());
    // 40 requests in the first 4 seconds, none in the next 4, and 80 in the last 4.
    let log =
        [even(40, 4), even(160, 8).lines().skip(80).map(|line| line.replace("12:00:0", "12:00:1") + "\n").collect()];
    let log = log.concat().replace("12:00:14", "12:00:08").replace("12:00:15", "12:00:09");
    weir.write("access.log", log.replace("12:00:16", "12:00:10").replace("12:00:17", "12:00:11"));
    let url = server.url("/other");
    let output =
        weir.run(&["load", &url, "--rate-from", "access.log", "--speed", "10x", "--scale", "2", "--jtl", "log"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stderr.contains(
            "--rate-from: 120 requests in 12.0 s of the log (combined, 0 of 120 lines left out); 240 in 1.2 s"
        ),
        "{}",
        output.stderr
    );
    let times = intended(&weir, "log");
    assert_eq!((times.len(), server.requests()), (240, 240));
    let within = |from: u64, to: u64| times.iter().filter(|at| (from..to).contains(*at)).count();
    assert_eq!((within(0, 398), within(402, 798), within(802, 1201)), (80, 0, 159), "{times:?}");
    // The duration cuts it off.
    let run = weir.load(&url, &["--rate-from", "access.log", "--speed", "10x", "-d", "200ms", "-q"]);
    assert_eq!(run.requests.total, 20);
}

#[test]
fn mistakes_of_a_rate_from_a_log() {
    let weir = Weir::new();
    weir.write("words", "hello\n");
    weir.write("access.log", even(2, 1));
    for (args, part) in [
        (&["--rate-from", "words"][..], "words:1: unknown log format"),
        (&["--rate-from", "access.log", "--rate", "5"], "'--rate <RATE>'"),
        (&["--rate-from", "access.log", "--users", "5"], "'--users <N>'"),
        (&["--rate-from", "access.log", "-d", "100ms"], "--rate-from: the first 0.1 s of the log have 0.2 requests"),
        (&["--scale", "2"], "--rate-from"),
        (&["--rate-from", "access.log", "--log-pattern", "x"], "--log-pattern: unknown format 'x'"),
    ] {
        let output = weir.run(&[&["load", "http://127.0.0.1:9/"], args].concat());
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.one_line().contains(part), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn a_load_has_the_mix_of_a_log() {
    let (weir, server) = (Weir::new(), Server::hello());
    let log = [
        even(30, 3),
        combined(&[(1, "GET /a?b={{c}}", 200, "0.000"), (1, "POST /a", 200, "0.000")]).repeat(10),
        combined(&[(2, "GET /gone", 404, "0.000")]).repeat(9),
    ];
    weir.write("access.log", log.concat());
    let run = weir.load(&server.url(""), &["--mix-from", "access.log", "-r", "1000", "-n", "400"]);
    assert_eq!((run.requests.total, run.requests.ok), (400, 400));
    let with = |part: &str| lines(&server).iter().filter(|line| line.contains(part)).count();
    assert_eq!((with("GET /items/") + with("GET /a?b=%7B%7Bc%7D%7D "), with("/gone")), (400, 0));
    assert!((250..350).contains(&with("GET /items/")), "{} of 400, three quarters of the log", with("GET /items/"));
    let names: Vec<&str> = run.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["GET /items/:id", "GET /a"]);
    for (args, part) in [
        (&["--mix-from", "missing"][..], "cannot read missing"),
        (&["--mix-from", "access.log", "-s", "x.hurl"], "'--scenario <FILE>'"),
        (&["--log-pattern", "common"], "--log-pattern is of a log"),
    ] {
        for command in ["load", "capacity"] {
            let slo: &[&str] = if command == "capacity" { &["--slo", "p99<1s"] } else { &[] };
            let output = weir.run(&[&[command, "http://127.0.0.1:9/"], args, slo].concat());
            assert_eq!(output.code, 2, "{command} {args:?}");
            assert!(output.one_line().contains(part), "{command} {args:?}: {}", output.stderr);
        }
    }
}
