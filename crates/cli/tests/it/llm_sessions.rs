//! Sessions of a trace with `weir llm --trace`: requests that wait for others, judged by `weir serve llm --record`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use weir_measure::{LoadModel, Run};
use weir_testing::{Output, Serving, Weir};

/// Arguments of a model that takes all requests at once, and some time for each of them.
const MODEL: [&str; 13] = [
    "llm",
    "--prefill",
    "20ms",
    "--prefill-per-token",
    "0ms",
    "--decode",
    "1ms",
    "--jitter",
    "0%",
    "--model",
    "m",
    "--slots",
    "1000",
];
const MS: u64 = 1_000_000;

fn llm(url: &str, trace: &str, flags: &[&str]) -> Output {
    let weir = Weir::new();
    weir.write("trace", trace);
    weir.run(&[&["llm", url, "--model", "m", "--format", "json", "--trace", "trace"], flags].concat())
}

fn run(url: &str, trace: &str, flags: &[&str]) -> Run {
    let output = llm(url, trace, flags);
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.json()
}

/// Start and end of a request, in nanoseconds, by the tokens of its prompt.
fn times(serving: &Serving, input: u64) -> (u64, u64) {
    let answer = serving.get("/record");
    let text = answer.text();
    let all: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut found = all.iter().filter(|record| record["input_tokens"] == input);
    let record = found.next().unwrap_or_else(|| panic!("no request of {input} tokens: {text}"));
    assert!(found.next().is_none(), "{input} was sent once");
    let at = |name: &str| record[name].as_u64().unwrap();
    (at("began_ns"), at("began_ns") + at("e2e_ns"))
}

const HEADER: &str = r#"{"schema":"dynamo.agentic_mooncake","version":2,"block_size":16,"hash_id_scope":"local","source":{"format":"f","digest":"d"}}"#;

/// Tokens of each response of a play. They take longer than the starts of two requests are apart on a busy machine.
const TOKENS: u64 = 500;

/// Request of a play with what it waits for: request, trigger and delay in milliseconds.
fn row(play: &str, id: &str, input: u64, not_before: u64, after: &[(&str, &str, u64)]) -> String {
    let after = after.iter().map(|(of, trigger, delay)| {
        json!({"request_id": of, "trigger": trigger, "delay_ms": *delay as f64, "relation": "sequence"})
    });
    let row = json!({
        "request_id": id, "play_id": play, "session_id": id, "model": "m", "input_length": input, "output_length": TOKENS,
        "hash_ids": [], "not_before_ms": not_before as f64, "dependencies": after.collect::<Vec<_>>(),
    });
    row.to_string() + "\n"
}

/// The same with a response of 3 s, so that others start before its end also where they are late.
fn long(row: &str) -> String {
    row.replace(&format!("\"output_length\":{TOKENS}"), "\"output_length\":3000")
}

#[test]
fn requests_that_wait_for_the_same_response_start_together_and_the_last_one_joins_them() {
    let serving = Serving::start(&MODEL);
    let tools = [101, 102, 103];
    let trace = [
        HEADER.to_owned() + "\n",
        long(&row("p", "plan", 100, 0, &[])),
        row("q", "alone", 500, 5, &[]),
        long(&row("p", "a", 101, 0, &[("plan", "completion", 10)])),
        long(&row("p", "b", 102, 0, &[("plan", "completion", 10)])),
        row("p", "c", 103, 0, &[("plan", "completion", 40)]),
        row("p", "background", 200, 0, &[("plan", "dispatch", 200)]),
        row("p", "join", 300, 0, &[("a", "completion", 7), ("b", "completion", 7), ("c", "completion", 7)]),
        row("p", "lost", 400, 0, &[("nothing", "completion", 0)]),
    ]
    .concat();
    let run = run(&serving.url, &trace, &[]);
    let found = run.trace.clone().unwrap();
    assert_eq!((found.format.as_str(), found.requests, found.later_turns), ("agentic", 7, 5), "{found:?}");
    assert_eq!(found.left_out.get("lost_turn"), Some(&1));
    let (plan, plan_end) = times(&serving, 100);
    let started = tools.map(|input| times(&serving, input));
    assert!(started[..2].iter().all(|(at, _)| *at >= plan_end + 10 * MS) && started[2].0 >= plan_end + 40 * MS);
    // Both are in flight at once, since neither waits for the other.
    assert!(started[0].0 < started[1].1 && started[1].0 < started[0].1, "{started:?}");
    let background = times(&serving, 200).0;
    assert!(background > plan && background < plan_end, "{plan} {background} {plan_end}: of the start alone");
    let last = started.iter().map(|(_, end)| *end).max().unwrap();
    assert!(times(&serving, 300).0 >= last + 7 * MS);
    let sessions = run.iterations.unwrap();
    assert_eq!((sessions.total, sessions.ok), (2, 2));
    // The plan, the slowest tool behind its delay, and the join: a millisecond for each token but the first.
    assert!(sessions.time_ms.max.unwrap() >= 3.0 * (TOKENS - 1) as f64 + 40.0 + 7.0, "{:?}", sessions.time_ms);
}

