//! HTTP/2 in trouble: resets, connections that end, services that are silent or speak something else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Http2Reply, Http2Service, Reason, Server, Weir, load};

#[test]
fn connections_that_end_in_order_lose_no_request_and_count_none_twice() {
    for flags in [
        ["-c", "3", "-n", "900"].as_slice(),
        &["--users", "24", "-n", "900"],
        &["-r", "900", "-n", "900", "-c", "3"],
        // Most of them wait for a new connection behind the end.
        &["-r", "18000", "-d", "50ms", "-c", "1"],
        &["-c", "3", "-n", "900", "--check", "status == 200"],
    ] {
        let server = Http2Service::build().goaway_after(20).start(|_| Http2Reply::after(Duration::from_millis(1)));
        let run = load(&server.url("/"), &[&["--h2c", "--streams", "8"], flags].concat());
        assert_eq!((run.requests.ok, run.requests.failed), (900, 0), "{flags:?} {:?}", run.target.failure_details);
        assert_eq!(server.requests(), 900, "{flags:?}");
        let http2 = run.http2.unwrap();
        assert!(http2.goaways >= 900 / 30 && server.connections() >= 900 / 30, "{flags:?} {http2:?}");
    }
}

#[test]
fn a_stream_that_is_reset_fails_alone_and_by_its_code() {
    let server = Http2Service::build().start(|seen| match seen.number % 4 {
        0 => Http2Reply::Reset(Reason::REFUSED_STREAM),
        1 => Http2Reply::Reset(Reason::ENHANCE_YOUR_CALM),
        _ => Http2Reply::ok("fine"),
    });
    for flags in [["-c", "2"].as_slice(), &["--users", "8"], &["--users", "8", "--check", "status == 200"]] {
        let run = load(&server.url("/"), &[&["--h2c", "--streams", "4", "-n", "400"], flags].concat());
        assert_eq!((run.requests.ok, run.requests.failed), (200, 200), "{flags:?}");
        assert_eq!(run.failures.get("reset"), Some(&200), "{flags:?} {:?}", run.failures);
        let errors = run.http2.unwrap().errors;
        assert_eq!(errors.get("REFUSED_STREAM"), Some(&100), "{flags:?} {errors:?}");
        assert_eq!(errors.get("ENHANCE_YOUR_CALM"), Some(&100), "{flags:?} {errors:?}");
        assert!(run.connections.opened <= 4, "{flags:?} {:?}", run.connections);
    }
}

#[test]
fn a_response_that_never_comes_is_a_timeout_and_the_others_go_on() {
    let server = Http2Service::build().start(|seen| match seen.number % 50 {
        0 => Http2Reply::Silence,
        _ => Http2Reply::ok("fine"),
    });
    let flags = ["--h2c", "-c", "1", "--streams", "12", "-n", "500", "--timeout", "5s", "-q"];
    let run = load(&server.url("/"), &flags);
    assert_eq!((run.requests.ok, run.requests.failed), (490, 10), "{:?}", run.failures);
    assert_eq!(run.failures.get("timeout"), Some(&10));
    // It did not end: some streams of it had responses.
    assert!(run.connections.opened <= 11, "{:?}", run.connections);
}

#[test]
fn a_service_that_speaks_something_else_is_said_to() {
    let server = Server::hello();
    let weir = Weir::new();
    let output = weir.run(&["load", &server.url("/"), "--h2c", "-n", "3"]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.stderr.contains("it speaks HTTP/1.1"), "{output:?}");
}

/// The error code in a line of the log, if it has one.
fn logged_codes(weir: &Weir) -> Vec<String> {
    let log = weir.read("run.jtl");
    let codes = ["REFUSED_STREAM", "ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"];
    let of = |line: &str| codes.iter().find(|code| line.contains(&format!(",{code},"))).map(|code| (*code).to_owned());
    log.lines().skip(1).filter(|line| line.contains(",false,")).filter_map(of).collect()
}

