//! `weir serve llm` from outside: APIs, times, errors, limits, records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use weir_events::llm::{LlmApi, LlmEvent, TokenUsage};
use weir_events::{EventReader, StreamFormat};
use weir_testing::{Answer, Serving, Weir, until};

const TEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// Flags of a fast model.
const FAST: [&str; 9] =
    ["llm", "--prefill", "1ms", "--prefill-per-token", "0ms", "--decode", "0ms", "--output-tokens", "5"];

fn chat(more: &Value) -> String {
    let mut body = json!({"model": "weir-llm", "messages": [{"role": "user", "content": "12345678"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body.to_string()
}

fn ask(serving: &Serving, path: &str, headers: &str, body: &str) -> Answer {
    let mut connection = serving.connect();
    let length = body.len();
    connection.send(format!("POST {path} HTTP/1.1\r\nHost: test\r\n{headers}Content-Length: {length}\r\n\r\n{body}"));
    connection.answer()
}

fn texts(body: &[u8]) -> Vec<String> {
    let (mut reader, mut rest, mut found) = (EventReader::new(StreamFormat::Sse), body, Vec::new());
    while let Some(event) = reader.next_event(&mut rest) {
        found.push(String::from_utf8(event.data.to_vec()).unwrap());
    }
    found
}

fn read(api: LlmApi, body: &[u8]) -> Vec<LlmEvent> {
    texts(body).iter().map(|text| api.read(text.as_bytes()).unwrap()).collect()
}

fn records(serving: &Serving) -> Vec<Value> {
    serving.get("/record").text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_api_streams_its_tokens_and_its_usage() {
    let serving = Serving::start(&FAST);
    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    for (path, api, body) in [
        ("/v1/chat/completions", LlmApi::Chat, chat(&options)),
        (
            "/v1/completions",
            LlmApi::Completions,
            chat(&json!({"stream": true, "stream_options": {"include_usage": true}, "prompt": "12345678"})),
        ),
        ("/v1/responses", LlmApi::Responses, chat(&json!({"stream": true, "input": "12345678"}))),
        ("/v1/messages", LlmApi::Messages, chat(&json!({"stream": true, "max_tokens": 100}))),
    ] {
        let answer = ask(&serving, path, "", &body);
        assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"), "{}", answer.text());
        let events = read(api, &answer.body);
        let mut usage = TokenUsage::default();
        events.iter().for_each(|event| usage.update(event.usage));
        assert_eq!(usage, TokenUsage { input: Some(2), output: Some(5) }, "{path}");
        assert_eq!(events.iter().filter(|event| event.token.is_some()).count(), 5, "{path}: {}", answer.text());
        assert!(events.last().unwrap().is_end && !events.iter().any(|event| event.is_error), "{path}");
    }
    let stats = serving.get("/stats").json();
    assert_eq!((stats["complete"].as_u64(), stats["output_tokens"].as_u64()), (Some(4), Some(20)));
    assert_eq!(serving.metric("weir_llm_output_tokens_total"), 20.0);
}

#[test]
fn a_whole_response_has_the_text_and_the_usage() {
    let serving = Serving::start(&FAST);
    let completion = ask(&serving, "/v1/chat/completions", "", &chat(&json!({}))).json();
    assert_eq!(completion["usage"], json!({"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7}));
    let choice = &completion["choices"][0];
    assert_eq!(choice["message"]["content"].as_str().unwrap().split(' ').count(), 5);
    assert_eq!((choice["finish_reason"].as_str(), completion["id"].as_str()), (Some("stop"), Some("chatcmpl-0-0")));
    let message = ask(&serving, "/v1/messages", "", &chat(&json!({"max_tokens": 3}))).json();
    assert_eq!(
        (message["stop_reason"].as_str(), message["usage"]["output_tokens"].as_u64()),
        (Some("max_tokens"), Some(3))
    );
    let long =
        ask(&serving, "/v1/completions", "", &chat(&json!({"prompt": "a", "max_tokens": 40, "ignore_eos": true})));
    assert_eq!(long.json()["usage"]["completion_tokens"], 40);
    let response = ask(&serving, "/v1/responses", "", &chat(&json!({"input": "a"}))).json();
    assert_eq!(
        (response["status"].as_str(), response["output"][0]["content"][0]["type"].as_str()),
        (Some("completed"), Some("output_text"))
    );
    let vectors = ask(&serving, "/v1/embeddings", "", &chat(&json!({"input": ["a", "b"], "dimensions": 2}))).json();
    assert_eq!(vectors["data"][1]["embedding"].as_array().unwrap().len(), 2);
}

#[test]
fn the_record_has_the_times_of_each_token() {
    let args =
        ["--slots", "1", "--prefill-per-token", "1ms", "--decode", "3ms", "--jitter", "0%", "--record", "record"];
    let serving = Serving::start(&[&FAST[..3], &args, &["--output-tokens", "4"]].concat());
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                ask(&serving, "/v1/chat/completions", "", &chat(&json!({"stream": true})));
            });
        }
    });
    let records = records(&serving);
    assert_eq!(records.len(), 2);
    assert_eq!(serving.weir.read("record").lines().count(), 2);
    for record in &records {
        let time = |name: &str| record[name].as_u64().unwrap();
        // Prefill: 1 ms and 2 tokens of 1 ms; then three tokens of 3 ms.
        assert!(time("ttft_ns") >= time("queue_ns") + 3_000_000, "{record}");
        assert!(time("e2e_ns") >= time("queue_ns") + 12_000_000, "{record}");
        let chunks: Vec<u64> =
            record["chunks_ns"].as_array().unwrap().iter().map(|time| time.as_u64().unwrap()).collect();
        assert_eq!(time("tpot_ns"), (chunks[3] - chunks[0]) / 3, "{record}");
        assert_eq!((record["chunks_ns"].as_array().unwrap().len(), &record["end"]), (4, &json!("complete")));
    }
    // The second one waits for the slot of the first.
    let queue = |index: usize| records[index]["queue_ns"].as_u64().unwrap();
    let ended =
        |index: usize| records[index]["began_ns"].as_u64().unwrap() + records[index]["e2e_ns"].as_u64().unwrap();
    assert!(records[1]["began_ns"].as_u64().unwrap() + queue(1) + 500_000 >= ended(0), "{records:?}");
}

#[test]
fn errors_have_the_shape_of_the_api() {
    let serving = Serving::start(&[&FAST[..], &["--api-key", "secret", "--max-context", "20"]].concat());
    let auth = "Authorization: Bearer secret\r\n";
    let key = "x-api-key: secret\r\n";
    let error = |path: &str, headers: &str, body: &str| {
        let answer = ask(&serving, path, headers, body);
        let error = answer.json()["error"].clone();
        let name = if path == "/v1/messages" { &error["type"] } else { &error["code"] };
        (answer.status, name.as_str().unwrap_or_default().to_owned())
    };
    let unknown = chat(&json!({"model": "other", "max_tokens": 1}));
    let long = chat(&json!({"max_tokens": 30, "ignore_eos": true}));
    for (path, headers, body, status, openai, anthropic) in [
        ("chat/completions", "", chat(&json!({"max_tokens": 1})), 401, "invalid_api_key", "authentication_error"),
        (
            "chat/completions",
            "Authorization: Bearer x\r\nx-api-key: x\r\n",
            chat(&json!({"max_tokens": 1})),
            401,
            "invalid_api_key",
            "authentication_error",
        ),
        ("chat/completions", "good", unknown, 404, "model_not_found", "not_found_error"),
        ("chat/completions", "good", long, 400, "context_length_exceeded", "invalid_request_error"),
        ("chat/completions", "good", "{".to_owned(), 400, "", "invalid_request_error"),
    ] {
        let (bearer, own) = if headers == "good" { (auth, key) } else { (headers, headers) };
        assert_eq!(error(&format!("/v1/{path}"), bearer, &body), (status, openai.to_owned()), "{body}");
        assert_eq!(error("/v1/messages", own, &body), (status, anthropic.to_owned()), "{body}");
    }
    assert_eq!(serving.get("/v1/chat/completions").status, 405);
    assert_eq!(serving.get("/v1/other").json()["error"]["message"], "Invalid URL (/v1/other)");
    assert_eq!(serving.get("/v1/models").status, 401);
    let models = ask_models(&serving, "/v1/models", auth);
    assert_eq!((models["object"].as_str(), models["data"][0]["id"].as_str()), (Some("list"), Some("weir-llm")));
    let anthropic =
        ask_models(&serving, "/v1/models/weir-llm", "x-api-key: secret\r\nanthropic-version: 2023-06-01\r\n");
    assert_eq!((anthropic["type"].as_str(), anthropic["display_name"].as_str()), (Some("model"), Some("weir-llm")));
}

fn ask_models(serving: &Serving, path: &str, headers: &str) -> Value {
    let mut connection = serving.connect();
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    connection.answer().json()
}

#[test]
fn limits_count_requests_and_tokens_per_key() {
    let args = ["--requests-per-minute", "3", "--tokens-per-minute", "20"];
    let serving = Serving::start(&[&FAST[..], &args].concat());
    let get = |key: &str| {
        ask(&serving, "/v1/chat/completions", &format!("Authorization: Bearer {key}\r\n"), &chat(&json!({})))
    };
    let first = get("a");
    assert_eq!(first.status, 200);
    for (name, value) in [
        ("x-ratelimit-limit-requests", "3"),
        ("x-ratelimit-remaining-requests", "2"),
        ("x-ratelimit-limit-tokens", "20"),
        ("x-ratelimit-remaining-tokens", "13"),
        ("x-ratelimit-reset-requests", "20s"),
    ] {
        assert_eq!(first.header(name), Some(value), "{name}");
    }
    assert_eq!(get("a").status, 200);
    let limited = get("a");
    assert_eq!(
        (limited.status, limited.json()["error"]["code"].as_str().unwrap().to_owned()),
        (429, "rate_limit_exceeded".to_owned())
    );
    assert!(limited.json()["error"]["message"].as_str().unwrap().starts_with("Rate limit reached on tokens per min."));
    assert!(limited.header("retry-after").is_some_and(|time| time.parse::<u64>().unwrap() <= 60));
    assert!(
        get("a").json()["error"]["message"].as_str().unwrap().starts_with("Rate limit reached on requests per min.")
    );
    assert_eq!(get("b").status, 200, "another key");
    let message = ask(&serving, "/v1/messages", "x-api-key: c\r\n", &chat(&json!({"max_tokens": 5})));
    assert_eq!(message.header("anthropic-ratelimit-tokens-remaining"), Some("13"));
    let large =
        ask(&serving, "/v1/messages", "x-api-key: c\r\n", &chat(&json!({"max_tokens": 50, "ignore_eos": true})));
    assert_eq!((large.status, large.header("retry-after")), (429, None));
    assert_eq!(large.json()["error"]["type"], "rate_limit_error");
}

#[test]
fn faults_are_played() {
    let stream = chat(&json!({"stream": true}));
    let serving = Serving::start(&[&FAST[..], &["--cut", "100%"]].concat());
    let mut connection = serving.connect();
    let length = stream.len();
    connection
        .send(format!("POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{stream}"));
    let cut = connection.cut_answer();
    assert!(!texts(&cut.body).iter().any(|text| text == "[DONE]"));
    assert_eq!(records(&serving)[0]["end"], "cut");

    let serving = Serving::start(&[&FAST[..], &["--mix", "garbage=1", "--tokens-per-chunk", "2"]].concat());
    let garbage = ask(&serving, "/v1/chat/completions", "", &stream);
    let texts = texts(&garbage.body);
    let broken = texts.iter().filter(|text| LlmApi::Chat.read(text.as_bytes()).is_err()).count();
    // Role, three chunks of five tokens, end, and [DONE].
    assert_eq!((texts.len(), broken), (6, 1), "{texts:?}");
    let half = ask(&serving, "/v1/chat/completions", "", &chat(&json!({})));
    assert!(half.status == 200 && serde_json::from_slice::<Value>(&half.body).is_err());

    for (behaviour, status) in [("error", 500), ("limited", 429)] {
        let serving = Serving::start(&[&FAST[..], &["--mix", &format!("{behaviour}=1")]].concat());
        let answer = ask(&serving, "/v1/chat/completions", "", &stream);
        assert_eq!((answer.status, answer.json()["error"]["message"].is_string()), (status, true));
        assert_eq!(serving.get("/stats").json()["statuses"], json!({(status.to_string()): 1}));
    }
}

#[test]
fn a_client_that_leaves_frees_its_slot() {
    let serving = Serving::start(&["llm", "--slots", "1", "--prefill", "10m"]);
    let body = chat(&json!({"stream": true}));
    let mut connection = serving.connect();
    let length = body.len();
    connection
        .send(format!("POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}"));
    until("the prefill", TEST_TIMEOUT, || serving.get("/stats").json()["running"] == 1);
    drop(connection);
    until("its end", TEST_TIMEOUT, || serving.get("/stats").json()["client_closed"] == 1);
    assert_eq!(serving.get("/stats").json()["running"], 0);
    assert_eq!(records(&serving)[0]["ttft_ns"], Value::Null);
}

#[test]
fn invalid_flags_are_one_line() {
    for (flag, value, reason) in [
        ("--output-tokens", "0", "invalid number of tokens '0'; write e.g. 64 or 16..128"),
        ("--jitter", "200%", "invalid jitter '200%': above 100%; write e.g. 10%"),
        ("--slots", "0", "0 is not in 1..=1000000"),
        ("--decode", "fast", "invalid time 'fast'"),
    ] {
        let output = Weir::new().run(&["serve", "llm", flag, value]);
        assert!(output.code == 2 && output.stderr.contains(reason), "{flag}: {output:?}");
    }
}