#[test]
fn lists_of_requests_to_wait_for_are_those_of_the_first_version() {
    let serving = Serving::start(&MODEL);
    let trace = r#"{"request_id":"root","session_id":"s","timestamp":0,"input_length":10,"output_length":2}
{"request_id":"x","session_id":"t","input_length":11,"output_length":2,"wait_for":["root"],"delay":2,"tool_wait_ms":13}
{"request_id":"y","session_id":"u","input_length":12,"output_length":2,"wait_for":["root"],"delay":2}
{"request_id":"z","session_id":"s","input_length":13,"output_length":2,"wait_for":["x","y"],"delay":0}
"#;
    let run = run(&serving.url, trace, &[]);
    assert_eq!(run.trace.unwrap().later_turns, 3);
    let end = |input| times(&serving, input).1;
    assert!(times(&serving, 11).0 >= end(10) + 15 * MS && times(&serving, 12).0 >= end(10) + 2 * MS);
    assert!(times(&serving, 13).0 >= end(11).max(end(12)));
}

/// BurstGPT's table with two sessions of two requests, recorded by a server that took two seconds for each.
const TABLE: &str = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
0,s1,2,GPT-4,10,2,12,Conversation log
0,s2,2,GPT-4,20,2,22,Conversation log
2,s1,2,GPT-4,11,2,13,Conversation log
3,s2,2,GPT-4,21,2,23,Conversation log
";

#[test]
fn in_sessions_the_time_between_a_response_and_the_next_request_is_the_recorded_one() {
    let serving = Serving::start(&MODEL);
    let run = run(&serving.url, TABLE, &["--trace-loop", "sessions", "--speed", "10x"]);
    assert_eq!((run.model, run.trace.unwrap().later_turns), (LoadModel::Open, 2));
    let gap = |first: u64| times(&serving, first + 1).0 - times(&serving, first).1;
    // A think time of a second, ten times as fast.
    assert!(gap(20) >= 100 * MS, "{} {}", gap(10), gap(20));
    let steps: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(steps, ["first turn", "later turns"]);
}

#[test]
fn in_a_closed_loop_a_user_begins_the_next_session_when_it_has_ended_one() {
    let serving = Serving::start(&MODEL);
    let line = |k: u64| {
        let at = k * 3_600_000;
        format!("{{\"session_id\":{k},\"timestamp\":{at},\"input_length\":{},\"output_length\":2}}\n", 100 + k)
    };
    let trace: String = (0..6).map(line).collect();
    let run = run(&serving.url, &trace, &["--trace-loop", "closed", "-c", "2"]);
    assert_eq!((run.model, run.requests.ok), (LoadModel::Closed, 6), "hours lie between them in the trace");
    let mut all: Vec<(u64, u64)> = (0..6).map(|k| times(&serving, 100 + k)).collect();
    all.sort_unstable();
    for (number, (at, _)) in all.iter().enumerate() {
        let in_flight = all[..number].iter().filter(|(_, end)| end > at).count();
        assert!(in_flight < 2, "{all:?}");
    }
    let output = llm(&serving.url, &trace, &["--trace-loop", "closed"]);
    assert_eq!((output.code, output.one_line().contains("--trace-loop closed needs -c N")), (2, true), "{output:?}");
}

#[test]
fn a_report_has_the_time_to_the_last_response_of_a_session() {
    let serving = Serving::start(&MODEL);
    let weir = Weir::new();
    weir.write(
        "trace",
        HEADER.to_owned() + "\n" + &row("p", "a", 1, 0, &[]) + &row("p", "b", 2, 0, &[("a", "completion", 5)]),
    );
    let output = weir.run(&["llm", &serving.url, "--model", "m", "--trace", "trace", "--html", "r.html"]);
    assert_eq!(output.code, 0, "{output:?}");
    let rows: Vec<&str> = output.stdout.lines().map(|line| line.split("  ").next().unwrap()).collect();
    let at = |name: &str| rows.iter().position(|row| *row == name).unwrap_or_else(|| panic!("{}", output.stdout));
    assert_eq!(at("session"), at("end to end") + 1);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    assert!(weir.read("r.html").contains("session"));
}

#[test]
fn a_session_with_a_failure_sends_nothing_more() {
    let arguments = [&MODEL[..], &["--max-context", "750"]].concat();
    let serving = Serving::start(&arguments);
    let trace = [
        HEADER.to_owned() + "\n",
        row("p", "a", 100, 0, &[]),
        row("p", "b", 300, 0, &[("a", "completion", 0)]),
        row("p", "c", 101, 0, &[("a", "completion", 0)]),
        row("p", "d", 102, 0, &[("b", "completion", 0), ("c", "completion", 0)]),
        row("q", "e", 103, 0, &[]),
    ]
    .concat();
    let run = run(&serving.url, &trace, &[]);
    let sessions = run.iterations.unwrap();
    assert_eq!((run.requests.ok, run.requests.failed), (3, 1), "the last one of the first session is not sent");
    assert_eq!((sessions.ok, sessions.failed), (1, 1));
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn a_request_waits_for_the_delay_after_the_start_of_another_one() {
        let serving = Serving::start(&MODEL);
        let trace = [
            HEADER.to_owned() + "\n",
            row("p", "plan", 100, 0, &[]),
            row("p", "background", 200, 0, &[("plan", "dispatch", 200)]),
        ]
        .concat();
        run(&serving.url, &trace, &[]);
        let (plan, background) = (times(&serving, 100).0, times(&serving, 200).0);
        // The server sees the plan later than it was sent, by what a first connection takes.
        assert!(background >= plan + 100 * MS, "{plan} {background}");
    }
}
