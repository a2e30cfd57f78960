//! Calls of gRPC that fail: what a check, a report, `weir run` and a mistake on the command line say of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use weir_measure::Run;
use weir_testing::{Authority, Http2Reply, Http2Service, Output, Serving, Weir, until};

const PROTO: &str = "syntax = \"proto3\"; package a; message M {} service S { rpc Do(M) returns (M); }";

fn url(serving: &Serving, method: &str) -> String {
    format!("grpc://{}/weir.test.v1.Test/{method}", serving.address)
}

fn echo(weir: &Weir, serving: &Serving, args: &[&str]) -> Output {
    weir.run(&[&["load", &url(serving, "Echo"), "--format", "json"], args].concat())
}

#[test]
fn a_call_with_a_fault_fails_in_weir_run_with_one_reason() {
    let serving = Serving::start(&["grpc"]);
    for (fault, shown, reason) in [
        ("INVALID_MESSAGE", "(8 bytes, not text)", "✗ body: a message is not a weir.test.v1.EchoReply"),
        ("HTTP_503", "not gRPC</body>", "✗ status 503"),
        ("PAGE", "not gRPC</body>", "✗ protocol: the response has no grpc-status"),
        ("NO_TRAILERS", "{\"number\":", "✗ protocol: the response has no grpc-status"),
        ("NO_MESSAGE", "< grpc-status: 0", "✗ body: the response has the status OK and no message"),
    ] {
        let body = json!({ "fault": fault }).to_string();
        let played = Weir::new().run(&["run", &url(&serving, "Echo"), "-b", &body]);
        assert!(played.code == 1 && played.stdout.contains("failed: 1 step (1 failed)"), "{fault}: {played:?}");
        let marks = played.stdout.matches('✗').count();
        assert!(marks == 1 && played.stdout.contains(reason) && played.stdout.contains(shown), "{fault}: {played:?}");
        assert!(!played.stdout.contains("compressed to"), "{fault}: {played:?}");
    }
}

#[test]
fn a_message_may_be_as_deep_as_protobuf_permits_and_no_deeper() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let nested = |levels: usize| [r#"{"messageValue":"#.repeat(levels), "{}".to_owned(), "}".repeat(levels)].concat();
    for (levels, code, ok) in [(99, 0, 4), (101, 3, 0)] {
        weir.write("nested.json", nested(levels));
        let args = ["-b", "@nested.json", "-n", "4", "-c", "2", "--check", "bytes count > 0"];
        let output = weir.run(&[&["load", &url(&serving, "Mirror"), "--format", "json"], &args[..]].concat());
        assert_eq!((output.code, output.json().requests.ok), (code, ok), "{levels}: {output:?}");
    }
    let played = weir.run(&["run", &url(&serving, "Mirror"), "-b", "@nested.json"]);
    assert!(played.code == 1 && played.stdout.contains("recursion limit reached"), "{played:?}");
}

#[test]
fn a_status_is_compared_by_its_name_or_its_code() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let denied = r#"{"status": {"code": 7}}"#;
    for (body, flags, is_ok) in [
        ("{}", ["--check", "status == \"OK\""], true),
        ("{}", ["--check", "status != \"OK\""], false),
        ("{}", ["--success", "status == \"OK\""], true),
        ("{}", ["--success", "status matches /^(OK|NOT_FOUND)$/"], true),
        (denied, ["--check", "status == \"PERMISSION_DENIED\""], true),
        (denied, ["--check", "status == 7"], true),
        (denied, ["--check", "status == \"OK\""], false),
        (denied, ["--success", "status == \"OK\""], false),
        // A check on something else leaves the status what it is.
        (denied, ["--check", "header \"grpc-status\" == \"7\""], false),
    ] {
        let run = echo(&weir, &serving, &[&["-n", "4", "-b", body], &flags[..]].concat()).json();
        assert_eq!((run.requests.ok, run.requests.failed), if is_ok { (4, 0) } else { (0, 4) }, "{flags:?}");
    }
    for check in ["status == \"Ok\"", "status == 200", "status != \"0\""] {
        for flag in ["--check", "--success"] {
            let output = weir.run(&["load", &url(&serving, "Echo"), flag, check, "-n", "1"]);
            let line = output.one_line();
            assert!(line.contains(flag) && line.contains(check) && line.contains("UNAUTHENTICATED"), "{output:?}");
            assert_eq!(output.code, 2);
        }
    }
}

