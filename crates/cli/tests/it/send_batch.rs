//! `weir send --results`: batch files of OpenAI and Anthropic, from their lines to the files of results.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use weir_testing::{Output, Reply, Server, Weir, closed_address, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(120);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn openai_line(id: &str, path: &str) -> String {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": id}]});
    json!({"custom_id": id, "method": "POST", "url": path, "body": body}).to_string() + "\n"
}

fn anthropic_line(id: &str) -> String {
    let params = json!({"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": id}]});
    json!({"custom_id": id, "params": params}).to_string() + "\n"
}

/// `weir send batch.jsonl --results FORM ... --out out.jsonl --format json`.
fn send(weir: &Weir, form: &str, args: &[&str]) -> Output {
    let plain = ["send", "batch.jsonl", "--results", form, "--out", "out.jsonl", "--format", "json"];
    weir.run(&[&plain, args].concat())
}

fn summary(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Lines of a file of results by their custom IDs, each of which it has once.
fn by_id(weir: &Weir, file: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for line in lines(&weir.read(file)) {
        let id = line["custom_id"].as_str().unwrap().to_owned();
        assert!(all.insert(id, line.clone()).is_none(), "twice: {line}");
    }
    all
}

const COMPLETION: &str = r#"{"id":"c","object":"chat.completion","model":"m-2026-01-01",
  "choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],
  "usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}"#;

const MESSAGE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],
  "stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":2}}"#;

/// Reply with JSON and the name of the request.
fn reply(status: u16, body: &str, id: &str) -> Reply {
    let length = body.len();
    Reply::raw(format!("HTTP/1.1 {status} X\r\nx-request-id: {id}\r\ncontent-length: {length}\r\n\r\n{body}"))
}

