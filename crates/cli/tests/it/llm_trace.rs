//! `weir llm --trace` against `weir serve llm --record`: arrivals, lengths and shared blocks are those of the trace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::HashSet;

use serde_json::{Value, json};
use weir_measure::run_trace::RunTrace;
use weir_measure::{LoadModel, Run};
use weir_testing::{Output, Reply, Seen, Server, Serving, Weir};

/// Arguments of a fast model that takes all requests at once.
const MODEL: &str =
    "llm --prefill 0ms --prefill-per-token 0ms --decode 0ms --jitter 0% --model m --slots 1000 --record served.jsonl";

/// A request of a trace in Mooncake's format.
struct Recorded {
    ms: u64,
    input: u64,
    output: u64,
    blocks: Vec<u64>,
}

/// A trace whose prompts share the blocks of one of three roots, of up to five blocks.
fn recorded(count: u64, gap_ms: u64) -> Vec<Recorded> {
    let request = |k: u64| {
        let (whole, root) = (k % 5, k % 3);
        let mut blocks: Vec<u64> = (0..whole).map(|block| root * 100 + block).collect();
        blocks.push(1_000 + k);
        Recorded { ms: k * gap_ms, input: whole * 512 + 1 + (k * 37) % 511, output: 1 + k % 7, blocks }
    };
    (0..count).map(request).collect()
}

fn lines(trace: &[Recorded]) -> String {
    let line = |one: &Recorded| {
        json!({"timestamp": one.ms, "input_length": one.input, "output_length": one.output, "hash_ids": one.blocks})
            .to_string()
            + "\n"
    };
    trace.iter().map(line).collect()
}

fn llm(weir: &Weir, url: &str, flags: &[&str]) -> Output {
    weir.run(&[&["llm", url, "--model", "m", "--format", "json"], flags].concat())
}

fn run(url: &str, trace: &str, flags: &[&str]) -> Run {
    let weir = Weir::new();
    weir.write("trace", trace);
    let output = llm(&weir, url, &[&["--trace", "trace"], flags].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.json()
}

fn traced(run: &Run) -> RunTrace {
    run.trace.clone().unwrap()
}

/// Records of the server, in the order of arrivals.
fn records(serving: &Serving) -> Vec<Value> {
    let mut records: Vec<Value> =
        serving.get("/record").text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| record["began_ns"].as_u64());
    records
}

fn tokens(records: &[Value]) -> Vec<(u64, u64)> {
    let of = |record: &Value, name: &str| record[name].as_u64().unwrap();
    let mut tokens: Vec<_> =
        records.iter().map(|record| (of(record, "input_tokens"), of(record, "output_tokens"))).collect();
    tokens.sort_unstable();
    tokens
}

fn expected_tokens(trace: &[Recorded]) -> Vec<(u64, u64)> {
    let mut tokens: Vec<_> = trace.iter().map(|one| (one.input, one.output)).collect();
    tokens.sort_unstable();
    tokens
}

/// Whole blocks of a trace, and those whose prefix an earlier prompt has: the same in each order of arrivals.
fn expected_blocks(trace: &[Recorded]) -> (u64, u64) {
    let (mut prefixes, mut whole, mut seen) = (HashSet::new(), 0, 0);
    for one in trace {
        for end in 1..=usize::try_from(one.input / 512).unwrap() {
            whole += 1;
            seen += u64::from(!prefixes.insert(&one.blocks[..end]));
        }
    }
    (whole, seen)
}

