//! `weir llm` where something is wrong: one clear line, or a counted failure.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Output, Reply, Server, Serving, Weir};

fn llm(url: &str, flags: &[&str]) -> Output {
    Weir::new().run(&[&["llm", url, "-q"], flags].concat())
}

const SHORT: [&str; 6] = ["-n", "3", "-c", "1", "--input-tokens", "4"];

fn fast(more: &[&str]) -> Serving {
    let model = ["llm", "--prefill", "0ms", "--decode", "0ms", "--output-tokens", "5", "--model", "m"];
    Serving::start(&[&model, more].concat())
}

#[test]
fn an_objective_of_a_token_time_without_a_statistic_is_told_to_have_one() {
    let output = llm("http://127.0.0.1:1/v1", &["--slo", "ttft<200ms"]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("'ttft' has many values; choose one, e.g. ttft.p99<200ms"), "{output:?}");
}

#[test]
fn a_key_that_is_wrong_and_a_model_that_is_not_there_are_one_line() {
    let serving = fast(&["--api-key", "k"]);
    let output = llm(&serving.url, &[&SHORT[..], &["--model", "m"]].concat());
    assert_eq!((output.code, output.one_line().starts_with("none of 3 requests succeeded; status 401: ")), (3, true));
    let serving = fast(&[]);
    let output = llm(&serving.url, &[&SHORT[..], &["--model", "other"]].concat());
    assert_eq!(output.code, 3);
    let line = output.one_line();
    assert!(line.starts_with("none of 3 requests succeeded; status 404: ") && line.contains("other"), "{line}");
    assert!(output.stdout.contains("NONE OF 3 REQUESTS SUCCEEDED: 3 x 404"), "{}", output.stdout);
}

/// Server with one response to all requests.
fn server(content_type: &str, body: &str) -> Server {
    let (length, body) = (body.len(), body.to_owned());
    let text = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}");
    Server::start(move |_| Reply::raw(&text))
}