#[test]
fn a_failed_call_is_one_failure_beside_checks_of_its_messages() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let gone = r#"{"status": {"code": 14, "message": "gone"}}"#;
    let of_text = ["--check", "jsonpath \"$.text\" == \"a\""];
    let flags = ["-n", "6", "-c", "2", "-b", gone];
    let run = echo(&weir, &serving, &[&flags[..], &of_text].concat()).json();
    assert_eq!((&run.failures, run.steps[0].checks[0].failed), (&[("UNAVAILABLE".to_owned(), 6)].into(), 0));
    // A page of a proxy, too.
    let page = ["-n", "6", "-c", "2", "-b", r#"{"fault": "HTTP_503"}"#];
    let run = echo(&weir, &serving, &[&page[..], &of_text].concat()).json();
    assert_eq!((&run.failures, run.steps[0].checks[0].failed), (&[("5xx".to_owned(), 6)].into(), 0));
    // Beside a check on the status it has failed, and those of messages are not looked at.
    let both = ["--check", "status == \"OK\"", "--check", "jsonpath \"$.text\" == \"a\""];
    let run = echo(&weir, &serving, &[&flags[..], &both].concat()).json();
    let checks: Vec<_> = run.steps[0].checks.iter().map(|check| (check.passed, check.failed)).collect();
    assert_eq!(checks, [(0, 6), (0, 0)]);
    // A status that is expected has no messages all the same.
    let both = ["--check", "status == 14", "--check", "jsonpath \"$.text\" == \"a\""];
    let run = echo(&weir, &serving, &[&flags[..], &both].concat()).json();
    let checks: Vec<_> = run.steps[0].checks.iter().map(|check| (check.passed, check.failed)).collect();
    assert_eq!((checks, run.requests.failed), (vec![(6, 0), (0, 6)], 6));
    let success = ["--success", "jsonpath \"$.text\" == \"a\""];
    let run = echo(&weir, &serving, &[&flags[..], &success].concat()).json();
    assert_eq!((run.requests.ok, run.requests.failed), (0, 6));
}

