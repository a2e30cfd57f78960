//! `weir gate` on the command line: flags, errors and output.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_testing::{Reply, Running, Server, Serving, Weir};

const GOOD: &str = r#"
[upstreams.backend]
urls = ["http://127.0.0.1:9001"]
[upstreams.other]
urls = ["http://127.0.0.1:9002"]
[policies.quick]
deadline = "1s"
[[routes]]
match = { path = "/a" }
upstream = "backend"
policy = "quick"
[[routes]]
match = { path = "/{*rest}" }
upstream = "other"
policy = "quick"
"#;

const BAD: &str = r#"
[upstreams.backend]
urls = ["http://127.0.0.1:9001"]
[[routes]]
match = { path = "api" }
policy = { deadline = "soon" }
"#;

const ODD: &str = r#"
[upstreams.backend]
urls = ["http://127.0.0.1:9001"]
[policies.quick]
deadline = "1s"
[[routes]]
match = { path = "/{*rest}" }
"#;

/// The error line of invalid arguments.
fn usage_error(args: &[&str]) -> String {
    let output = Weir::new().run(&[&["gate"], args].concat());
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
    output.one_line().to_owned()
}

#[test]
fn check_prints_the_size_of_a_valid_configuration() {
    let weir = Weir::new();
    weir.write("gate.toml", GOOD);
    let output = weir.run(&["gate", "--config", "gate.toml", "--check"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert_eq!(output.stdout, "gate.toml: 2 routes, 2 upstreams, 1 policy: valid\n");
    let output = weir.run(&["gate", "--smart", "http://127.0.0.1:9001", "--check"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "--smart: 2 routes, 1 upstream, 1 policy: valid\n"));
    let output = weir.run(&["gate", "--upstream", "http://127.0.0.1:9001", "--hedge", "p95", "--check"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "--upstream: 1 route, 1 upstream, 1 policy: valid\n"));
}

#[test]
fn each_error_is_a_line_with_its_position() {
    let weir = Weir::new();
    weir.write("gate.toml", BAD);
    for args in [["--config", "gate.toml", "--check"].as_slice(), &["--config", "gate.toml"]] {
        let output = weir.run(&[&["gate"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}");
        let lines: Vec<_> = output.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("weir: gate.toml:5:18: routes[0].match.path: "), "{}", lines[0]);
        assert!(lines[1].starts_with("weir: gate.toml:6:23: routes[0].policy.deadline: "), "{}", lines[1]);
    }
    let output = weir.run(&["gate", "--config", "gate.toml", "--check", "--log-format", "json"]);
    for line in output.stderr.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        assert_eq!(message["level"], "error");
        assert!(message["message"].as_str().unwrap().starts_with("gate.toml:"), "{line}");
    }
}

#[test]
fn warnings_are_notes() {
    let weir = Weir::new();
    weir.write("gate.toml", ODD);
    let output = weir.run(&["gate", "--config", "gate.toml", "--check"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "gate.toml: 1 route, 1 upstream, 1 policy: valid\n"));
    let line = output.one_line();
    assert!(line.starts_with("gate.toml:4:") && line.contains("no route uses this policy"), "{line}");
    assert_eq!(weir.run(&["gate", "--config", "gate.toml", "--check", "-q"]).stderr, "");
}

#[test]
fn missing_files_are_named() {
    assert_eq!(usage_error(&["--config", "gate.toml"]), "cannot read gate.toml: No such file or directory");
    let weir = Weir::new();
    let with_file = GOOD.replace("deadline = \"1s\"", "success = { schema = \"missing.json\" }");
    std::fs::create_dir(weir.path("conf")).unwrap();
    weir.write("conf/gate.toml", with_file);
    let output = weir.run(&["gate", "--config", "conf/gate.toml", "--check"]);
    assert_eq!(output.code, 2);
    let line = output.one_line();
    assert!(line.starts_with("conf/gate.toml:7:") && line.contains("conf/missing.json"), "{line}");
    weir.write("ca.pem", "no certificate");
    let tls = GOOD.replace("http://127.0.0.1:9002\"]", "https://127.0.0.1:9002\"]\ntls = { cacert = \"ca.pem\" }");
    weir.write("gate.toml", tls);
    let output = weir.run(&["gate", "--config", "gate.toml", "--check"]);
    assert_eq!(output.code, 2);
    let line = output.one_line();
    assert!(line.starts_with("gate.toml:") && line.contains("other") && line.contains("ca.pem"), "{line}");
}

#[test]
fn another_value_of_the_variable_for_direct_calls_is_an_error() {
    let weir = Weir::new();
    let mut command = weir.command(&["gate", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"]);
    let output = Running::new(command.env("WEIR_DIRECT_CALLS", "no")).finish();
    assert_eq!((output.code, output.one_line()), (2, "WEIR_DIRECT_CALLS=no: write on or off"));
}

#[test]
fn conflicting_flags_are_named() {
    let line = usage_error(&["--check"]);
    assert!(["--config", "--smart", "--upstream"].iter().all(|flag| line.contains(flag)), "{line}");
    let url = "http://127.0.0.1:9";
    let sources = [["--config", "gate.toml"], ["--smart", url], ["--upstream", url]];
    for (i, one) in sources.iter().enumerate() {
        for other in &sources[i + 1..] {
            let line = usage_error(&[&one[..], other].concat());
            assert!(line.contains(one[0]) && line.contains(other[0]) && line.contains("cannot be used with"), "{line}");
        }
    }
    for of_policy in [
        ["--hedge", "300ms"],
        ["--deadline", "1s"],
        ["--attempt-timeout", "1s"],
        ["--retries", "1"],
        ["--budget", "none"],
        ["--retry-methods", "all"],
    ] {
        for source in &sources[..2] {
            let line = usage_error(&[&source[..], &of_policy].concat());
            assert!(line.contains(source[0]) && line.contains(of_policy[0]), "{line}");
        }
    }
    let line = usage_error(&["--upstream", url, "--otlp-sample", "50%"]);
    assert!(line.contains("--otlp"), "{line}");
}

#[test]
fn invalid_values_have_a_remedy() {
    for (flag, value, remedy) in [
        ("--hedge", "300", "300ms:2"),
        ("--hedge", "300ms:0", "300ms:2"),
        ("--deadline", "0s", "above 0"),
        ("--attempt-timeout", "soon", "300ms"),
        ("--retries", "64", "63"),
        ("--budget", "5", "5%+250/10s"),
        ("--retry-methods", "never", "idempotent"),
        ("--listen", "::1:80", "[::1]:8080"),
        ("--listen", "here:", "127.0.0.1:8080"),
        ("--workers", "0", "256"),
        ("--otlp-sample", "200%", "100%"),
        ("--max-head", "1", "8192"),
        ("--tunnel-timeout", "x", "1.5s"),
    ] {
        let line = usage_error(&["--upstream", "http://127.0.0.1:9", "--otlp", "http://127.0.0.1:9", flag, value]);
        assert!(line.contains(flag) && line.contains(value) && line.contains(remedy), "{flag} {value}: {line}");
    }
    let line = usage_error(&["--upstream", "backend"]);
    assert!(line.contains("'backend'") && line.contains("http://HOST:PORT"), "{line}");
    let line = usage_error(&["--upstream", "http://127.0.0.1:9", "--otlp", "grpc://127.0.0.1:4317"]);
    assert!(line.starts_with("--otlp: ") && line.contains("grpc"), "{line}");
    let line = usage_error(&["--upstream", "http://127.0.0.1:9", "--hedge", "1s:60", "--retries", "9"]);
    assert!(line.contains("70 attempts"), "{line}");
}

#[test]
fn flags_make_a_policy() {
    let server = Server::start(|seen| match seen.turn + seen.connection {
        0 => Reply::nothing(),
        _ => Reply::ok("second"),
    });
    let gate = Serving::gate(&["--upstream", &server.url(""), "--hedge", "20ms", "--budget", "none"]);
    assert_eq!(gate.get("/x?y=1").text(), "second");
    assert!(server.seen().iter().all(|seen| seen.line() == "GET /x?y=1 HTTP/1.1"), "{:?}", server.seen());
    drop(gate);

    let server = Server::start(|seen| if seen.number == 0 { Reply::status(503, "") } else { Reply::ok("again") });
    let gate = Serving::gate(&["--upstream", &server.url(""), "--retries", "1", "--retry-methods", "all"]);
    assert_eq!(gate.post("/", "body").text(), "again");
    assert_eq!(server.seen()[1].body, b"body");
    drop(gate);

    let server = Server::start(|_| Reply::nothing());
    for (flags, status) in [(["--deadline", "30ms"], 504), (["--attempt-timeout", "30ms"], 502)] {
        let gate = Serving::gate(&[&["--upstream", &server.url("")][..], &flags].concat());
        assert_eq!(gate.get("/").status, status, "{flags:?}");
    }
}

#[test]
fn the_demo_responds_as_documented() {
    let good = Server::start(|_| Reply::ok(r#"{"time": 5}"#));
    let gate = Serving::gate(&["--smart", &good.url("")]);
    let wrong = r#"{"message":"Endpoint timeout parameter should be INTEGER"}"#;
    let low = r#"{"message":"Endpoint timeout parameter should be above 300"}"#;
    for (asked, status, body) in [
        ("1000", 200, r#"{"time": 5,"message":"SUCCESS"}"#),
        ("1.5", 400, wrong),
        ("soon", 400, wrong),
        ("300", 400, low),
        ("-1", 400, low),
    ] {
        for target in [format!("/api/smart/{asked}"), format!("/api/smart?timeout={asked}")] {
            let response = gate.get(&target);
            assert_eq!((response.status, response.json()), (status, serde_json::from_str(body).unwrap()), "{target}");
        }
    }
    assert!(good.seen().iter().all(|seen| seen.line() == "GET /api/work HTTP/1.1"));

    let error = serde_json::json!({ "message": "ERROR" });
    let bad = Server::start(|_| Reply::ok("no JSON"));
    let gate = Serving::gate(&["--smart", &bad.url("/work")]);
    let response = gate.get("/api/smart/5000");
    assert_eq!((response.status, response.json()), (502, error.clone()));
    assert_eq!(bad.requests(), 3);
    assert_eq!(bad.seen()[2].line(), "GET /work HTTP/1.1");
    let silent = Server::start(|_| Reply::nothing());
    let gate = Serving::gate(&["--smart", &silent.url("")]);
    // The further attempts follow after 300 ms.
    let response = gate.get("/api/smart/1500");
    assert_eq!((response.status, response.json()), (504, error));
    assert_eq!(silent.requests(), 3);
}

#[test]
fn the_attempt_log_is_text() {
    let server = Server::start(|seen| match seen.number {
        0 => Reply::status(500, ""),
        1 => Reply::ok("fine").after(Duration::from_millis(20)),
        _ => Reply::nothing(),
    });
    let args = ["--upstream", &server.url(""), "--hedge", "failure:2", "--budget", "none", "--attempt-log"];
    let gate = Serving::gate(&args);
    assert_eq!(gate.get("/a?b").text(), "fine");
    let output = gate.stop();
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    // Without times.
    let events: Vec<_> = output
        .stderr
        .lines()
        .map(|line| match (line.split_once(" ms  "), line.split_once(" after ")) {
            (Some((at, event)), _) => {
                assert!(at.trim().parse::<f64>().is_ok(), "{line}");
                event.to_owned()
            }
            (None, Some((call, after))) => {
                assert!(after.ends_with(" ms"), "{line}");
                call.to_owned()
            }
            (None, None) => panic!("{line}"),
        })
        .collect();
    let host = server.address();
    let expected = [
        "GET /a?b -> 200".to_owned(),
        format!("attempt 1 sent to {host}"),
        "attempt 1 responded 500: no success".to_owned(),
        format!("after a failure: attempts 2 and 3 sent to {host}"),
    ];
    assert_eq!(events[..4], expected);
    assert!(events[4].ends_with(" responded 200: success") && events[5].ends_with(" cancelled"), "{events:?}");
    assert_eq!(events.len(), 6);
}

#[test]
fn the_attempt_log_is_one_line_with_json_messages() {
    let server = Server::start(|_| Reply::nothing());
    let args = ["--upstream", &server.url(""), "--deadline", "300ms", "--attempt-log", "--log-format", "json"];
    let gate = Serving::gate(&args);
    assert_eq!(gate.get("/late").status, 504);
    let output = gate.stop();
    let message: Value =
        serde_json::from_str(&output.stderr).unwrap_or_else(|error| panic!("{error}: {}", output.stderr));
    assert_eq!(message["level"], "trace");
    let text = message["message"].as_str().unwrap();
    assert!(text.starts_with("GET /late -> 504 after ") && text.contains(": deadline exceeded\n"), "{text}");
    assert!(text.ends_with("attempt 1 cancelled"), "{text}");
}

#[test]
fn a_reload_is_shown_before_it_is_made() {
    let weir = Weir::new();
    weir.write("old.toml", GOOD);
    let new = GOOD.replace("9001", "9003").replace("deadline = \"1s\"", "deadline = \"2s\"");
    let new = new.replace("path = \"/a\"", "path = \"/b\"");
    weir.write("new.toml", format!("workers = 2\n{new}"));
    let output = weir.run(&["gate", "diff", "old.toml", "new.toml"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let expected = "~ workers: needs a restart\n\
        ~ upstream backend: connections, health, limits and counts start anew\n\
        ~ policy quick: from the next call on\n\
        - route /a: from the next call on\n\
        + route /b: from the next call on\n";
    assert_eq!(output.stdout, expected);
    let output = weir.run(&["gate", "diff", "old.toml", "old.toml"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "no changes\n"));
    weir.write("bad.toml", BAD);
    let output = weir.run(&["gate", "diff", "old.toml", "bad.toml"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.lines().count()), (2, "", 2));
    let output = weir.run(&["gate", "check", "old.toml"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "old.toml: 2 routes, 2 upstreams, 1 policy: valid\n"));
    assert_eq!(weir.run(&["gate", "check", "bad.toml"]).code, 2);
}
