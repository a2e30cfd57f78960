//! `weir llm --trace FILE` with clients in place of a trace, judged by `weir serve llm --record`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::HashMap;

use serde_json::Value;
use weir_measure::{LoadModel, Run};
use weir_testing::{Output, Serving, Weir};

/// Arguments of a fast model that takes all requests at once.
const MODEL: &str = "llm --prefill 1ms --prefill-per-token 0ms --decode 0ms --jitter 0% --model m --slots 1000 \
     --block-tokens 16 --record served.jsonl";

/// Two clients whose requests are told apart by their lengths: one talks, and one asks in bursts.
const CLIENTS: &str = r#"
[[client]]
name = "chat"
stages = "20-60/1s,60/1s"
input_tokens = "40..60"
output_tokens = 7
prefix_tokens = 160
conversations = "50%"
turns = "2..4"
think = "exponential 20ms"

[[client]]
name = "batch"
rate = 40
arrivals = "weibull"
cv = 2.5
input_tokens = "lognormal 1000 1200"
output_tokens = 3
"#;

fn llm(url: &str, clients: &str, flags: &[&str]) -> (Weir, Output) {
    let weir = Weir::new();
    weir.write("clients.toml", clients);
    let output = weir.run(&[&["llm", url, "--model", "m", "--trace", "clients.toml"], flags].concat());
    (weir, output)
}

fn run(url: &str, clients: &str, flags: &[&str]) -> Run {
    let output = llm(url, clients, &[&["--format", "json"], flags].concat()).1;
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.json()
}

fn records(serving: &Serving) -> Vec<Value> {
    serving.get("/record").text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap()
}

#[test]
fn each_client_sends_what_its_table_says_and_has_its_own_figures() {
    let serving = Serving::start_line(MODEL);
    let flags = ["--trace-duration", "2s", "--seed", "5", "--slo", "chat: errors<1%"];
    let run = run(&serving.url, CLIENTS, &flags);
    let trace = run.trace.clone().unwrap();
    assert_eq!((&*trace.format, trace.lines, run.model), ("clients", 0, LoadModel::Open));
    let [chat, batch] = &trace.clients[..] else { panic!("{trace:?}") };
    assert_eq!((&*chat.name, &*batch.name), ("chat", "batch"));
    // The server's record: clients differ in the tokens of their responses.
    let mut served: HashMap<u64, (u64, u64)> = HashMap::new();
    for record in records(&serving) {
        let (requests, input) = served.entry(number(&record, "output_tokens")).or_default();
        (*requests, *input) = (*requests + 1, *input + number(&record, "input_tokens"));
    }
    assert_eq!(served[&7], (chat.requests, chat.input_tokens));
    assert_eq!(served[&3], (batch.requests, batch.input_tokens));
    assert_eq!((chat.output_tokens, batch.output_tokens), (chat.requests * 7, batch.requests * 3));
    // 20 to 60 per second, and then 60; 40 per second in bursts. Five standard deviations.
    assert!((50..=150).contains(&chat.sessions), "{chat:?}");
    assert!((10..=200).contains(&batch.sessions), "{batch:?}");
    assert!(chat.requests > chat.sessions && batch.requests == batch.sessions);
    assert_eq!(trace.later_turns, chat.requests - chat.sessions);
    assert_eq!(trace.requests, chat.requests + batch.requests);
    for (client, step) in trace.clients.iter().zip(&run.steps) {
        assert_eq!((&step.name, step.requests, step.ok), (&client.name, client.requests, client.responses));
        assert!(client.ttft_ms.p50.unwrap() >= 1.0 && client.e2e_ms.max.unwrap() >= client.ttft_ms.max.unwrap());
        assert!(client.tpot_ms.p50.is_some());
    }
    let sessions: Vec<(&str, u64)> = run.scenarios.iter().map(|one| (&*one.name, one.iterations)).collect();
    assert_eq!(sessions, [("chat", chat.sessions), ("batch", batch.sessions)]);
    assert!(run.slo[0].ok, "{:?}", run.slo);
}