#[test]
fn lengths_and_shared_blocks_are_those_of_the_trace() {
    for (api, threads) in [("chat", "1"), ("completions", "2")] {
        let serving = Serving::start_line(MODEL);
        let trace = recorded(60, 5);
        let run = run(&serving.url, &lines(&trace), &["--api", api, "-t", threads, "--seed", "7"]);
        let records = records(&serving);
        assert_eq!(tokens(&records), expected_tokens(&trace), "{api}");
        let sum = |field: &str| records.iter().map(|record| record[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("blocks"), sum("seen_blocks")), expected_blocks(&trace), "{api}");
        // Each response has a maximum of tokens, and all of them.
        assert!(records.iter().all(|record| record["max_tokens"] == record["output_tokens"]));
        let found = traced(&run);
        assert_eq!((&*found.format, found.lines, found.requests, found.speed), ("mooncake", 60, 60, 1.0));
        assert_eq!(found.input_tokens, sum("input_tokens"));
        assert_eq!(found.output_tokens, sum("output_tokens"));
        assert_eq!((run.requests.ok, run.model), (60, LoadModel::Open));
        assert!((found.trace_s - 0.295).abs() < 1e-9 && found.left_out.is_empty(), "{found:?}");
    }
}

#[test]
fn no_request_arrives_before_its_time() {
    let serving = Serving::start_line(MODEL);
    let trace = recorded(30, 10);
    run(&serving.url, &lines(&trace), &["--speed", "2x"]);
    let records = records(&serving);
    let at = |record: &Value| record["began_ns"].as_u64().unwrap();
    // The first one may be late, and no later one is before its own time after the start.
    let first = at(&records[0]);
    let last = at(&records[29]) - first;
    assert!(last >= 100_000_000, "{last} ns of 145 ms");
}

#[test]
fn later_turns_wait_for_the_response_and_their_delay() {
    let serving = Serving::start_line(MODEL);
    let lines = r#"{"session_id":"a","timestamp":0,"input_length":100,"output_length":5}
{"session_id":"a","delay":60,"input_length":200,"output_length":6}
{"session_id":"b","timestamp":10,"input_length":50,"output_length":7}
{"session_id":"c","delay":60,"input_length":1,"output_length":1}
"#;
    let run = run(&serving.url, lines, &[]);
    let found = traced(&run);
    assert_eq!((found.requests, found.later_turns, found.left_out["lost_turn"]), (3, 1, 1));
    let steps: Vec<(&str, u64)> = run.steps.iter().map(|step| (&*step.name, step.requests)).collect();
    assert_eq!(steps, [("first turn", 2), ("later turns", 1)]);
    let records = records(&serving);
    let of = |input: u64| records.iter().find(|record| record["input_tokens"] == input).unwrap();
    let at = |record: &Value, name: &str| record[name].as_u64().unwrap();
    let ended = at(of(100), "began_ns") + at(of(100), "e2e_ns");
    assert!(at(of(200), "began_ns") >= ended + 60_000_000);
}

#[test]
fn a_sample_has_whole_sessions_by_seed() {
    let serving = Serving::start_line(MODEL);
    let line = |k: u64| match k % 2 {
        0 => format!("{{\"session_id\":{k},\"timestamp\":{},\"input_length\":{},\"output_length\":1}}\n", k / 2, k + 1),
        _ => format!("{{\"session_id\":{},\"delay\":0,\"input_length\":{},\"output_length\":1}}\n", k - 1, k + 1),
    };
    let trace: String = (0..120).map(line).collect();
    let sample = |seed: &str| {
        let before = records(&serving).len();
        let run = run(&serving.url, &trace, &["--sample", "50%", "--seed", seed]);
        let found = traced(&run);
        assert_eq!(found.requests + found.left_out["not_sampled"], 120);
        assert!((20..=100).contains(&found.requests) && found.later_turns * 2 == found.requests, "{found:?}");
        let lengths: HashSet<u64> =
            records(&serving)[before..].iter().map(|record| record["input_tokens"].as_u64().unwrap()).collect();
        // A session is two lengths, an odd one and the even one behind it.
        assert!(
            lengths.iter().all(|length| lengths.contains(&(if length % 2 == 1 { length + 1 } else { length - 1 })))
        );
        lengths
    };
    let first = sample("1");
    assert_eq!(sample("1"), first);
    assert_ne!(sample("2"), first);
}

