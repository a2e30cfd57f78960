//! Formats, samples and rotation of a gateway's access log.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{Reply, Server, Serving, Weir, until};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway in front of a server, with these flags of the access log `log`.
fn gate(server: &Server, args: &[&str]) -> Serving {
    let url = server.url("");
    Serving::gate_in(Weir::new(), &[&["--upstream", &url, "--access-log", "log"], args].concat())
}

#[test]
fn lines_are_in_the_formats_of_other_servers() {
    let server =
        Server::start(|seen| if seen.line().contains("/no") { Reply::status(404, "no") } else { Reply::ok("hello") });
    let gate = gate(&server, &["--access-log-format", "combined"]);
    let mut connection = gate.connect();
    connection.send("GET /a?b=%22 HTTP/1.1\r\nHost: test\r\nUser-Agent: a \"b\"\r\nReferer: http://x/\r\n\r\n");
    connection.answer();
    connection.get("/no");
    until("both lines", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").lines().count() == 2);
    let log = gate.weir.read("log");
    let (first, second) = log.split_once('\n').unwrap();
    assert!(first.starts_with("127.0.0.1 - - ["), "{first}");
    assert!(first.ends_with(" +0000] \"GET /a?b=%22 HTTP/1.1\" 200 5 \"http://x/\" \"a \\x22b\\x22\""), "{first}");
    assert!(second.trim_end().ends_with("\"GET /no HTTP/1.1\" 404 2 \"-\" \"-\""), "{second}");
    // weir's own reader of logs reads it.
    let output = gate.weir.run(&["replay", "log", "--dry-run"]);
    assert!(output.code == 0, "{output:?}");
    gate.stop();
}

#[test]
fn a_template_has_what_the_operator_wants() {
    let server = Server::hello();
    let gate = gate(&server, &["--access-log-format", "$status $request_method $route $http_x_id $ssl_protocol"]);
    let mut connection = gate.connect();
    connection.send("GET /a HTTP/1.1\r\nHost: test\r\nX-Id: 7\r\n\r\n");
    connection.answer();
    until("the line", PATIENCE, || gate.weir.path("log").exists() && gate.weir.read("log").ends_with('\n'));
    let line = gate.weir.read("log");
    assert_eq!(line, "200 GET /{*rest} 7 -\n");
    gate.stop();
    for (format, expected) in [("clf", "write json, common, combined"), ("$stauts", "unknown variable '$stauts'")] {
        let url = server.url("");
        let args = ["gate", "--upstream", &url, "--access-log", "-", "--access-log-format", format];
        let output = Weir::new().run(&args);
        assert!(output.code == 2 && output.one_line().contains(expected), "{output:?}");
    }
}

#[test]
fn a_sample_has_its_fraction_and_every_failure() {
    let server =
        Server::start(|seen| if seen.line().contains("/bad") { Reply::status(500, "") } else { Reply::ok("hello") });
    let gate = gate(&server, &["--access-log-sample", "10%", "--access-log-format", "$request_uri"]);
    let mut connection = gate.connect();
    for _ in 0..500 {
        connection.get("/good");
    }
    for _ in 0..20 {
        connection.get("/bad");
    }
    let folder = gate.weir.path("log");
    until("the failures", PATIENCE, || fs::read_to_string(&folder).unwrap_or_default().matches("/bad").count() == 20);
    let good = gate.weir.read("log").matches("/good").count();
    assert!((25..=80).contains(&good), "{good} of 500");
    gate.stop();
}

#[test]
fn a_signal_opens_the_file_again() {
    let server = Server::hello();
    let gate = gate(&server, &["--access-log-format", "$request_uri"]);
    let lines = |name: &str| fs::read_to_string(gate.weir.path(name)).unwrap_or_default().lines().count();
    gate.get("/first");
    until("the first line", PATIENCE, || lines("log") == 1);
    fs::rename(gate.weir.path("log"), gate.weir.path("log.1")).unwrap();
    gate.get("/second");
    until("the second line", PATIENCE, || lines("log.1") == 2);
    gate.signal(Signal::HUP);
    until("the new file", PATIENCE, || gate.weir.path("log").exists());
    gate.get("/third");
    until("the third line", PATIENCE, || lines("log") == 1);
    assert_eq!(lines("log.1"), 2);
    let output = gate.stop();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
}