#[test]
fn an_openai_batch_has_an_output_file_and_an_error_file() {
    let server = Server::start(|seen| match seen.line().split(' ').nth(1).unwrap() {
        "/base/v1/chat/completions" => reply(200, COMPLETION, "req_1"),
        "/base/v1/bad" => reply(400, r#"{"error":{"message":"no","type":"invalid_request_error"}}"#, "req_2"),
        "/base/v1/reset" => Reply::nothing().reset(),
        "/base/v1/hang" => Reply::nothing().freeze(),
        line => panic!("{line}"),
    });
    let weir = Weir::new();
    let ids = [("ok", "chat/completions"), ("bad", "bad"), ("reset", "reset"), ("hang", "hang")];
    let jobs: String = ids.iter().map(|(id, path)| openai_line(id, &format!("/v1/{path}"))).collect();
    weir.write("batch.jsonl", jobs);
    let (url, prices) =
        (server.url("/base/v1"), r#"{"m": {"input_cost_per_token": 1e-3, "output_cost_per_token": 1e-2}}"#);
    weir.write("prices.json", prices);
    let args = ["--url", &url, "--retries", "0", "--timeout", "6s", "--prices", "prices.json", "-q"];
    let output = send(&weir, "openai-batch", &args);
    let summary = summary(&output);
    assert_eq!((output.code, &summary["done"], &summary["dead_lettered"]), (1, &1.into(), &3.into()), "{summary}");
    let done = by_id(&weir, "out.jsonl");
    assert_eq!(done.keys().collect::<Vec<_>>(), ["ok"]);
    let response = &done["ok"]["response"];
    assert_eq!((&response["status_code"], &response["request_id"]), (&json!(200), &json!("req_1")));
    assert_eq!(response["body"], serde_json::from_str::<Value>(COMPLETION).unwrap());
    let errors = by_id(&weir, "out.jsonl.errors");
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert_eq!(
        (&errors["bad"]["response"]["status_code"], &errors["bad"]["response"]["request_id"], &errors["bad"]["error"]),
        (&json!(400), &json!("req_2"), &Value::Null)
    );
    assert_eq!(errors["hang"]["error"]["code"], "request_timeout");
    assert_eq!(
        (&errors["reset"]["error"]["code"], &errors["reset"]["response"]),
        (&json!("connection_error"), &Value::Null)
    );
    let sent = server.seen().into_iter().find(|seen| seen.line().contains("chat")).unwrap();
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let tokens = &summary["tokens"];
    assert_eq!(
        (&tokens["input"], &tokens["output"], &tokens["unpriced_responses"]),
        (&10.into(), &2.into(), &0.into())
    );
    assert!((tokens["cost_usd"].as_f64().unwrap() - 0.03).abs() < 1e-12, "{tokens}");
}

#[test]
fn an_anthropic_batch_has_one_file_of_results() {
    let server = Server::start(|seen| {
        assert_eq!(seen.line(), "POST /v1/messages HTTP/1.1");
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        match ["over", "other"].into_iter().find(|id| text.contains(id)) {
            Some("over") => {
                reply(403, r#"{"type":"error","error":{"type":"permission_error","message":"no"}}"#, "req_2")
            }
            Some("other") => reply(418, "<html>", "req_3"),
            _ => reply(200, MESSAGE, "req_1"),
        }
    });
    let weir = Weir::new();
    weir.write("batch.jsonl", ["ok", "over", "other"].map(anthropic_line).concat());
    let url = server.url("");
    let output = send(&weir, "anthropic-batch", &["--url", &url, "-H", "x-api-key: {key}", "--key", "s3", "-q"]);
    assert_eq!(output.code, 1, "{output:?}");
    let all = by_id(&weir, "out.jsonl");
    let message: Value = serde_json::from_str(MESSAGE).unwrap();
    assert_eq!(all["ok"]["result"], json!({"type": "succeeded", "message": message}));
    let error = |kind: &str, text: &str, id: &str| json!({"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": text}, "request_id": id}});
    assert_eq!(all["over"]["result"], error("permission_error", "no", "req_2"));
    assert_eq!(all["other"]["result"], error("invalid_request_error", "<html>", "req_3"));
    assert!(!weir.path("out.jsonl.errors").exists(), "this form has no error file");
    let seen = server.seen().remove(0);
    assert_eq!((seen.header("x-api-key"), seen.header("anthropic-version")), (Some("s3"), Some("2023-06-01")));
    assert_eq!(summary(&output)["tokens"]["input"], 10);
}

#[test]
fn jobs_that_are_given_up_or_too_late_are_cancelled_or_expired() {
    let url = format!("http://{}", closed_address());
    for (form, write, given_up) in [
        ("openai-batch", &(|id: &str| openai_line(id, "/v1/x")) as &dyn Fn(&str) -> String, "batch_cancelled"),
        ("anthropic-batch", &anthropic_line, "canceled"),
    ] {
        for (args, expected) in [(&["--give-up-after", "0s"], given_up), (&["--ttl", "0s"], "expired")] {
            let weir = Weir::new();
            weir.write("batch.jsonl", (0..6).map(|number| write(&format!("j{number}"))).collect::<String>());
            let output = send(&weir, form, &[&["--url", &url, "--backoff", "1ms..10ms", "-q"], &args[..]].concat());
            assert_eq!(output.code, 1, "{output:?}");
            let file = if form == "openai-batch" { "out.jsonl.errors" } else { "out.jsonl" };
            let all = by_id(&weir, file);
            assert_eq!(all.len(), 6);
            for line in all.values() {
                let found = if form == "openai-batch" { &line["error"]["code"] } else { &line["result"]["type"] };
                assert!(found.as_str().unwrap().ends_with(expected), "{form} {args:?}: {line}");
            }
        }
    }
}

#[test]
fn a_response_that_fails_its_check_is_asked_again_within_the_attempts() {
    let server = Server::start(|seen| {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        match (text.contains("never"), text.contains("html"), seen.number) {
            (true, ..) => reply(200, &COMPLETION.replace("stop", "length"), "r"),
            (_, true, 3) => reply(200, "<html>", "r"),
            (_, false, 0 | 1) => reply(200, &COMPLETION.replace("stop", "length"), "r"),
            _ => reply(200, COMPLETION, "r"),
        }
    });
    let weir = Weir::new();
    let write = |id: &str| {
        weir.write("batch.jsonl", openai_line(id, "/v1/chat/completions"));
        let check = r#"jsonpath "$.choices[0].finish_reason" == "stop""#;
        let args = ["--check", check, "--retries", "2", "--backoff", "1ms..10ms", "-q", "--max-concurrency", "1"];
        let output = send(&weir, "openai-batch", &[&["--url", &server.url("/")], &args[..]].concat());
        summary(&output)
    };
    let (first, second, third) = (write("again"), write("html"), write("never"));
    assert_eq!((&first["done"], &first["retried"]), (&1.into(), &2.into()), "{first}");
    assert_eq!((&second["done"], &second["retried"]), (&1.into(), &1.into()), "{second}");
    assert_eq!((&third["done"], &third["retried"], &third["dead_lettered"]), (&0.into(), &2.into(), &1.into()));
    assert_eq!(third["tokens"]["input"], 30, "what failed its check was paid for");
    let cause = third["main_failure"]["cause"].as_str().unwrap();
    assert!(cause.starts_with("the response failed --check 'jsonpath"), "{cause}");
    let errors = by_id(&weir, "out.jsonl.errors");
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["never"]);
    assert_eq!(errors["never"]["error"]["code"], "check_failed");
    assert_eq!(errors["never"]["response"]["body"]["choices"][0]["finish_reason"], "length");
    assert_eq!(by_id(&weir, "out.jsonl").len(), 2);
}