#[test]
fn lines_name_the_most_frequent_failure() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let aborted = r#"{"status": {"code": 10, "message": "rare"}}"#;
    let unknown = r#"{"status": {"code": 14, "message": "often"}}"#;
    let flags = ["-n", "200", "-c", "2", "-b", aborted, "-b", unknown, "--weights", "1,9", "--seed", "1"];
    let output = weir.run(&[&["load", &url(&serving, "Echo")], &flags[..]].concat());
    assert!(output.stderr.contains("succeeded; UNAVAILABLE: often"), "{output:?}");
    // A timeout is rare beside a status, and it alone has a sample.
    let often = "14,0s\n".repeat(30);
    weir.write("rows.csv", format!("code,delay\n14,0s\n0,20s\n{often}"));
    let body = r#"{"status": {"code": "{{code}}", "message": "often"}, "delay": "{{delay}}"}"#;
    let flags = ["-b", body, "--data", "rows.csv", "-n", "32", "-c", "2", "--timeout", "200ms"];
    let output = weir.run(&[&["load", &url(&serving, "Echo")], &flags[..]].concat());
    let example = output.stdout.lines().find(|line| line.starts_with("e.g.")).unwrap_or_default();
    assert!(example.contains("often"), "{output:?}");
    let output = weir.run(&["load", &url(&serving, "Echo"), "-n", "3", "-b", r#"{"status": {"code": 2}}"#]);
    assert!(output.stderr.contains("succeeded; 3 UNKNOWN"), "{output:?}");
}

#[test]
fn a_message_with_templates_is_checked_with_the_first_row() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    weir.write("rows.csv", "name,n\nana,x\nbob,2\n");
    for (body, words) in [
        (r#"{"replyBytes": "{{n}}"}"#, "--body: not a weir.test.v1.EchoRequest: "),
        (r#"{"number": "{{name}}"}"#, "unrecognized field name 'number', at line 1 column 9, with the first row of"),
        (r#"{"text": {{name}}}"#, "put it in quotes, with the first row of rows.csv"),
    ] {
        let output = weir.run(&["load", &url(&serving, "Echo"), "-b", body, "--data", "rows.csv", "-n", "2"]);
        assert!(output.code == 2 && output.one_line().contains(words), "{output:?}");
    }
    // A later row is a failure when its turn comes.
    weir.write("rows.csv", "n\n1\nx\n");
    let args = ["-b", r#"{"replyBytes": "{{n}}"}"#, "--data", "rows.csv", "-n", "4", "-c", "1"];
    let run = echo(&weir, &serving, &args).json();
    assert_eq!((run.requests.ok, run.steps[0].unsent), (2, 2));
    // Its first row is what weir run plays.
    let played = weir.run(&["run", &url(&serving, "Echo"), "-b", r#"{"replyBytes": "{{n}}"}"#, "--data", "rows.csv"]);
    assert!(played.code == 0 && played.stdout.contains("{\"replyBytes\":1}"), "{played:?}");
}

#[test]
fn ctrl_c_while_a_server_is_asked_for_its_schema_ends_with_a_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("grpc://{}/a.S/Do", listener.local_addr().unwrap());
    for args in [&["load", &url][..], &["run", &url], &["capacity", &url, "--slo", "p99<1s"]] {
        let weir = Weir::new();
        let running = weir.start(args);
        // The request is there, and has no response.
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 24]).unwrap();
        running.interrupt();
        let output = running.finish();
        assert_eq!((output.code, output.one_line()), (130, "interrupted before the start; nothing was sent"));
    }
}

#[test]
fn the_protocol_of_the_other_side_is_in_the_hint() {
    let weir = Weir::new();
    weir.write("a.proto", PROTO);
    let authority = Authority::new();
    let tls = Http2Service::build().tls(&authority.service("service.test")).start(|_| Http2Reply::ok(""));
    let serving = Serving::start(&["grpc"]);
    let pages = Serving::start(&["httpbin"]);
    let plain = format!("grpcs://{}/a.S/Do", serving.address);
    let page = format!("grpc://{}/a.S/Do", pages.address);
    let secure = format!("grpc://{}/a.S/Do", tls.address());
    for (url, flags, words) in [
        (plain.as_str(), &[][..], "Try grpc://"),
        (&secure, &[], "does it speak TLS there?"),
        (
            &page,
            &[],
            "it responds with the HTTP status 404; is it a service of HTTP? Try http://, or give the schema by",
        ),
        ("grcp://h/a.S/Do", &[], "unknown scheme 'grcp'; choose http, https, grpc, grpcs, ws or wss"),
        ("grpc://h:99999/a.S/Do", &[], "invalid URL 'grpc://h:99999/a.S/Do': invalid port '99999'"),
        ("ws://h:99999/", &["-b", "x"], "invalid URL 'ws://h:99999/': invalid port '99999'"),
        ("wss:///x", &["-b", "x"], "invalid URL 'wss:///x': no host; write e.g. wss://localhost:8080/path"),
        ("ws:/h", &[], "no host behind 'ws:'; write ws://host:port/path"),
    ] {
        let output = weir.run(&[&["load", url, "-n", "1"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(words), "{words}: {output:?}");
    }
    let output = weir.run(&["load", &secure, "--proto", "a.proto", "-n", "1"]);
    assert!(output.code == 3 && output.stderr.contains("does it speak TLS there?"), "{output:?}");
    for (status, words) in [(415, "does not take application/grpc"), (426, "does not speak HTTP/2")] {
        let server = Http2Service::build().start(move |_| Http2Reply::status(status, "no"));
        let url = format!("grpc://{}/a.S/Do", server.address());
        let output = weir.run(&["load", &url, "--proto", "a.proto", "-n", "2"]);
        // The report wraps at 80 columns.
        let report = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.stderr.contains(words) && report.contains(words), "{output:?}");
    }
    weir.write("mix.toml", "[load]\nbase_url = \"http://h\"\n[[scenario]]\ncall = \"/a.S/Do\"\n");
    let output = weir.run(&["load", "-s", "mix.toml"]);
    assert!(output.code == 2 && output.one_line().contains("invalid base_url 'http://h'"), "{output:?}");
}

#[test]
fn urls_of_calls_are_those_of_grpc_everywhere() {
    let serving = Serving::start(&["grpc"]);
    assert_eq!(serving.url, format!("grpc://{}", serving.address));
    assert!(Serving::start(&["ws"]).url.starts_with("ws://"));
    let weir = Weir::new();
    let flags = ["-n", "2", "--check", "status == 0", "--jtl", "run.jtl"];
    let output = weir.run(&[&["load", &url(&serving, "Echo")], &flags[..]].concat());
    assert!(output.stdout.contains("\nweir.test.v1.Test/Echo  "), "{output:?}");
    let log = weir.read("run.jtl");
    assert!(log.contains(&url(&serving, "Echo")) && !log.contains("http://"), "{log}");
    let output = weir.run(&["load", &url(&serving, "Echo"), "-H", "a: {{"]);
    assert!(!output.stderr.contains("http://"), "{output:?}");
}

#[test]
fn streams_in_flight_at_ctrl_c_are_in_the_report_and_in_intervals() {
    let calls = Serving::start(&["grpc"]);
    let pages = Serving::start(&["stream", "--events", "100000", "--gap", "2ms"]);
    let list = url(&calls, "List");
    let body = r#"{"count": 100000, "gap": "0.002s"}"#;
    let sse = format!("{}/sse", pages.url);
    for (url, flags) in
        [(&list, &["-b", body, "--streams", "2"][..]), (&sse, &["--stream"]), (&sse, &["--stream", "--h2c"])]
    {
        let weir = Weir::new();
        let files = ["--out", "run.json", "--out-jsonl", "run.jsonl", "-d", "1h", "-c", "2", "-q"];
        let running = weir.start(&[&["load", url], flags, &files].concat());
        let intervals = || std::fs::read_to_string(weir.path("run.jsonl")).unwrap_or_default();
        // No stream has ended, and an interval has what came.
        until("an interval", Duration::from_secs(60), || {
            let has = |line: &serde_json::Value| {
                line["streams"]["first_event_ms"]["max"].is_f64() && line["bytes_in"].as_u64() > Some(0)
            };
            intervals().lines().filter_map(|line| serde_json::from_str(line).ok()).any(|line| has(&line))
        });
        running.interrupt();
        let output = running.finish();
        assert_eq!(output.code, 130, "{output:?}");
        let run = Run::from_json(&weir.read("run.json")).unwrap();
        let streams = run.streams.unwrap();
        assert_eq!((streams.responses, streams.cut_off), (0, run.requests.unfinished), "{streams:?}");
        assert!(streams.cut_off >= 2 && streams.events > 20 && run.bytes.read > 0, "{streams:?}");
        let firsts = streams.first_event_times().unwrap().count();
        assert_eq!((firsts, streams.gaps().unwrap().count()), (streams.cut_off, streams.events - firsts));
    }
}

#[test]
fn bytes_of_streams_count_when_the_server_is_killed() {
    let calls = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let list = url(&calls, "List");
    let files = ["--out", "run.json", "--out-jsonl", "run.jsonl", "-n", "1", "-c", "1", "-q"];
    let running = weir.start(&[&["load", &list, "-b", r#"{"count": 100000, "gap": "0.002s"}"#], &files[..]].concat());
    until("an interval", Duration::from_secs(60), || {
        weir.path("run.jsonl").exists() && weir.read("run.jsonl").contains("\"interval\"")
    });
    calls.signal(Signal::KILL);
    calls.finish();
    let output = running.finish();
    assert_eq!(output.code, 3, "{output:?}");
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    assert!(run.failures["broken_off"] == 1 && run.bytes.read > 100, "{:?} {:?}", run.failures, run.bytes);
}