#[test]
fn part_of_a_trace_is_replayed() {
    let serving = Serving::start_line(MODEL);
    let lines = lines(&recorded(50, 10));
    assert_eq!(traced(&run(&serving.url, &lines, &["--trace-duration", "100ms"])).requests, 10);
    assert_eq!(traced(&run(&serving.url, &lines, &["-n", "7", "--speed", "100"])).requests, 7);
    let cut = run(&serving.url, &lines, &["-d", "150ms", "--speed", "2"]);
    assert_eq!((traced(&cut).requests, cut.requests.total), (30, 30));
}

#[test]
fn tables_spans_and_texts_are_replayed() {
    let serving = Serving::start_line(MODEL);
    let azure =
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:46.7,9,3\n";
    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,472,18,490,Conversation log\n5,ChatGPT,0,0,0,Conversation log\n";
    let text = "{\"timestamp\":1,\"text_input\":\"one \\\"two\\\"\",\"output_length\":2}\n";
    let share = "{\"time\":1700000000,\"conversations\":[{\"from\":\"human\",\"value\":\"hello you\"},\
                 {\"from\":\"gpt\",\"value\":\"a b c d\"}]}\n";
    for (trace, format, expected) in [
        (azure, "azure", &[(9, 3), (374, 44)][..]),
        (burst, "burstgpt", &[(472, 18)]),
        (text, "mooncake", &[(3, 2)]),
        (share, "sharegpt", &[(3, 4)]),
    ] {
        let before = records(&serving).len();
        assert_eq!(traced(&run(&serving.url, trace, &[])).format, format);
        assert_eq!(tokens(&records(&serving)[before..]), expected, "{format}");
    }
}

/// Server that responds with a stream of one chunk, without usage.
fn uncounted() -> Server {
    Server::start(|_: &Seen| {
        let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
        let head = format!("Content-Type: text/event-stream\r\nContent-Length: {}", body.len());
        Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"))
    })
}

/// Tokenizer whose tokens are what the pattern finds.
fn tokenizer(pattern: &str) -> String {
    let split = json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": true});
    let model = json!({"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"});
    json!({"version": "1.0", "pre_tokenizer": split, "model": model, "added_tokens": []}).to_string()
}

#[test]
fn prompts_have_their_lengths_by_the_tokenizer_that_is_given() {
    let (server, weir) = (uncounted(), Weir::new());
    let trace = recorded(10, 1);
    weir.write("trace", lines(&trace));
    weir.write("words.json", tokenizer("[a-z]+"));
    // Words of more than three letters are two tokens.
    weir.write("parts.json", tokenizer("[a-z]{1,3}"));
    weir.write("letters.json", tokenizer("[a-z]"));
    let run = |file: &str| llm(&weir, &server.url(""), &["--trace", "trace", "--tokenizer", file]);
    for file in ["words.json", "parts.json"] {
        let output = run(file);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let found = output.json().llm.unwrap();
        assert_eq!(found.input_tokens, trace.iter().map(|one| one.input).sum::<u64>(), "{file}");
        assert_eq!((found.with_counted_tokens, found.requests), (10, 10));
    }
    let refused = run("letters.json");
    assert_eq!(refused.code, 2);
    assert!(refused.one_line().contains("0 of 251 words of prompts are one token each"), "{}", refused.stderr);
}

