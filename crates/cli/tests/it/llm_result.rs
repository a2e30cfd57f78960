//! Results of `weir llm`: weir's own part of times, intervals and page, tokens that weir counts, interrupted runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use serde_json::json;
use weir_machine::system::receive_timestamps;
use weir_measure::Run;
use weir_testing::{Output, Reply, Server, Serving, Weir, until};

fn llm(weir: &Weir, url: &str, flags: &[&str]) -> Output {
    weir.run(&[&["llm", url, "--model", "m", "-q"], flags].concat())
}

/// A model with known times: a prefill of 4 ms, and 2 ms per token.
fn model() -> Serving {
    let times = ["--prefill", "4ms", "--prefill-per-token", "0ms", "--decode", "2ms", "--jitter", "0%"];
    let rest = ["--batch-effect", "0%", "--output-tokens", "10", "--model", "m"];
    Serving::start(&[&["llm"], &times[..], &rest].concat())
}

/// A connection whose packets have arrival times. The kernel begins with them a while after a first socket asks for it,
/// and goes on while there is one.
fn stamped_connection() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    receive_timestamps::enable(connection.as_fd()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    until("arrival times", Duration::from_secs(30), || {
        peer.write_all(b"x").unwrap();
        receive_timestamps::recv(connection.as_fd(), &mut [0]).unwrap().1.is_some()
    });
    connection
}

#[test]
#[cfg_attr(weir_portable, ignore = "arrival times are Linux's")]
fn the_own_part_of_the_first_token_is_measured_and_is_not_the_servers_time() {
    let _stamped = stamped_connection();
    for flags in [["--h2c", "--streams", "4"].as_slice(), &[], &["--rate", "100"]] {
        let serving = model();
        let weir = Weir::new();
        let load = ["-n", "30", "-c", "4", "--input-tokens", "8", "--format", "json"];
        let output = llm(&weir, &serving.url, &[&load[..], flags].concat());
        assert_eq!(output.code, 0, "{}", output.stderr);
        let run = output.json();
        let llm = run.llm.unwrap();
        let (own, read) = (llm.ttft_lateness_ms, llm.ttft_read_delay_ms);
        assert!(read.p50 > Some(0.0) && llm.ttft_unstamped == 0, "{flags:?}: {read:?}");
        // The prefill is within TTFT, and not in the part that is weir's own. Lateness depends on the machine.
        assert!(
            llm.ttft_service_ms.min.unwrap() >= 3.9 && own.min.unwrap() < 3.0 && own.p50 <= llm.ttft_ms.p50,
            "{flags:?}: {own:?}"
        );
    }
}

#[test]
#[cfg_attr(weir_portable, ignore = "arrival times are Linux's")]
fn the_report_has_weirs_own_part_of_the_first_token() {
    let _stamped = stamped_connection();
    let serving = model();
    let weir = Weir::new();
    let output = llm(&weir, &serving.url, &["-n", "4", "-c", "1", "--input-tokens", "8"]);
    assert!(output.stdout.contains("of TTFT      weir sent late by "), "{}", output.stdout);
    assert!(output.stdout.contains("not included: "), "{}", output.stdout);
    assert!(!output.stdout.contains("and not known"), "{}", output.stdout);
}

