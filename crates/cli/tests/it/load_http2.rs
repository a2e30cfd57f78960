//! HTTP/2: what a service sees of the load, and what weir counts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the service's end of a test has a clock of its own")]

use std::time::Duration;

use weir_histogram::percentiles::Percentiles;
use weir_testing::{Authority, Http2Reply, Http2Service, Reply, Server, Weir, load};

const NAME: &str = "service.test";

fn echo() -> Http2Service {
    Http2Service::build().start(|seen| Http2Reply::ok(seen.body.clone()))
}

#[test]
fn connections_have_as_many_streams_as_they_may() {
    let server = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(5)));
    let run = load(&server.url("/"), &["--h2c", "-c", "3", "--streams", "8", "-n", "600", "-t", "2"]);
    assert_eq!((run.requests.ok, run.requests.failed, server.requests()), (600, 0, 600));
    assert_eq!((server.connections(), run.connections.opened, server.most_streams()), (3, 3, 8));
    assert_eq!((run.target.http.as_deref(), run.target.server.as_deref()), (Some("HTTP/2"), Some("h2 of tests")));
    let http2 = run.http2.unwrap();
    assert_eq!((http2.streams, http2.goaways, http2.resent), (8, 0, 0));
    assert!(http2.errors.is_empty() && http2.settings_ms.max.unwrap() > 0.0, "{http2:?}");
}

#[test]
fn users_share_connections() {
    let server = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(2)));
    let run = load(&server.url("/"), &["--h2c", "--users", "20", "--loops", "7", "--streams", "5", "-t", "2"]);
    assert_eq!((run.requests.ok, server.requests()), (140, 140));
    assert_eq!((server.connections(), server.most_streams()), (4, 5));
}

#[test]
fn the_open_loop_fills_a_connection_before_it_makes_another() {
    let server = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(50)));
    let run = load(&server.url("/"), &["--h2c", "-r", "400", "-d", "1s", "--streams", "10", "-c", "6"]);
    assert_eq!((run.requests.ok, run.requests.failed), (400, 0));
    // 20 requests in the system on average, and some more while the first connections are made.
    assert!((2..=6).contains(&server.connections()), "{}", server.connections());
    assert!(server.most_streams() <= 10, "{}", server.most_streams());
}

#[test]
fn a_backlog_waits_for_streams() {
    let server = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(50)));
    let run =
        load(&server.url("/"), &["--h2c", "-r", "200", "-n", "100", "--streams", "2", "-c", "2", "--timeout", "9s"]);
    assert_eq!((run.requests.ok, server.requests(), server.connections()), (100, 100, 2));
    // 4 streams of 50 ms are 80 requests per second.
    assert!(run.requests.waited > 20, "{:?}", run.requests);
    assert!(run.response_ms.max.unwrap() > run.service_ms.max.unwrap() + 100.0, "{:?}", run.response_ms);
}

#[test]
fn a_service_that_permits_fewer_streams_is_obeyed() {
    let server = Http2Service::build().max_streams(3).start(|_| Http2Reply::after(Duration::from_millis(2)));
    for flags in [
        ["-c", "2", "-n", "300"].as_slice(),
        &["--users", "20", "--loops", "10"],
        &["-r", "300", "-d", "500ms", "-c", "4"],
    ] {
        let run = load(&server.url("/"), &[&["--h2c", "--streams", "10"], flags].concat());
        assert_eq!(run.requests.failed, 0, "{flags:?} {:?}", run.target.failure_details);
        assert_eq!(run.http2.unwrap().permitted_streams, Some(3));
    }
    assert!(server.most_streams() <= 3, "{}", server.most_streams());
}

#[test]
fn bodies_of_any_size_pass_windows_of_any_size_both_ways() {
    for (window, own) in [(1024, "70000"), (65_535, "1024"), (8 << 20, "8388608")] {
        let server = Http2Service::build().window(window).start(|seen| Http2Reply::ok(seen.body.clone()));
        let weir = Weir::new();
        for size in [0, 1, 1023, 1024, 16_384, 16_385, 300_000] {
            let body: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            weir.write("body", &body);
            let run = weir.load(
                &server.url("/"),
                &[
                    "--h2c",
                    "--h2-window",
                    own,
                    "-c",
                    "2",
                    "--streams",
                    "3",
                    "-n",
                    "12",
                    "-m",
                    "POST",
                    "-b",
                    "@body",
                    "-q",
                ],
            );
            assert_eq!((run.requests.ok, run.bytes.body_in), (12, 12 * size), "{window} {own} {size}");
            assert!(run.bytes.written >= 12 * size && run.bytes.read >= 12 * size, "{:?}", run.bytes);
        }
    }
}