#[test]
fn bodies_have_the_lengths_and_what_is_removed_is_not_sent() {
    let server = uncounted();
    let line = "{\"timestamp\":0,\"input_length\":5,\"output_length\":9}\n";
    run(&server.url(""), line, &[]);
    run(&server.url(""), line, &["--extra-body", "{\"ignore_eos\": null, \"min_tokens\": null}"]);
    // Its response is that of another API.
    let weir = Weir::new();
    weir.write("trace", line);
    llm(&weir, &server.url(""), &["--trace", "trace", "--api", "ollama"]);
    let bodies: Vec<Value> = server.seen().iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect();
    let of = |body: &Value, name: &str| body[name].clone();
    let lengths = |body: &Value| ["max_tokens", "min_tokens", "ignore_eos"].map(|name| of(body, name));
    assert_eq!(lengths(&bodies[0]), [json!(9), json!(9), json!(true)]);
    assert_eq!(lengths(&bodies[1]), [json!(9), Value::Null, Value::Null]);
    assert_eq!(lengths(&bodies[2]), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(bodies[2]["options"], json!({"num_predict": 9}));
    assert_eq!(bodies[0]["messages"][0]["content"].as_str().unwrap().split(' ').count(), 5);
}

#[test]
fn a_trace_that_cannot_be_replayed_is_one_line() {
    let weir = Weir::new();
    weir.write("trace", lines(&recorded(3, 1)));
    weir.write("other", "{\"when\":1}\n");
    weir.write("blocks", "{\"timestamp\":0,\"input_length\":48,\"output_length\":1,\"hash_ids\":[1,2,3]}\n");
    weir.write("empty", "");
    weir.write("failed", "Timestamp,Request tokens,Response tokens\n1,0,0\n");
    for (flags, expected) in [
        (&["--trace", "missing"][..], "cannot read missing"),
        (&["--trace", "empty"], "empty has no lines"),
        (&["--trace", "other"], "--trace: other:1: unknown format of a trace; found when; expected mooncake"),
        (&["--trace", "other", "--trace-format", "mooncake"], "no timestamp; the format was taken to be mooncake"),
        (&["--trace", "blocks"], "3 blocks of 512 tokens are not the 48 tokens of the prompt; --trace-block"),
        (&["--trace", "failed"], "no request in 1 lines; most are left out: no_tokens"),
        (&["--trace", "trace", "--rate", "5"], "--rate and --trace FILE cannot be combined"),
        (&["--trace", "trace", "--dataset", "x"], "--dataset and --trace FILE cannot be combined"),
        (&["--trace", "trace", "--on", "local"], "--trace FILE and --on cannot be combined"),
        (&["--trace", "trace", "--sample", "0"], "--sample: write a fraction above 0%"),
        (&["--trace", "trace", "--trace", "other"], "--trace: give one file, and one fraction"),
        (&["--speed", "2"], "--speed needs --trace FILE"),
        (&["--trace", "1%"], "--trace FRACTION needs --out-otlp"),
        (&["--dataset", "trace"], "a trace is replayed by --trace FILE"),
    ] {
        let output = llm(&weir, "http://127.0.0.1:1", flags);
        assert_eq!(output.code, 2, "{flags:?}: {}", output.stderr);
        assert!(output.one_line().contains(expected), "{flags:?}: {}", output.stderr);
    }
}

mod timed {
    //! Deviation of arrivals from the trace, as the server has seen them.

    use super::*;

    #[test]
    fn arrivals_keep_the_times_of_the_trace() {
        let serving = Serving::start_line(MODEL);
        let trace = recorded(400, 5);
        run(&serving.url, &lines(&trace), &[]);
        let records = records(&serving);
        let at = |record: &Value| record["began_ns"].as_u64().unwrap() as f64 / 1e6;
        let mut late: Vec<f64> = records.iter().zip(&trace).map(|(record, one)| at(record) - one.ms as f64).collect();
        // The start of the load is unknown to the server: it is that of the earliest request.
        let start = late.iter().copied().fold(f64::INFINITY, f64::min);
        late.iter_mut().for_each(|ms| *ms -= start);
        late.sort_by(f64::total_cmp);
        println!("deviation of arrivals: {:.3} ms p50, {:.3} ms p99", late[200], late[396]);
        assert!(late[200] < 5.0, "{:.3} ms p50", late[200]);
    }
}