#[test]
fn a_response_that_is_no_stream_is_a_failure_with_its_remedy() {
    let server = server("application/json", r#"{"choices":[{"message":{"content":"a"}}]}"#);
    let output = llm(&server.url(""), &[&SHORT[..], &["--model", "m"]].concat());
    assert_eq!(output.code, 3);
    let line = output.one_line();
    assert!(line.contains("not a stream: Content-Type 'application/json'") && line.contains("--no-stream"), "{line}");
}

#[test]
fn without_usage_chunks_are_counted_and_not_tokens() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a b c\"}}]}\n\n";
    let server = server("text/event-stream", &format!("{event}{event}data: [DONE]\n\n"));
    let output = llm(&server.url(""), &[&SHORT[..], &["--model", "m"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("no usage from the server: chunks are counted"), "{}", output.stdout);
    assert!(!output.stdout.contains("TPOT  ") && output.stdout.contains("TTFT"), "{}", output.stdout);
    assert!(output.stdout.contains("2.00 per request"), "{}", output.stdout);
}

#[test]
fn broken_json_and_errors_within_a_stream_are_counted_failures() {
    let good = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let broken = format!("{}data: {{\"choices\":[{{\n\n{good}data: [DONE]\n\n", good.repeat(499));
    let error = format!("{good}data: {{\"error\":{{\"message\":\"out of memory\"}}}}\n\n");
    for body in [broken, error] {
        let server = server("text/event-stream", &body);
        let output = llm(&server.url(""), &[&SHORT[..], &["--model", "m", "--format", "json"]].concat());
        assert_eq!(output.code, 3, "{}", output.stderr);
        let run = output.json();
        assert_eq!((run.requests.failed, run.requests.ok), (3, 0), "{:?}", run.failures);
        assert_eq!(run.llm.unwrap().requests, 0, "its times do not count");
    }
}

#[test]
fn limits_and_cuts_are_failures_by_their_kind() {
    let serving = fast(&["--requests-per-minute", "2"]);
    let output = llm(&serving.url, &["-n", "5", "-c", "1", "--input-tokens", "4", "--model", "m", "--format", "json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let run = output.json();
    assert_eq!((run.requests.ok, run.status.get("429")), (2, Some(&3)), "{:?}", run.status);
    assert!(run.steps[0].samples[0].reason.starts_with("status 429: "), "{:?}", run.steps[0].samples);
    for (fault, flags, kind) in [
        (&["--cut", "100%"][..], &[][..], "broken_off"),
        (&["--stall", "100%", "--stall-time", "1m"], &["--stall-timeout", "50ms"], "stalled"),
    ] {
        let serving = fast(fault);
        let flags = [&SHORT[..], &["--model", "m", "--format", "json"], flags].concat();
        let run = llm(&serving.url, &flags).json();
        assert_eq!((run.requests.failed, run.failures.get(kind)), (3, Some(&3)), "{:?}", run.failures);
    }
}

#[test]
fn mistakes_of_the_command_line_are_one_line_and_nothing_is_sent() {
    let server = Server::start(|_| Reply::ok("x"));
    let url = server.url("");
    let weir = Weir::new();
    weir.write("bad.jsonl", "{\"prompt\": \"a\"}\n{\"prompt\": 5}\n");
    weir.write("batch.jsonl", "{\"url\": \"/v1/embeddings\", \"body\": {\"input\": \"a\"}}\n");
    weir.write("good.txt", "a\n");
    for (flags, message) in [
        (&["-n", "1"][..], "--model is missing; write the name that the server has for it (GET /v1/models)"),
        (&["--model", "m", "--dataset", "bad.jsonl"], "bad.jsonl:2: expected a text as prompt"),
        (
            &["--model", "m", "--dataset", "none.jsonl"],
            "cannot read the data set 'none.jsonl': No such file or directory; write a file, or --dataset random for random words",
        ),
        (
            &["--model", "m", "--dataset", "good.txt", "--input-tokens", "5"],
            "--input-tokens is for --dataset random; the prompts of a file are as they are",
        ),
        (
            &["--model", "m", "--dataset", "batch.jsonl", "--api", "chat"],
            "the data set is a batch for /v1/embeddings, which is not --api chat",
        ),
        (
            &["--model", "m", "--extra-body", "[]"],
            "--extra-body: not an object; write a JSON object, e.g. {\"top_k\": 20}",
        ),
        (&["--model", "m", "--goodput", "itl:5"], "--goodput: unknown objective 'itl'; choose ttft, tpot or e2e"),
        (&["--model", "m", "--api-key-env", "NO_SUCH_KEY"], "--api-key-env: the environment has no NO_SUCH_KEY"),
        (&["--model", "m", "--endpoint", "chat"], "--endpoint 'chat': write a path, e.g. /v1/chat/completions"),
        (&["--model", "m", "--prefixes", "2"], "--prefixes needs --prefix-tokens"),
        (
            &["--model", "m", "--rate", "1", "--sweep", "rate=1,2"],
            "--rate and --sweep cannot be combined; the sweep has the values",
        ),
        (&["--model", "m", "--from", "4"], "--from needs --capacity"),
        (
            &["--model", "m", "--capacity", "rate"],
            "--capacity: give an objective to meet, e.g. --goodput 'ttft:500ms tpot:50ms' or --slo 'ttft.p99<500ms'",
        ),
        (
            &["--model", "m", "--capacity", "concurrency", "-d", "5s"],
            "--duration and --capacity cannot be combined; see --from, --to, --step-time",
        ),
        (
            &["--model", "m", "--body-template", "{\"a\": \"{{text}}\"}"],
            "--body-template: the template has no prompt; write e.g. {\"inputs\": \"{{prompt}}\"}",
        ),
    ] {
        let output = weir.run(&[&["llm", &url], flags].concat());
        assert_eq!((output.code, output.one_line()), (2, message), "{flags:?}");
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_stream_without_what_was_asked_for_is_a_failure_with_its_reason() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let role =
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n";
    let failed = "data: {\"error\":{\"message\":\"CUDA out of memory\"}}\n\n";
    for (content_type, body, reason) in [
        ("text/event-stream", "data: [DONE]\n\n".to_owned(), "the response has no token"),
        ("text/event-stream", format!("{role}data: [DONE]\n\n"), "the response has no token"),
        ("text/event-stream", token.to_owned(), "the stream ended without its last event"),
        ("text/event-stream", String::new(), "the response is empty"),
        ("text/event-stream", ": comment\n\ndata:\n\n".to_owned(), "the response is empty"),
        (
            "text/event-stream",
            format!("{token}{failed}data: [DONE]\n\n"),
            "event 2 reports an error: CUDA out of memory",
        ),
        ("text/event-stream", "event: error\ndata: overloaded\n\n".to_owned(), "event 1 reports an error: overloaded"),
        ("text/html", "<!doctype html><p>log in".to_owned(), "the response is an HTML page"),
    ] {
        let output = llm(&server(content_type, &body).url(""), &[&SHORT[..], &["--model", "m"]].concat());
        assert_eq!(output.code, 3, "{body}: {output:?}");
        assert!(output.one_line().contains(reason), "{body}: {}", output.stderr);
        let first = output.stdout.lines().next().unwrap_or_default();
        assert!(first.starts_with("NONE OF 3 REQUESTS SUCCEEDED: 3 body") && first.contains(&reason[..12]), "{first}");
        assert!(!output.stdout.contains("got no response"), "{}", output.stdout);
    }
}

#[test]
fn thinking_in_lists_and_heartbeats_are_read_as_providers_send_them() {
    let thinking = "{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]}";
    let body = format!(
        "data:\n\nevent: ping\ndata: 12:00\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":[{thinking}]}}}}]}}\n\n\
         : comment\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":[{{\"type\":\"text\",\"text\":\"a\"}}]}},\
         \"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":4,\"completion_tokens\":2}}}}\n\n"
    );
    let output = llm(&server("text/event-stream", &body).url(""), &[&SHORT[..], &["--model", "m"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("2.00 per request"), "{}", output.stdout);
}

#[test]
fn what_a_data_set_has_and_is_not_used_is_refused_with_a_remedy() {
    let weir = Weir::new();
    for (file, content, reason) in [
        ("trace.jsonl", "{\"timestamp\": 150, \"prompt\": \"a\"}\n", "timestamp is not used"),
        ("lengths.jsonl", "{\"timestamp\": 1, \"input_length\": 5, \"hash_ids\": [1]}\n", "--trace FILE"),
        ("burst.txt", "Timestamp,Model,Request tokens\n5,ChatGPT,472\n45,ChatGPT,1087\n", "--trace FILE"),
        ("prompts.csv", "prompt\nhello\n", "table (CSV)"),
    ] {
        weir.write(file, content);
        let output = weir.run(&["llm", "http://127.0.0.1:1/v1", "--model", "m", "--dataset", file, "-n", "1"]);
        assert_eq!(output.code, 2, "{file}: {output:?}");
        assert!(output.one_line().contains(reason), "{file}: {}", output.stderr);
    }
}