#[test]
fn the_log_has_the_codes_of_streams_also_of_steps_and_scripts() {
    let server = Http2Service::build().start(|seen| match seen.number % 3 {
        0 => Http2Reply::Reset(Reason::REFUSED_STREAM),
        1 => Http2Reply::Reset(Reason::ENHANCE_YOUR_CALM),
        _ => Http2Reply::ok("fine"),
    });
    let weir = Weir::new();
    weir.write("one.hurl", format!("GET {}\nHTTP 200\n", server.url("/")));
    weir.write("one.lua", "request = function() return wrk.format('GET', '/x') end");
    for (what, flags) in [
        (server.url("/"), ["-c", "2"].as_slice()),
        (server.url("/"), &["-c", "2", "--check", "status == 200"]),
        ("one.hurl".into(), &["--users", "4"]),
        (server.url("/"), &["-s", "one.lua", "-c", "2"]),
    ] {
        let flags = [&["--h2c", "--streams", "2", "-n", "60", "-t", "1", "--jtl", "run.jtl"], flags].concat();
        let run = weir.load(&what, &flags);
        assert_eq!((run.requests.ok, run.failures.get("reset")), (20, Some(&40)), "{flags:?} {:?}", run.failures);
        let codes = logged_codes(&weir);
        let count = |code: &str| codes.iter().filter(|logged| *logged == code).count();
        assert_eq!((count("REFUSED_STREAM"), count("ENHANCE_YOUR_CALM")), (20, 20), "{flags:?} {codes:?}");
    }
}

#[test]
fn requests_of_one_string_are_streams_whose_responses_come_in_any_order() {
    // Responses come in the opposite order of the requests.
    let server = Http2Service::build().start(|seen| {
        let place = u64::from(seen.path.as_bytes()[1] - b'a');
        let body = [seen.path.as_bytes(), seen.method.as_bytes(), &seen.body].concat();
        let body = if seen.method == "HEAD" { Vec::new() } else { body };
        let after = Duration::from_millis(10 + 60 * (2 - place));
        Http2Reply::Response { status: 200, headers: Vec::new(), body, after }
    });
    let weir = Weir::new();
    let script = "function request()\n return wrk.format('GET', '/a') .. wrk.format('POST', '/b', nil, 'x\\r\\n\\r\\ny') .. \
                  wrk.format('HEAD', '/c')\nend\n\
                  bodies = ''\nfunction response(status, headers, body) bodies = bodies .. #body .. body .. ' ' end\n\
                  local threads = {}\nfunction setup(thread) threads[1] = thread end\n\
                  function done() print(threads[1]:get('bodies')) end";
    weir.write("three.lua", script);
    let flags = ["-q", "-s", "three.lua", "--h2c", "-c", "1", "-t", "1", "-n", "2", "-o", "run.json", "-f", "wrk"];
    let output = weir.run(&[&["load", &server.url("/"), "--streams", "4"], &flags[..]].concat());
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    assert_eq!((run.requests.ok, run.requests.failed, run.iterations.unwrap().ok), (6, 0, 2), "{output:?}");
    assert_eq!((server.requests(), server.connections(), server.most_streams()), (6, 1, 3));
    let expected = "0 12/bPOSTx\r\n\r\ny 5/aGET ".repeat(2);
    assert!(output.stdout.contains(&expected), "{output:?}");
}

#[test]
fn a_failed_request_of_one_string_fails_its_iteration_behind_the_last_one() {
    let server = Http2Service::build().start(|seen| match seen.path.as_str() {
        "/a" => Http2Reply::Reset(Reason::INTERNAL_ERROR),
        "/b" if seen.number == 4 => Http2Reply::Silence,
        _ => Http2Reply::after(Duration::from_millis(5)),
    });
    let weir = Weir::new();
    weir.write("two.lua", "request = function() return wrk.format('GET', '/a') .. wrk.format('GET', '/b') end");
    for flags in [["--streams", "2"].as_slice(), &["--streams", "1"], &["--streams", "2", "-r", "100"]] {
        let own = ["-q", "-s", "two.lua", "--h2c", "-c", "3", "-n", "60", "--timeout", "4s", "-o", "run.json"];
        let output = weir.run(&[&["load", &server.url("/")], &own[..], flags].concat());
        // No iteration succeeds.
        assert_eq!(output.code, 3, "{output:?}");
        let run = Run::from_json(&weir.read("run.json")).unwrap();
        let ok = run.failures.get("timeout").map_or(60, |timeouts| 60 - timeouts);
        assert_eq!((run.requests.total, run.requests.ok), (120, ok), "{flags:?} {:?}", run.failures);
        assert_eq!(run.iterations.unwrap().failed, 60, "{flags:?}");
        assert!(run.failures.get("timeout").is_none_or(|timeouts| *timeouts < 5), "{flags:?} {:?}", run.failures);
    }
}