#[test]
fn a_request_arrives_as_it_was_given() {
    let server = Http2Service::build().start(|seen| {
        let named = |name: &str| seen.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let is_right = seen.method == "PUT"
            && seen.path == "/a?b=c"
            && named("x-mine").as_deref() == Some("yes")
            && named("content-length").as_deref() == Some("5")
            && named("connection").is_none()
            && named("host").is_none()
            && seen.body == b"hello";
        Http2Reply::status(if is_right { 200 } else { 400 }, "")
    });
    let flags = ["--h2c", "-n", "50", "-c", "2", "-m", "PUT", "-H", "X-Mine: yes", "-H", "Connection: keep-alive"];
    let run = load(&server.url("/a?b=c"), &[&flags[..], &["-b", "hello"]].concat());
    assert_eq!((run.requests.ok, run.requests.failed), (50, 0));
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let server = echo();
    let run = load(&server.url("/"), &["--h2c", "--no-keepalive", "-n", "30", "-c", "3"]);
    assert_eq!((run.requests.ok, server.requests(), run.connections.opened), (30, 30, 30));
}

#[test]
fn tls_is_asked_for_http2_and_falls_back_if_it_may() {
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "ca.pem");
    let config = authority.service(NAME);
    let modern = Http2Service::build().tls(&config).start(|_| Http2Reply::ok("hello"));
    let old = Server::build().tls(config).start(|_| Reply::ok("hello"));
    let flags = |address: &str, more: &[&str]| {
        let flags = ["-n", "60", "-c", "2", "-t", "1", "--cacert", "ca.pem", "--connect-to", address];
        [&flags[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |address: &str, more: &[&str]| {
        let flags = flags(address, more);
        weir.load("https://service.test/", &flags.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for preference in ["--http2", "--http2=only"] {
        let run = run(&modern.address(), &[preference, "--streams", "4"]);
        assert_eq!((run.requests.ok, run.target.http.as_deref()), (60, Some("HTTP/2")));
        assert!(run.target.tls.is_some());
    }
    let fallen = run(&old.address(), &["--http2", "--streams", "4"]);
    assert_eq!((fallen.requests.ok, fallen.target.http.as_deref()), (60, Some("HTTP/1.1")));
    assert_eq!((fallen.http2.unwrap().settings_ms.max, fallen.connections.opened), (None, 2));
    let flags = flags(&old.address(), &["--http2=only"]);
    let words =
        [&["load", "https://service.test/"], &flags.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat();
    let output = weir.run(&words);
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.one_line().contains("it does not offer HTTP/2"), "{output:?}");
}

#[test]
fn scenarios_have_cookies_captures_and_versions_over_shared_connections() {
    let server = Http2Service::build().start(|seen| {
        let cookie = seen.headers.get("cookie").map(|value| value.to_str().unwrap().to_owned());
        match (seen.path.as_str(), cookie) {
            ("/login", _) => Http2Reply::Response {
                status: 200,
                headers: vec![
                    ("set-cookie", format!("id={}", seen.number)),
                    ("content-type", "application/json".into()),
                ],
                body: format!("{{\"token\": \"t{}\"}}", seen.number).into_bytes(),
                after: Duration::ZERO,
            },
            // Each user has its own cookie, and its own capture.
            (path, Some(cookie)) if path == format!("/items?t=t{}", &cookie[3..]) => Http2Reply::ok("items"),
            _ => Http2Reply::status(403, "wrong"),
        }
    });
    let weir = Weir::new();
    let text = "GET {{base}}/login\nHTTP/2 200\n[Captures]\ntoken: jsonpath \"$.token\"\n\nGET {{base}}/items?t={{token}}\n\
                HTTP/2 200\n[Asserts]\nbody == \"items\"\nversion == \"2\"\nheader \"server\" == \"h2 of tests\"\n";
    weir.write("shop.hurl", text.replace("{{base}}", &server.url("")));
    for flags in [["--users", "12"].as_slice(), &["-r", "300"]] {
        let run = weir.load("shop.hurl", &[&["--h2c", "--streams", "4", "-n", "120"], flags].concat());
        assert_eq!((run.requests.ok, run.requests.failed), (240, 0), "{flags:?} {:?}", run.steps[1].samples);
        assert_eq!(run.steps.iter().map(|step| step.ok).collect::<Vec<_>>(), [120, 120]);
    }
    assert!(server.connections() <= 3 + 1 + 120_u64.div_ceil(4), "{}", server.connections());
}

#[test]
fn an_origin_of_a_scenario_that_speaks_http1_is_reached_by_that() {
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "ca.pem");
    let config = authority.service("127.0.0.1");
    let modern = Http2Service::build().tls(&config).start(|_| Http2Reply::ok("new"));
    let old = Server::build().tls(config).start(|_| Reply::ok("old"));
    let text = format!(
        "GET https://{}/\nHTTP 200\n[Asserts]\nversion == \"2\"\nbody == \"new\"\n\nGET https://{}/\nHTTP 200\n[Asserts]\n\
         version == \"1.1\"\nbody == \"old\"\n",
        modern.address(),
        old.address()
    );
    weir.write("both.hurl", text);
    let flags = ["--http2", "--streams", "5", "--users", "10", "-n", "100", "--cacert", "ca.pem"];
    let run = weir.load("both.hurl", &flags);
    assert_eq!((run.requests.ok, run.requests.failed), (200, 0), "{:?}", run.steps[1].samples);
    assert_eq!((modern.requests(), old.requests()), (100, 100));
}

#[test]
fn what_does_not_go_together_is_one_line() {
    let weir = Weir::new();
    let cases = [
        (["http://127.0.0.1:1/", "--http2"].as_slice(), "--http2 needs an https:// URL; --h2c is HTTP/2 without TLS"),
        (&["https://127.0.0.1:1/", "--h2c"], "--h2c is HTTP/2 without TLS; --http2 is for https:// URLs"),
        (&["http://127.0.0.1:1/", "--streams", "2"], "--streams needs HTTP/2: --http2, or --h2c without TLS"),
        (&["http://127.0.0.1:1/", "--h2-window", "99999"], "--h2-window needs HTTP/2: --http2, or --h2c without TLS"),
        (&["http://127.0.0.1:1/", "--h2c", "--h2-window", "5"], "5 is out of range; give 1024 to 2147483647"),
        (&["http://127.0.0.1:1/", "--h2c", "--streams", "0"], "0 is out of range; give 1 to 100000"),
        (&["http://127.0.0.1:1/", "--h2c", "--pipeline", "2"], "--pipeline is for HTTP/1.1; HTTP/2 has --streams"),
        (&["http://127.0.0.1:1/", "--h2c", "--streams", "2", "--no-keepalive"], "streams share open connections"),
        (&["http://127.0.0.1:1/", "--http2=maybe"], "write --http2 or --http2=only"),
        (&["http://127.0.0.1:1/", "--h2c", "-m", "CONNECT"], "CONNECT"),
    ];
    for (flags, expected) in cases {
        let output = weir.run(&[&["load"], flags].concat());
        assert_eq!(output.code, 2, "{flags:?} {output:?}");
        assert!(output.one_line().contains(expected), "{flags:?} {output:?}");
    }
}

/// Response times of 200 requests a second to a service that stands still for half of each second.
fn stalled_load() -> Percentiles {
    let began = std::time::Instant::now();
    let server = Http2Service::build().start(move |_| {
        // Stands still for the last half second of each second.
        let phase = began.elapsed().as_millis() % 1000;
        if phase >= 500 {
            std::thread::sleep(Duration::from_millis(1000 - phase as u64));
        }
        Http2Reply::ok("fine")
    });
    let run = load(&server.url("/"), &["--h2c", "--streams", "100", "-c", "4", "-r", "200", "-d", "4s"]);
    assert_eq!((run.requests.ok, run.requests.failed), (800, 0), "{:?}", run.failures);
    run.response_ms
}

#[test]
fn a_stall_of_the_service_counts_from_the_intended_start() {
    // Half of the requests come in a stall, and wait evenly from 0 to 0.5 s; on a busy machine they wait longer.
    let response = stalled_load();
    assert!(response.p75 >= Some(200.0) && response.p99 > Some(450.0), "{response:?}");
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn nothing_but_the_stall_of_the_service_counts() {
        let response = stalled_load();
        assert!((200.0..500.0).contains(&response.p75.unwrap()), "{response:?}");
    }

    #[test]
    fn times_are_those_of_the_service_and_the_law_of_little_holds() {
        let server = Http2Service::build().start(|seen| {
            let delay = if seen.number.is_multiple_of(10) { 60 } else { 20 };
            Http2Reply::after(Duration::from_millis(delay))
        });
        for flags in [["-r", "200", "-d", "3s", "-c", "2"].as_slice(), &["-c", "1", "-n", "600"]] {
            let run = load(&server.url("/"), &[&["--h2c", "--streams", "40"], flags].concat());
            assert_eq!((run.requests.ok, run.requests.failed), (600, 0), "{flags:?}");
            let service = &run.service_ms;
            // Never less than the service has waited.
            assert!(service.p50 >= Some(19.9) && service.p95 >= Some(59.9), "{flags:?} {service:?}");
            assert!(service.min >= Some(19.9) && run.first_byte_ms.p50 <= service.p50, "{flags:?} {service:?}");
            assert!(service.p50 < Some(40.0), "{flags:?} {service:?}");
            let by_law = run.rate_per_s.achieved * run.response_ms.mean.unwrap() / 1e3;
            let ratio = run.in_flight_mean / by_law;
            assert!((ratio - 1.0).abs() < 0.1, "{flags:?} {ratio}");
        }
    }
}