#[test]
fn intervals_have_the_times_of_streams_and_the_page_their_heat_map() {
    let serving = model();
    let weir = Weir::new();
    let files = ["--out", "run.json", "--html", "run.html"];
    let flags = ["-d", "2500ms", "-c", "4", "--ramp-up", "20ms", "--input-tokens", "8", "--goodput", "ttft:1s"];
    let output = llm(&weir, &serving.url, &[&flags[..], &files].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    assert_eq!((run.connections.max, run.model), (4, weir_measure::LoadModel::Closed));
    let llm = run.llm.unwrap();
    let points: Vec<_> = run.series.iter().filter_map(|point| point.streams.clone()).collect();
    let of_llm: Vec<_> = points.iter().filter_map(|point| point.llm.clone()).collect();
    let sum = |of: fn(&weir_measure::stream_series::LlmPoint) -> u64| of_llm.iter().map(of).sum::<u64>();
    assert!(points.len() >= 2, "{}", points.len());
    assert_eq!((sum(|point| point.requests), sum(|point| point.good)), (llm.requests, llm.good));
    assert_eq!((sum(|point| point.output_tokens), sum(|point| point.ttft_ms.count)), (llm.output_tokens, llm.requests));
    assert!(of_llm.iter().all(|point| point.chunk_gaps().unwrap().count() == point.chunk_gap_ms.count));
    let page = weir.read("run.html");
    for words in ["TTFT over time", "TPOT over time", "Chunk gaps over time", "Events over time", "class=\"cells s"] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(weir.run(&["report", "run.json", "--html", "again.html"]).code, 0);
    assert_eq!(weir.read("again.html"), page);
}

/// Server without usage: two chunks, with five words in all.
fn uncounted() -> Server {
    let chunk = |text: &str| format!("data: {{\"choices\":[{{\"delta\":{text}}}]}}\n\n");
    let first = chunk(r#"{"reasoning_content":"well then "}"#);
    let body = format!("{first}{}data: [DONE]\n\n", chunk(r#"{"content":"one \"two\" three"}"#));
    let head = format!("Content-Type: text/event-stream\r\nContent-Length: {}", body.len());
    Server::start(move |_| Reply::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}")))
}

/// Tokenizer of words and marks.
fn tokenizer(weir: &Weir) {
    let model = json!({"type": "WordLevel", "vocab": {"<unk>": 0}, "unk_token": "<unk>"});
    let whole = json!({"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model, "added_tokens": []});
    weir.write("tokenizer.json", whole.to_string());
    weir.write("prompts.txt", "hello \"you\"\nhello \"me\"\n");
}

#[test]
fn tokens_that_the_server_does_not_report_are_counted_by_a_tokenizer() {
    let weir = Weir::new();
    tokenizer(&weir);
    let flags = ["--dataset", "prompts.txt", "-n", "4", "-c", "2", "--goodput", "tpot:10s", "--out", "run.json"];
    let output = llm(&weir, &uncounted().url(""), &[&flags[..], &["--tokenizer", "tokenizer.json"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("tokens of 4 responses counted by the tokenizer"), "{}", output.stdout);
    let llm = Run::from_json(&weir.read("run.json")).unwrap().llm.unwrap();
    // Marks are tokens: `hello "you"` has four; the reply is two words of reasoning, three others and two marks.
    assert_eq!((llm.with_usage, llm.with_counted_tokens, llm.good), (4, 4, 4));
    assert_eq!((llm.input_tokens, llm.output_tokens), (16, 28));
    assert_eq!((llm.tokens_per_chunk, llm.tpot_times().unwrap().count()), (Some(3.5), 4));
    assert!(llm.output_tokens_per_s > 0.0);
}

#[test]
fn a_server_with_usage_needs_no_tokenizer_and_a_file_that_is_none_is_one_line() {
    let (serving, weir) = (model(), Weir::new());
    tokenizer(&weir);
    let flags = ["-n", "3", "-c", "1", "--input-tokens", "8", "--format", "json"];
    let output = llm(&weir, &serving.url, &[&flags[..], &["--tokenizer", "tokenizer.json"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let llm_of = output.json().llm.unwrap();
    assert_eq!((llm_of.output_tokens, llm_of.with_counted_tokens), (30, 0));
    for (file, words) in [("missing.json", "cannot read 'missing.json'"), ("prompts.txt", "is not a tokenizer")] {
        let output = llm(&weir, &serving.url, &[&flags[..], &["--tokenizer", file]].concat());
        assert_eq!(output.code, 2);
        assert!(output.one_line().contains(words), "{}", output.stderr);
    }
    let search = ["--capacity", "rate", "--goodput", "ttft:1s", "--tokenizer", "tokenizer.json"];
    let output = llm(&weir, &serving.url, &search);
    assert!(output.code == 2 && output.one_line().contains("--tokenizer counts after a run"), "{}", output.stderr);
}

#[test]
fn ctrl_c_ends_the_run_and_keeps_what_was_measured() {
    let serving = model();
    let weir = Weir::new();
    let flags = ["--model", "m", "-d", "1h", "-c", "3", "--input-tokens", "8", "--out", "run.json", "--csv", "run.csv"];
    let running = weir.start(&[&["llm", &serving.url], &flags[..]].concat());
    until("some responses", Duration::from_secs(60), || serving.get("/record").text().lines().count() >= 20);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{}", output.stderr);
    assert!(output.stdout.contains("interrupted"), "{}", output.stdout);
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    let llm = run.llm.unwrap();
    assert!(run.interrupted && llm.requests >= 18 && run.requests.unfinished <= 3, "{:?}", run.requests);
    assert_eq!((llm.output_tokens, llm.with_usage), (llm.requests * 10, llm.requests));
    assert!(weir.read("run.csv").lines().count() > 1);
}

#[test]
fn ctrl_c_in_a_sweep_leaves_the_loads_so_far() {
    let serving = model();
    let weir = Weir::new();
    let flags =
        ["--model", "m", "--sweep", "concurrency=1,2,4", "-d", "1h", "--input-tokens", "8", "--out", "all.json"];
    let running = weir.start(&[&["llm", &serving.url], &flags[..]].concat());
    until("some responses", Duration::from_secs(60), || serving.get("/record").text().lines().count() >= 10);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{}", output.stderr);
    let all: serde_json::Value = serde_json::from_str(&weir.read("all.json")).unwrap();
    assert_eq!(all["points"].as_array().map(Vec::len), Some(1));
    assert_eq!(all["points"][0]["run"]["interrupted"], true);
}

#[test]
fn a_ramp_up_is_for_conversations_of_a_closed_loop_alone() {
    let serving = model();
    let weir = Weir::new();
    let output = llm(&weir, &serving.url, &["--rate", "5", "--ramp-up", "1s"]);
    assert!(output.code == 2 && output.one_line().contains("--ramp-up is for a closed loop"), "{}", output.stderr);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn conversations_start_evenly_over_the_ramp_up() {
        let serving = model();
        let weir = Weir::new();
        let flags = ["-d", "1s", "-c", "4", "--ramp-up", "400ms", "--input-tokens", "8", "--format", "json"];
        let run = llm(&weir, &serving.url, &flags).json();
        // They begin 100 ms after each other, so that 3.4 of the four run on average.
        assert!(run.requests.ok > 4 && (0.1..3.5).contains(&run.in_flight_mean), "{}", run.in_flight_mean);
    }
}
