//! What belongs to a session of a trace, and what is counted of it: by the record of `weir serve llm`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_measure::Run;
use weir_testing::{Serving, Weir};

/// Arguments of a fast model that takes all requests at once.
const MODEL: &str =
    "llm --prefill 0ms --prefill-per-token 0ms --decode 0ms --jitter 0% --model m --slots 1000 --record served.jsonl";

fn run(serving: &Serving, trace: &str, flags: &[&str]) -> Run {
    let weir = Weir::new();
    weir.write("trace", trace);
    let load = ["llm", &serving.url, "--model", "m", "--format", "json", "--trace", "trace"];
    let output = weir.run(&[&load, flags].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.json()
}

/// Tokens of the prompts, in the order of arrivals.
fn prompts(serving: &Serving) -> Vec<u64> {
    let text = serving.get("/record").text().to_owned();
    let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    records.sort_by_key(|record| record["began_ns"].as_u64());
    records.iter().map(|record| record["input_tokens"].as_u64().unwrap()).collect()
}

fn serving() -> Serving {
    Serving::start(&MODEL.split(' ').collect::<Vec<_>>())
}

/// Request of a trace with a prompt of this length, which is also its name.
fn line(input: u64, members: &Value) -> String {
    let mut line = json!({"input_length": input, "output_length": 1, "request_id": input.to_string()});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    line.to_string() + "\n"
}

#[test]
fn a_sample_has_a_request_with_those_that_wait_for_it() {
    let pair = |k: u64| {
        let root = 2 * k + 10;
        line(root, &json!({"timestamp": k})) + &line(root + 1, &json!({"wait_for": [root.to_string()]}))
    };
    let serving = serving();
    let run = run(&serving, &(0..200).map(pair).collect::<String>(), &["--sample", "20%", "--seed", "2"]);
    let mut pairs: BTreeMap<u64, u64> = BTreeMap::new();
    prompts(&serving).iter().for_each(|input| *pairs.entry(input / 2).or_default() += 1);
    assert!((15..90).contains(&pairs.len()) && pairs.values().all(|count| *count == 2), "{pairs:?}");
    let left_out = run.trace.unwrap().left_out;
    assert_eq!(left_out, BTreeMap::from([("not_sampled".to_owned(), 400 - 2 * pairs.len() as u64)]));
}

#[test]
fn a_request_may_stand_before_what_it_waits_for_and_one_that_waits_for_nothing_known_is_left_out() {
    let trace = line(10, &json!({"timestamp": 0}))
        + &line(13, &json!({"timestamp": 0, "wait_for": ["10", "12"]}))
        + &line(12, &json!({"timestamp": 0, "wait_for": ["10"], "delay": 50}))
        + &line(14, &json!({"timestamp": 0, "wait_for": ["10", "99"]}));
    let serving = serving();
    let run = run(&serving, &trace, &[]);
    assert_eq!(prompts(&serving), [10, 12, 13]);
    let trace = run.trace.unwrap();
    assert_eq!((trace.requests, trace.later_turns, trace.left_out["lost_turn"]), (3, 2, 1));
}

#[test]
fn a_session_is_played_in_the_order_of_time_whatever_that_of_its_lines() {
    let trace = "Timestamp,Session ID,Request tokens,Response tokens\n2,a,30,1\n0,a,10,1\n1,a,20,1\n";
    for pacing in [["--trace-loop", "sessions"].as_slice(), &["--trace-loop", "closed", "-c", "1"]] {
        let serving = serving();
        let run = run(&serving, trace, &[pacing, &["--speed", "10x"]].concat());
        assert_eq!((prompts(&serving), run.requests.failed), (vec![10, 20, 30], 0), "{pacing:?}");
    }
}

#[test]
fn sessions_that_users_have_not_begun_by_the_end_are_neither_sent_nor_lost() {
    let serving =
        Serving::start(&["llm", "--model", "m", "--prefill", "20ms", "--slots", "1000", "--record", "served.jsonl"]);
    let trace: String = (0..5000).map(|k| line(10 + k, &json!({"timestamp": 0}))).collect();
    let run = run(&serving, &trace, &["--trace-loop", "closed", "-c", "2", "-d", "1s"]);
    let (sent, requests) = (prompts(&serving).len() as u64, run.requests);
    assert!(sent < 1000 && requests.ok > 0 && requests.ok + requests.unfinished <= sent, "{sent} {requests:?}");
    assert_eq!((requests.failed, requests.dropped, requests.waited), (0, 0, 0));
    assert_eq!(run.trace.unwrap().requests, sent);
}

#[test]
fn what_waits_for_a_user_is_counted_and_offered_when_it_arrives_in_the_trace() {
    let serving = Serving::start(&["llm", "--model", "m", "--prefill", "20ms", "--slots", "1000"]);
    let trace: String = (0..20).map(|k| line(10, &json!({"timestamp": 10 * k}))).collect();
    let run = run(&serving, &trace, &["-c", "1"]);
    assert!(run.requests.waited > 0 && run.requests.ok == 20, "{:?}", run.requests);
    let offered = [run.rate_per_s.offered, run.iterations.unwrap().rate_per_s.offered];
    assert_eq!(offered.map(f64::round), [105.0; 2], "20 in 190 ms");
}
