//! Calls of gRPC in `weir load` and `weir run`: what a server sees of them, what their trailers mean, and bad input.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and has a clock"
)]

use serde_json::{Value, json};
use weir_testing::{Authority, Http2Reply, Http2Service, Output, Reply, Server, Serving, Weir, closed_address, load};

fn url(serving: &Serving, method: &str) -> String {
    format!("grpc://{}/weir.test.v1.Test/{method}", serving.address)
}

/// A load whose exit code and stderr do not matter.
fn any_load(url: &str, args: &[&str]) -> Output {
    Weir::new().run(&[&["load", url, "--format", "json"], args].concat())
}

#[test]
fn a_fragment_is_not_sent() {
    let serving = Serving::start(&["grpc"]);
    let output = Weir::new().run(&["run", &format!("{}#fragment", url(&serving, "Echo"))]);
    assert!(output.code == 0 && output.stdout.contains("> POST /weir.test.v1.Test/Echo HTTP/2\n"), "{output:?}");
}

#[test]
fn calls_are_made_by_reflection_and_counted_as_the_server_counts_them() {
    let serving = Serving::start(&["grpc"]);
    let run =
        load(&url(&serving, "Echo"), &["-b", r#"{"text": "hi"}"#, "-n", "500", "-c", "3", "--streams", "4", "-t", "2"]);
    assert_eq!((run.requests.ok, run.requests.failed), (500, 0));
    assert_eq!(run.status.iter().map(|(status, n)| (status.as_str(), *n)).collect::<Vec<_>>(), [("OK", 500)]);
    assert_eq!((run.target.url.as_str(), run.target.http.as_deref()), (url(&serving, "Echo").as_str(), Some("HTTP/2")));
    assert!(run.failures.is_empty() && run.streams.is_none());
    let stats = serving.get("/stats").json();
    // One is that of reflection.
    assert_eq!((stats["calls"].as_u64(), stats["status"]["OK"].as_u64()), (Some(501), Some(501)), "{stats}");
}

#[test]
fn a_status_is_a_failure_with_its_name_and_message_in_every_report() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let body = json!({"status": {"code": 9, "message": "nicht möglich"}}).to_string();
    let url = url(&serving, "Echo");
    let args = ["-b", "{}", "-b", &body, "--weights", "3,1", "-n", "200", "-c", "2", "--seed", "5"];
    let run =
        weir.load(&url, &[&args[..], &["--html", "run.html", "--jtl", "run.jtl", "--out-jsonl", "run.jsonl"]].concat());
    let failed = run.status["FAILED_PRECONDITION"];
    assert_eq!(run.status["OK"] + failed, 200);
    assert_eq!((run.requests.failed, run.failures["FAILED_PRECONDITION"]), (failed, failed));
    assert_eq!(run.target.failure_details["FAILED_PRECONDITION"], "nicht möglich");
    let stats = serving.get("/stats").json();
    assert_eq!(stats["status"]["FAILED_PRECONDITION"].as_u64(), Some(failed), "{stats}");
    let log = weir.read("run.jtl");
    assert_eq!(log.lines().filter(|line| line.contains(",FAILED_PRECONDITION,")).count() as u64, failed, "{log}");
    let intervals = weir.read("run.jsonl");
    assert!(intervals.contains("\"FAILED_PRECONDITION\":"), "{intervals}");
    let text = weir.run(&[&["load", &url], &args[..]].concat()).stdout;
    for shown in [text, weir.read("run.html")] {
        assert!(shown.contains("FAILED_PRECONDITION") && shown.contains("nicht möglich"), "{shown}");
    }
    let gate = weir.run(&[&["load", &url, "--slo", "errors<1%"], &args[..]].concat());
    assert_eq!(gate.code, 1, "{gate:?}");
}

#[test]
fn whatever_is_wrong_with_a_response_is_a_failure_of_its_kind() {
    let serving = Serving::start(&["grpc"]);
    for (fault, kind, words) in [
        ("LENGTH_TOO_LONG", "body", "ends within a message"),
        ("LENGTH_OF_4_GIB", "body", "ends within a message"),
        ("COMPRESSED_WITHOUT_ENCODING", "body", "no grpc-encoding"),
        ("INVALID_FLAG", "body", "other than 0 and 1"),
        ("NO_MESSAGE", "body", "no message"),
        ("TRAILERS_ONLY", "body", "no message"),
        ("TWO_MESSAGES", "body", "more than one message"),
        ("NO_TRAILERS", "protocol", "no grpc-status"),
        ("NO_STATUS", "protocol", "no grpc-status"),
        ("PAGE", "protocol", "no grpc-status"),
        ("RESET", "reset", "INTERNAL_ERROR"),
        ("RESET_AFTER_MESSAGE", "reset", "INTERNAL_ERROR"),
        ("HTTP_503", "5xx", ""),
    ] {
        let body = json!({"fault": fault}).to_string();
        // As requests of the plan, and as steps.
        for further in [&[][..], &["--check", "bytes count >= 0"]] {
            let args = [&["-n", "8", "-c", "2", "-b", &body], further].concat();
            let output = any_load(&url(&serving, "Echo"), &args);
            let run = output.json();
            assert_eq!((output.code, run.requests.ok, run.failures.get(kind)), (3, 0, Some(&8)), "{fault} {run:?}");
            let details = run.target.failure_details.get(kind).map_or("", String::as_str);
            assert!(details.contains(words), "{fault}: {details}");
        }
    }
    // A message of another type shows where it is looked into.
    let body = json!({"fault": "INVALID_MESSAGE"}).to_string();
    let run =
        any_load(&url(&serving, "Echo"), &["-n", "4", "-b", &body, "--check", "jsonpath \"$.text\" == \"a\""]).json();
    assert!(run.steps[0].samples[0].reason.contains("not a weir.test.v1.EchoReply"), "{:?}", run.steps[0].samples);
}

#[test]
fn the_messages_of_a_stream_are_its_events() {
    let serving = Serving::start(&["grpc"]);
    let list = url(&serving, "List");
    let run =
        load(&list, &["-b", r#"{"count": 5, "gap": "0.002s", "echo": {"compressed": true}}"#, "-n", "20", "-c", "2"]);
    let streams = run.streams.unwrap();
    assert_eq!((run.requests.ok, streams.responses, streams.events), (20, 20, 100));
    // On a busy machine some arrive together.
    assert!(streams.gap_ms.mean.unwrap() > 1.0, "{streams:?}");
    // A status behind some of the messages: the stream broke off.
    let late = r#"{"count": 3, "echo": {"status": {"code": 14, "message": "gone"}}}"#;
    let run = any_load(&list, &["-b", late, "-n", "10", "-c", "2"]).json();
    assert_eq!((run.failures["UNAVAILABLE"], run.streams.unwrap().events), (10, 30));
    assert_eq!(run.target.failure_details["UNAVAILABLE"], "gone");
    // Ended on purpose, no status comes.
    let run = load(
        &list,
        &["-b", r#"{"count": 50, "gap": "0.005s"}"#, "-n", "6", "-c", "2", "--stream", "--max-events", "4"],
    );
    assert_eq!((run.requests.ok, run.streams.unwrap().events), (6, 24));
    let stalled =
        any_load(&list, &["-b", r#"{"count": 2, "gap": "30s"}"#, "-n", "2", "--stream", "--stall-timeout", "50ms"])
            .json();
    assert_eq!(stalled.failures["stalled"], 2);
    // Several messages each way.
    for (method, body, events) in [
        ("Collect", r#"[{"text": "a"}, {"text": "b"}]"#, None),
        ("Chat", "{\"text\": \"a\"}\n{\"text\": \"b\"}", Some(20)),
    ] {
        let run = load(&url(&serving, method), &["-b", body, "-n", "10", "-c", "2"]);
        assert_eq!((run.requests.ok, run.streams.map(|streams| streams.events)), (10, events), "{method}");
    }
}

#[test]
fn metadata_compression_and_deadline_reach_the_server() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let body = json!({"metadata": true, "text": "a".repeat(5000)}).to_string();
    let flags = ["-H", "x-trace: t7", "-H", "x-a-bin: q6s", "-H", "grpc-encoding: gzip", "--timeout", "7s"];
    let output = weir.run(&[&["run", &url(&serving, "Echo"), "-b", &body, "-v", "--json"], &flags[..]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let played: Value = serde_json::from_str(&output.stdout).unwrap();
    let request = &played["steps"][0]["requests"][0];
    let reply: Value = serde_json::from_str(request["response"]["body"].as_str().unwrap()).unwrap();
    let metadata = &reply["metadata"];
    for (name, value) in [
        ("x-trace", "t7"),
        ("x-a-bin", "q6s"),
        ("grpc-encoding", "gzip"),
        ("grpc-accept-encoding", "gzip"),
        ("grpc-timeout", "7000m"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ] {
        assert_eq!(metadata[name], value, "{metadata}");
    }
    assert!(
        metadata["content-length"].as_str().unwrap().parse::<u64>().unwrap() < 200 && metadata.get("accept").is_none()
    );
    // The deadline is the server's as well: whichever ends first.
    let late =
        any_load(&url(&serving, "Echo"), &["-b", r#"{"delay": "60s"}"#, "--timeout", "100ms", "-n", "4", "-c", "2"])
            .json();
    let ended = ["timeout", "DEADLINE_EXCEEDED"].map(|kind| late.failures.get(kind).copied().unwrap_or(0));
    assert_eq!(ended.iter().sum::<u64>(), 4, "{:?}", late.failures);
}

#[test]
fn checks_templates_and_data_are_on_json() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    weir.write("rows.csv", "name,bytes\nana,1\nbob,2\n");
    let args = [
        "-b",
        r#"{"text": "{{name}}", "replyBytes": {{bytes}}}"#,
        "-H",
        "x-echo-name: {{name}}",
        "--data",
        "rows.csv",
        "--check",
        "jsonpath \"$.text\" == \"{{name}}\"",
        "--check",
        "header \"x-echo-name\" == \"{{name}}\"",
        "--check",
        "header \"grpc-status\" == \"0\"",
        "--check",
        "status == 0",
    ];
    let run = weir.load(&url(&serving, "Echo"), &[&args[..], &["-n", "40", "-c", "2"]].concat());
    assert_eq!((run.requests.ok, run.requests.failed, run.steps[0].checks.len()), (40, 0, 4));
    // A check on the status decides.
    let denied = r#"{"status": {"code": 7}}"#;
    let run = weir.load(&url(&serving, "Echo"), &["-b", denied, "--check", "status == 7", "-n", "10", "-c", "2"]);
    assert_eq!((run.requests.ok, run.status["PERMISSION_DENIED"], run.failures.len()), (10, 10, 0));
    let wrong =
        any_load(&url(&serving, "Echo"), &["-b", "{}", "--check", "jsonpath \"$.text\" == \"a\"", "-n", "4"]).json();
    assert_eq!((wrong.requests.failed, wrong.failures["check"], wrong.status["OK"]), (4, 4, 4));
}

#[test]
fn run_prints_messages_and_trailers() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let played = weir.run(&["run", &url(&serving, "List"), "-b", r#"{"count": 2, "echo": {"text": "a"}}"#]);
    assert_eq!(played.code, 0, "{played:?}");
    for line in ["{\"count\":2,\"echo\":{\"text\":\"a\"}}", "{\"text\":\"a\",\"number\":\"2\"}", "< grpc-status: 0"] {
        assert!(played.stdout.lines().any(|it| it == line), "{line}: {}", played.stdout);
    }
    let once = weir.run(&["load", &url(&serving, "Echo"), "-b", r#"{"text": "a"}"#, "--once"]);
    assert!(once.code == 0 && once.stdout.contains("< HTTP/2 200"), "{once:?}");
    let body = r#"{"status": {"code": 5, "message": "no such\nthing"}}"#;
    let failed = weir.run(&["run", &url(&serving, "Echo"), "-b", body]);
    assert_eq!(failed.code, 1, "{failed:?}");
    for line in ["< grpc-status: 5", "< grpc-message: no such%0Athing", "  ✗ status NOT_FOUND"] {
        assert!(failed.stdout.lines().any(|it| it == line), "{line}: {}", failed.stdout);
    }
}

#[test]
fn bad_input_is_one_line_with_the_remedy() {
    let serving = Serving::start(&["grpc"]);
    let weir = Weir::new();
    let (address, echo) = (&serving.address, url(&serving, "Echo"));
    let web = Server::start(|_| Reply::ok("hello"));
    let closed = closed_address();
    for (url, flags, words) in [
        (format!("grpc://{address}/weir.test.v1.Tst/Echo"), &[][..], "did you mean 'weir.test.v1.Test'?"),
        (url(&serving, "Ecko"), &[], "did you mean 'Echo'? weir.test.v1.Test has Echo, List, Collect, Chat, Mirror"),
        (format!("grpc://{address}"), &[], "write grpc://host:port/package.Service/Method"),
        (format!("grpc://{closed}/a.B/C"), &[], "for its schema: "),
        (format!("grpc://{}/a.B/C", web.address()), &[], "it speaks HTTP/1.1"),
        (format!("grpcs://{address}/a.B/C"), &[], "Try grpc://"),
        (format!("http://{address}/"), &["--proto", "a.proto"], "are for URLs of gRPC"),
        (
            echo.clone(),
            &["-b", "{\"text\": \"a\",\n \"txt\": 1}"],
            "--body: not a weir.test.v1.EchoRequest: unrecognized field name 'txt', at line 2",
        ),
        (echo.clone(), &["-b", "{\"text\": 1", "--check", "status == 0"], "--body: the message is not JSON"),
        (echo.clone(), &["-b", "{} {}"], "takes one message"),
        (echo.clone(), &["-m", "GET"], "--method is for HTTP"),
        (echo.clone(), &["--pipeline", "2"], "calls of gRPC have --streams"),
        (format!("grpc://{address}/Test/Echo"), &[], "did you mean 'weir.test.v1.Test'?"),
        (format!("grpc://{address}/weir.test.v1.Test.Echo"), &[], "write /weir.test.v1.Test/Echo"),
        (format!("{echo}?text=a"), &[], "calls have no query"),
        (echo.clone(), &["-H", "X Y: 1"], "write it as \"Name: value\""),
        (echo.clone(), &["-H", "grpc-timeout: 1S"], "'grpc-timeout' is set by gRPC itself"),
        (echo.clone(), &["-H", "a-bin: ?"], "write the bytes as Base64"),
        (echo.clone(), &["-H", "grpc-encoding: snappy"], "choose gzip or identity"),
        (echo.clone(), &["--stream=sse"], "--stream has no format with gRPC"),
    ] {
        let output = weir.run(&[&["load", &url, "-n", "1"], flags].concat());
        assert!(output.code == 2 && output.one_line().contains(words), "{words}: {output:?}");
    }
    let output = weir.run(&["run", "scenario.hurl", "-b", "{}"]);
    assert!(output.code == 2 && output.one_line().contains("--body is for a grpc"), "{output:?}");
}

#[test]
fn calls_go_over_tls_and_a_status_may_be_in_the_head() {
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "ca.pem");
    weir.write("a.proto", "syntax = \"proto3\"; package a; message M {} service S { rpc Do(M) returns (M); }");
    let server = Http2Service::build().tls(&authority.service("service.test")).start(|seen| {
        let is_call = seen.path == "/a.S/Do" && seen.body == [0; 5] && seen.headers["te"] == "trailers";
        let status = if is_call { "8" } else { "3" };
        let headers = vec![("grpc-status", status.to_owned()), ("grpc-message", "slow%20down".to_owned())];
        Http2Reply::Response { status: 200, headers, body: Vec::new(), after: std::time::Duration::ZERO }
    });
    let to = ["--connect-to", &server.address(), "--cacert", "ca.pem", "--proto", "a.proto", "-n", "6", "-c", "2"];
    let run = weir.run(&[&["load", "grpcs://service.test/a.S/Do", "--format", "json"], &to[..]].concat()).json();
    assert_eq!((run.failures["RESOURCE_EXHAUSTED"], run.status["RESOURCE_EXHAUSTED"]), (6, 6));
    assert_eq!(run.target.failure_details["RESOURCE_EXHAUSTED"], "slow down");
    assert!(run.target.url.starts_with("grpcs://service.test") && run.target.tls.is_some(), "{:?}", run.target);
}

#[test]
fn agents_and_a_search_take_calls_as_any_load() {
    let serving = Serving::start(&["grpc"]);
    let run = load(&url(&serving, "Echo"), &["-b", "{}", "-n", "60", "-c", "4", "--on", "local", "--agents", "2"]);
    assert_eq!((run.requests.ok, run.status["OK"], run.agents.len()), (60, 60, 2));
    let body = json!({"status": {"code": 14}}).to_string();
    let output = Weir::new().run(&["capacity", &url(&serving, "Echo"), "-b", &body, "--slo", "p99 < 1s"]);
    assert!(output.code != 0 && output.stderr.contains("UNAVAILABLE"), "{output:?}");
}

/// What judges a duration, and runs alone.
mod timed {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::load_open::response_times;

    #[test]
    fn a_freeze_of_the_server_of_a_second_in_five_shows_in_full_in_an_open_loop_of_calls() {
        // With room for all calls of a second, and where most of them wait for a stream.
        for streams in ["100", "5"] {
            let begun = Instant::now();
            let sent: Arc<Mutex<BTreeMap<u64, Instant>>> = Arc::default();
            let log = Arc::clone(&sent);
            // One thread serves all connections: none goes on meanwhile.
            let server = Http2Service::build().start(move |seen| {
                let into = begun.elapsed().as_secs_f64() % 5.0;
                if into >= 4.0 {
                    std::thread::sleep(Duration::from_secs_f64(5.0 - into));
                }
                log.lock().unwrap().insert(seen.number, Instant::now());
                Http2Reply::Call
            });
            let weir = Weir::new();
            weir.write("a.proto", "syntax = \"proto3\"; package a; message M {} service S { rpc Do(M) returns (M); }");
            let address = format!("grpc://{}/a.S/Do", server.address());
            let flags = ["--rate", "250", "-d", "5s", "-c", "4", "--streams", streams, "--proto", "a.proto"];
            let run = weir.load(&address, &flags);
            assert_eq!((run.requests.ok, server.requests()), (1250, 1250), "{:?}", run.failures);
            let truth = response_times(&sent.lock().unwrap(), 250.0);
            assert!(truth[1249] > 900.0, "the server has frozen: {}", truth[1249]);
            let noise = run.lateness_ms.max.unwrap().max(5.0);
            for (q, measured) in [(0.9, run.response_ms.p90.unwrap()), (0.99, run.response_ms.p99.unwrap())] {
                let truth = truth[(q * 1250.0) as usize];
                let what = format!("{streams} streams, q {q}: {measured} ms, not {truth}; late {noise}");
                // How much later a response is read is the machine's affair.
                assert!(measured >= truth * 0.99 - noise && measured <= truth * 1.05 + noise, "{what}");
            }
        }
    }
}
