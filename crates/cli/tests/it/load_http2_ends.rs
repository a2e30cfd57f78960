//! HTTP/2 in trouble: resets, connections that end, services that are silent or speak something else.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_testing::{Http2Reply, Http2Service, Reason, Server, Weir, load};

#[test]
fn connections_that_end_in_order_lose_no_request_and_count_none_twice() {
    for flags in [
        ["-c", "3", "-n", "900"].as_slice(),
        &["--users", "24", "-n", "900"],
        &["-r", "900", "-n", "900", "-c", "3"],
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
    let flags = ["--h2c", "-c", "1", "--streams", "6", "-n", "500", "--timeout", "400ms"];
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

#[test]
fn a_pipeline_of_a_script_needs_http1() {
    let server = Http2Service::build().start(|_| Http2Reply::ok("fine"));
    let weir = Weir::new();
    weir.write("one.lua", "request = function() return wrk.format('GET', '/x') end");
    let run = weir.load(&server.url("/"), &["-s", "one.lua", "--h2c", "--streams", "3", "-c", "6", "-n", "60"]);
    assert_eq!((run.requests.ok, run.requests.failed, server.requests()), (60, 0, 60));
    weir.write("two.lua", "request = function() return wrk.format('GET', '/x') .. wrk.format('GET', '/y') end");
    let output = weir.run(&["load", &server.url("/"), "-s", "two.lua", "--h2c", "-n", "6"]);
    assert_eq!((output.code, server.requests()), (3, 60), "{output:?}");
    assert!(output.stderr.contains("need HTTP/1.1"), "{output:?}");
}