/// A conversation repeats what was said before, and all prompts of a client begin alike: the server has seen each block
/// but those that are new.
#[test]
fn prompts_share_the_prefix_of_the_client_and_what_was_said_before() {
    let serving = Serving::start_line(MODEL);
    let clients = "[[client]]\nrate = 50\ninput_tokens = 64\noutput_tokens = 16\nprefix_tokens = 160\n\
                   conversations = 1\nturns = 3\n";
    let run = run(&serving.url, clients, &["-n", "6"]);
    let trace = run.trace.unwrap();
    assert_eq!((trace.requests, trace.later_turns, trace.clients[0].sessions), (18, 12, 6));
    let mut lengths: HashMap<u64, Vec<u64>> = HashMap::new();
    for record in records(&serving) {
        lengths.entry(number(&record, "input_tokens")).or_default().push(number(&record, "seen_blocks"));
    }
    // 10 blocks of the prefix, 4 of a turn, 1 of a response.
    for (input, seen) in [(224, 10), (304, 14), (384, 19)] {
        let found = &lengths[&input];
        // The first prompt of all has nothing to share.
        assert!(found.len() == 6 && found.iter().filter(|blocks| **blocks == seen).count() >= 5, "{input}: {found:?}");
    }
}

#[test]
fn the_text_report_has_a_row_for_each_client() {
    let serving = Serving::start_line(MODEL);
    let output = llm(&serving.url, CLIENTS, &["--trace-duration", "500ms"]).1;
    assert_eq!(output.code, 0, "{}", output.stderr);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("clients      ") && line.contains(" of 2 clients")), "{lines:?}");
    let heading = lines.iter().position(|line| line.starts_with("client  ")).unwrap();
    assert!(lines[heading + 1].starts_with("chat ") && lines[heading + 2].starts_with("batch "), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("session ")), "{lines:?}");
}

#[test]
fn the_same_seed_sends_the_same_and_a_sample_is_a_part_of_it() {
    let serving = Serving::start_line(MODEL);
    let sent = |flags: &[&str]| {
        let before = records(&serving).len();
        let run = run(&serving.url, CLIENTS, &[&["--trace-duration", "400ms"], flags].concat());
        let mut found: Vec<(u64, u64)> = records(&serving)[before..]
            .iter()
            .map(|record| (number(record, "input_tokens"), number(record, "output_tokens")))
            .collect();
        found.sort_unstable();
        assert_eq!(found.len() as u64, run.requests.ok);
        found
    };
    let first = sent(&["--seed", "1"]);
    assert_eq!(sent(&["--seed", "1", "-t", "2", "--speed", "4"]), first);
    assert_ne!(sent(&["--seed", "2"]), first);
    let part = sent(&["--seed", "1", "--sample", "40%"]);
    assert!(part.len() < first.len() && part.iter().all(|one| first.contains(one)));
    // Users that are free take the same sessions.
    assert_eq!(sent(&["--seed", "1", "--trace-loop", "closed", "-c", "3"]), first);
}

#[test]
fn mistakes_are_lines_with_their_places_and_nothing_is_sent() {
    for (clients, flags, expected) in [
        ("[[client]]\nrate = 0\n", &[][..], "clients.toml:2:8"),
        ("[[client]]\nratio = 1\nrate = 1\n", &[], "unknown key"),
        (CLIENTS, &["--trace-block", "16"], "--trace-block is for traces with hashes; clients have none"),
        (CLIENTS, &["--rate", "5"], "--rate and --trace FILE cannot be combined"),
        ("[[client]]\nstages = \"0/1s\"\n", &[], "no session of any client"),
        (CLIENTS, &["--trace-format", "mooncake"], "the format was taken to be mooncake"),
    ] {
        let output = llm("http://127.0.0.1:1", clients, flags).1;
        assert_eq!(output.code, 2, "{expected}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{expected}: {}", output.stderr);
    }
}