#[test]
fn a_line_that_is_none_of_the_batch_is_one_clear_line() {
    let server = Server::start(|_| reply(200, MESSAGE, "r"));
    let weir = Weir::new();
    let text = anthropic_line("a") + &openai_line("b", "/v1/x") + &anthropic_line("a") + &anthropic_line("c");
    weir.write("batch.jsonl", text);
    let output = send(&weir, "anthropic-batch", &["--url", &server.url("/")]);
    assert_eq!(output.code, 1, "{output:?}");
    let expected = "batch.jsonl, line 2: a line of OpenAI's form; give --results openai-batch; this line is not sent";
    assert!(output.stderr.contains(expected), "{}", output.stderr);
    assert!(output.stderr.contains("2 lines are invalid; see out.jsonl.invalid"), "{}", output.stderr);
    let invalid = lines(&weir.read("out.jsonl.invalid"));
    assert_eq!((&invalid[1]["line"], invalid.len()), (&3.into(), 2));
    assert_eq!(invalid[1]["reason"], "custom_id \"a\" is that of line 1; each line needs its own");
    assert_eq!(by_id(&weir, "out.jsonl").len(), 2);
    for (args, reason) in [
        (&["--results", "openai-batch"][..], "--out <FILE>"),
        (&["--results", "openai-batch", "--out", "new.jsonl"], "--results openai-batch needs --url"),
        (
            &["--results", "openai-batch", "--out", "out.jsonl", "--url", "http://h"],
            "out.jsonl: line 1 is a result in the form anthropic-batch",
        ),
        (&["--out", "out.jsonl", "--url", "http://h"], "line 1 is a result in the form anthropic-batch"),
        (&["--results", "openai-batch", "--out", "n", "--url", "http://h", "--resend"], "--resend needs the times"),
        (&["--prices", "batch.jsonl", "--url", "http://h"], "cannot read --prices batch.jsonl: "),
        (&["--check", "status = 200", "--url", "http://h"], "--check 'status = 200': expected"),
    ] {
        let output = weir.run(&[&["send", "batch.jsonl", "--store", "memory"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
        assert!(output.stderr.contains(reason), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn a_killed_batch_continues_without_lost_or_repeated_results() {
    const JOBS: u64 = 300;
    let server = Server::start(|seen| {
        let is_bad = String::from_utf8_lossy(&seen.body).contains("7\"");
        let answer =
            if is_bad { reply(400, r#"{"error":{"message":"no"}}"#, "r") } else { reply(200, COMPLETION, "r") };
        answer.after(Duration::from_millis(3))
    });
    let weir = Weir::new();
    let ids: Vec<String> = (0..JOBS).map(|number| format!("j{number}")).collect();
    weir.write("batch.jsonl", ids.iter().map(|id| openai_line(id, "/v1/chat/completions")).collect::<String>());
    let url = server.url("/");
    let plain = ["send", "batch.jsonl", "--results", "openai-batch", "--out", "out.jsonl", "--format", "json", "-q"];
    let args = [&plain[..], &["--url", &url, "--max-concurrency", "4", "--store", "jobs.db"]].concat();
    for round in 1..=3 {
        let running = weir.start(&args);
        until("some jobs to be sent", TIMEOUT, || server.requests() > round * 70);
        running.signal(Signal::KILL);
        assert_eq!(running.finish().code, -1);
    }
    let output = weir.run(&args);
    assert_eq!(output.code, 1, "{output:?}");
    let check = |weir: &Weir| {
        let (done, errors) = (by_id(weir, "out.jsonl"), by_id(weir, "out.jsonl.errors"));
        assert_eq!(errors.len(), 30, "those that end with 7");
        assert!(errors.keys().all(|id| id.ends_with('7')), "{errors:?}");
        let all: BTreeSet<&String> = done.keys().chain(errors.keys()).collect();
        assert_eq!((all.len() as u64, done.len() + errors.len()), (JOBS, JOBS as usize), "each has one result");
    };
    check(&weir);
    let before = server.requests();
    // With the store deleted, the files are what was done.
    std::fs::remove_file(weir.path("jobs.db")).unwrap();
    let output = weir.run(&args);
    assert_eq!((summary(&output)["in_results"].as_u64(), server.requests()), (Some(JOBS), before), "{output:?}");
    check(&weir);
    // What was dead-lettered is sent once more when it is asked for.
    let retried = weir.run(&["send", "retry", "jobs.db", "--state", "dead_lettered"]);
    assert_eq!(retried.code, 0, "{retried:?}");
    let output = weir.run(&args);
    assert_eq!((summary(&output)["dead_lettered"].as_u64(), server.requests()), (Some(30), before + 30), "{output:?}");
    assert_eq!(lines(&weir.read("out.jsonl.errors")).len(), 60);
}
