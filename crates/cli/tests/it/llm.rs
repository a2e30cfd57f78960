//! `weir llm` against `weir serve llm`: figures that agree with the server's record, prompts, conversations, sweeps.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use weir_measure::Run;
use weir_measure::run_llm::RunLlm;
use weir_testing::{Output, Reply, Seen, Server, Serving, Weir};

/// A model with known times: a prefill of 4 ms, and 2 ms per token.
const MODEL: &str =
    "llm --prefill 4ms --prefill-per-token 0ms --decode 2ms --jitter 0% --batch-effect 0% --output-tokens 10 --model m";

fn llm(weir: &Weir, url: &str, flags: &[&str]) -> Output {
    weir.run(&[&["llm", url, "--model", "m"], flags].concat())
}

/// A run that ends with code 0.
fn run(url: &str, flags: &[&str]) -> Run {
    let output = llm(&Weir::new(), url, &[flags, &["--format", "json"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    output.json()
}

fn of_llm(run: &Run) -> RunLlm {
    run.llm.clone().unwrap()
}

fn records(serving: &Serving) -> Vec<Value> {
    serving.get("/record").text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn url(serving: &Serving) -> String {
    serving.url.clone()
}

#[test]
fn tokens_and_times_are_those_of_the_servers_record() {
    for api in ["chat", "completions", "responses", "messages"] {
        let serving = Serving::start_line(MODEL);
        let run = run(&url(&serving), &["--api", api, "-n", "6", "-c", "2", "--input-tokens", "20..40"]);
        let (llm, records) = (of_llm(&run), records(&serving));
        let sum = |field: &str| records.iter().map(|record| record[field].as_u64().unwrap()).sum::<u64>();
        assert_eq!((run.requests.ok, llm.requests, records.len()), (6, 6, 6), "{api}");
        assert_eq!((llm.input_tokens, llm.output_tokens), (sum("input_tokens"), sum("output_tokens")), "{api}");
        assert_eq!((llm.output_tokens, llm.chunks, llm.with_usage), (60, 60, 6), "{api}");
        assert_eq!(llm.tokens_per_chunk, Some(1.0));
        // No time is below the server's own; how far it is above depends on the machine. Histograms have three digits.
        let mean = |field: &str| {
            records.iter().map(|record| record[field].as_f64().unwrap() / 1e6).sum::<f64>() / records.len() as f64
        };
        let (ttft, e2e) = (mean("ttft_ns"), mean("e2e_ns"));
        assert!(
            ttft >= 4.0 && llm.ttft_ms.mean.unwrap() >= ttft * 0.998,
            "{api}: {} against {ttft}",
            llm.ttft_ms.mean.unwrap()
        );
        assert!(e2e >= 22.0 && llm.e2e_ms.mean >= Some(e2e * 0.998), "{api}: {:?} against {e2e}", llm.e2e_ms.mean);
        // Nine tokens behind the first.
        let between = (llm.e2e_ms.mean.unwrap() - llm.ttft_ms.mean.unwrap()) / 9.0;
        assert!(llm.tpot_ms.mean.unwrap() <= between * 1.002, "{api}: {} against {between}", llm.tpot_ms.mean.unwrap());
        // Chunks that are read together have no time between them.
        let (tpot, gap) = (llm.tpot_ms.mean.unwrap(), llm.chunk_gap_ms.max.unwrap());
        assert!((tpot > 0.0) == (gap > 0.0) && gap >= tpot * 0.998, "{api}: {tpot} {gap}");
        assert_eq!(records[0]["api"], api);
    }
}

#[test]
fn an_open_loop_has_its_number_and_rate_and_prompts_follow_the_seed() {
    let inputs = |seed: &str| {
        let serving = Serving::start_line(MODEL);
        let flags = ["--rate", "100", "--arrivals", "gamma:0.5", "-n", "20", "--seed", seed, "--slo", "errors<1%"];
        let run = run(&url(&serving), &flags);
        assert!(run.slo[0].ok && run.rate_per_s.offered > 0.0);
        let mut inputs: Vec<u64> = records(&serving).iter().map(|r| r["input_tokens"].as_u64().unwrap()).collect();
        inputs.sort_unstable();
        inputs
    };
    let first = inputs("1");
    assert!(first.len() > 4, "{first:?}");
    assert_eq!(first, inputs("1"));
    assert_ne!(first, inputs("2"));
}

#[test]
fn embeddings_and_responses_in_one_piece_have_tokens_and_no_times_of_them() {
    let serving = Serving::start_line(MODEL);
    let flags = ["-n", "3", "-c", "1", "--input-tokens", "8"];
    let whole = llm(&Weir::new(), &url(&serving), &[&flags[..], &["--no-stream"]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(whole.stdout.contains("end to end") && !whole.stdout.contains("TTFT"), "{}", whole.stdout);
    assert!(whole.stdout.contains("10.0 out"), "{}", whole.stdout);
    let vectors = of_llm(&run(&url(&serving), &[&flags[..], &["--api", "embeddings"]].concat()));
    assert_eq!((vectors.requests, vectors.with_usage, vectors.output_tokens, vectors.chunks), (3, 0, 0, 0));
    assert!(vectors.input_tokens > 0);
}

#[test]
fn goodput_counts_requests_that_meet_all_objectives_and_the_table_is_vllms() {
    let serving = Serving::start_line(MODEL);
    let flags = ["-n", "4", "-c", "1", "--input-tokens", "8", "--goodput", "ttft:10s", "e2e:1ms", "--format", "vllm"];
    let output = llm(&Weir::new(), &url(&serving), &flags);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let value = |label: &str| {
        let line = output.stdout.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}"));
        line[40..].trim().parse::<f64>().unwrap()
    };
    assert!(output.stdout.starts_with("============ Serving Benchmark Result ============\n"), "{}", output.stdout);
    assert_eq!((value("Successful requests:"), value("Failed requests:")), (4.0, 0.0));
    assert_eq!((value("Total generated tokens:"), value("Request goodput (req/s):")), (40.0, 0.0));
    assert!(value("P99 E2EL (ms):") >= 22.0 && value("P99 E2EL (ms):") >= value("Median TTFT (ms):"));
    let good = of_llm(&run(&url(&serving), &["-n", "2", "-c", "1", "--goodput", "ttft:10s e2e:20s"]));
    assert_eq!((good.good, good.objectives.as_str()), (2, "ttft:10s e2e:20s"));
}

/// Server that remembers the bodies of its requests and responds with a stream of two chunks.
fn recorded() -> Server {
    Server::start(|seen: &Seen| {
        let reply = |n: u64| {
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":\"re\"}}}}]}}\n\n\
                 data: {{\"choices\":[{{\"delta\":{{\"content\":\"ply{n}\"}}}}]}}\n\n\
                 data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":4}}}}\n\ndata: [DONE]\n\n"
            )
        };
        stream(&reply(seen.number))
    })
}

fn stream(body: &str) -> Reply {
    let length = body.len();
    Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn bodies(server: &Server) -> Vec<Value> {
    server.seen().iter().map(|seen| serde_json::from_slice(&seen.body).unwrap()).collect()
}

#[test]
fn a_conversation_waits_between_its_turns_and_repeats_replies() {
    let server = recorded();
    let weir = Weir::new();
    let turns = json!({"turns": ["a", {"text": "b", "delay": 30}, "c"]});
    weir.write("turns.jsonl", turns.to_string());
    let output = llm(&weir, &server.url(""), &["--dataset", "turns.jsonl", "-n", "1", "-c", "1", "--format", "json"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let user = |text: &str| json!({"role": "user", "content": text});
    let reply = |n: u64| json!({"role": "assistant", "content": format!("reply{n}")});
    let messages: Vec<Value> = bodies(&server).iter().map(|body| body["messages"].clone()).collect();
    assert_eq!(
        messages,
        [
            json!([user("a")]),
            json!([user("a"), reply(0), user("b")]),
            json!([user("a"), reply(0), user("b"), reply(1), user("c")])
        ]
    );
    let run = output.json();
    assert_eq!((run.requests.ok, run.iterations.as_ref().unwrap().ok), (3, 1));
    let names: Vec<&str> = run.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["first turn", "later turns"]);
    let llm = of_llm(&run);
    assert_eq!((llm.output_tokens, llm.chunks, llm.tokens_per_chunk), (12, 6, Some(2.0)));
    assert!(run.duration_s >= 0.03, "{}", run.duration_s);
}

#[test]
fn headers_path_and_body_are_those_of_the_flags() {
    let server = recorded();
    let weir = Weir::new();
    weir.write("prompts.txt", "hello \"you\"\n");
    let mut command = weir.command(&[
        "llm",
        &format!("{}/proxy/v1", server.url("")),
        "--model",
        "m/7b",
        "--dataset",
        "prompts.txt",
        "-n",
        "1",
        "-c",
        "1",
        "--output-tokens",
        "7",
        "--ignore-eos",
        "--temperature",
        "0",
        "--extra-body",
        r#"{"top_k": 4}"#,
        "--api-key-env",
        "MY_KEY",
        "-H",
        "X-Tenant: t",
        "--out",
        "run.json",
    ]);
    command.env("MY_KEY", "sk-secret");
    let output = weir_testing::Running::new(&mut command).finish();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let seen = server.seen();
    assert_eq!(seen[0].line(), "POST /proxy/v1/chat/completions HTTP/1.1");
    for (name, value) in
        [("authorization", "Bearer sk-secret"), ("content-type", "application/json"), ("x-tenant", "t")]
    {
        assert_eq!(seen[0].header(name), Some(value), "{name}");
    }
    let expected = json!({
        "model": "m/7b", "stream": true, "stream_options": {"include_usage": true}, "temperature": 0,
        "ignore_eos": true, "top_k": 4, "max_tokens": 7,
        "messages": [{"role": "user", "content": "hello \"you\""}],
    });
    assert_eq!(bodies(&server)[0], expected);
    assert!(!weir.read("run.json").contains("sk-secret"));
}

#[test]
fn a_sweep_runs_each_load_and_has_a_table_and_a_page_with_the_curve() {
    let serving = Serving::start_line(MODEL);
    let weir = Weir::new();
    let flags = [
        "--sweep",
        "rate=40,20",
        "-n",
        "8",
        "--input-tokens",
        "8",
        "--goodput",
        "ttft:10s",
        "--html",
        "page.html",
        "--out",
        "sweep.json",
    ];
    let output = llm(&weir, &url(&serving), &flags);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let rows: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with(['2', '4'])).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("20 ") && rows[1].starts_with("40 "), "{}", output.stdout);
    assert!(output.stdout.contains("ttft:10s for 99% of requests: met at all values, up to rate 40"));
    let page = weir.read("page.html");
    assert!(page.contains("Throughput against time") && page.contains("Sweep of rate"), "{}", page.len());
    let saved: Value = serde_json::from_str(&weir.read("sweep.json")).unwrap();
    assert_eq!((saved["sweep"].as_str(), saved["points"].as_array().unwrap().len()), (Some("rate"), 2));
    assert_eq!(saved["points"][1]["value"], 40.0);
}

/// Response of a server that streams, or does not.
fn typed(content_type: &str, body: &str) -> Reply {
    let length = body.len();
    Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"))
}

#[test]
fn ollama_and_tgi_have_their_own_bodies_events_and_usage() {
    let ollama = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"message\":{\"content\":\"b\"},\"done\":false}\n\
                  {\"message\":{\"content\":\"\"},\"done\":true,\"prompt_eval_count\":7,\"eval_count\":5}\n";
    let tgi = "data:{\"token\":{\"text\":\"a\",\"special\":false},\"generated_text\":null}\n\n\
               data:{\"token\":{\"text\":\"b\",\"special\":false},\"generated_text\":\"ab\",\
               \"details\":{\"generated_tokens\":5,\"input_length\":7}}\n\n";
    for (api, content_type, body, path, prompt) in [
        ("ollama", "application/x-ndjson", ollama, "/api/chat", "messages"),
        ("tgi", "text/event-stream", tgi, "/generate_stream", "inputs"),
    ] {
        let reply = typed(content_type, body);
        let server = Server::start(move |_| reply.clone());
        let run = run(&server.url(""), &["--api", api, "-n", "2", "-c", "1", "--input-tokens", "3"]);
        let llm = of_llm(&run);
        assert_eq!((llm.requests, llm.input_tokens, llm.output_tokens, llm.chunks), (2, 14, 10, 4), "{api}");
        assert_eq!(server.seen()[0].line(), format!("POST {path} HTTP/1.1"));
        assert!(bodies(&server)[0].get(prompt).is_some(), "{api}: {:?}", bodies(&server)[0]);
    }
}

#[test]
fn a_template_is_the_body_of_another_api_and_goes_to_the_url_as_it_is() {
    let server = recorded();
    let template = r#"{"q": "{{prompt}}", "n": {{max_tokens}}, "s": {{stream}}}"#;
    let flags = ["--body-template", template, "-n", "1", "-c", "1", "--input-tokens", "2", "--output-tokens", "9"];
    let output = Weir::new().run(&[&["llm", &server.url("/infer?v=1"), "-q"], &flags[..]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(server.seen()[0].line(), "POST /infer?v=1 HTTP/1.1");
    let body = &bodies(&server)[0];
    assert_eq!((body["q"].as_str().unwrap().split(' ').count(), &body["n"], &body["s"]), (2, &json!(9), &json!(true)));
}

#[test]
fn a_batch_and_a_file_of_images_are_sent_as_their_records_say() {
    let server = recorded();
    let weir = Weir::new();
    let own = json!({"model": "x", "messages": [{"role": "user", "content": "a"}], "max_tokens": 4});
    weir.write("batch.jsonl", json!({"custom_id": "1", "url": "/v1/chat/completions", "body": own}).to_string());
    weir.write("cat.png", [1, 2, 3]);
    weir.write("images.jsonl", json!({"prompt": "what?", "image": "cat.png"}).to_string());
    for file in ["batch.jsonl", "images.jsonl"] {
        let output = llm(&weir, &server.url(""), &["--dataset", file, "-n", "1", "-c", "1", "-q"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    let bodies = bodies(&server);
    assert_eq!(
        (&bodies[0]["model"], &bodies[0]["max_tokens"], &bodies[0]["stream"]),
        (&json!("m"), &json!(4), &json!(true))
    );
    let parts = json!([
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
    ]);
    assert_eq!(bodies[1]["messages"][0]["content"], parts);
}

#[test]
fn http_2_carries_conversations_on_few_connections() {
    let serving = Serving::start_line(MODEL);
    let run = run(&url(&serving), &["--h2c", "--streams", "8", "-c", "8", "-n", "16", "--input-tokens", "8"]);
    let llm = of_llm(&run);
    assert_eq!((llm.requests, llm.output_tokens, run.connections.opened), (16, 160, 1));
    assert_eq!(run.target.http.as_deref(), Some("HTTP/2"));
}

#[test]
fn a_saved_run_has_the_same_report_and_its_page_has_the_tokens() {
    let serving = Serving::start_line(MODEL);
    let weir = Weir::new();
    let flags =
        ["-n", "3", "-c", "1", "--input-tokens", "8", "--out", "run.json", "--html", "run.html", "--csv", "run.csv"];
    let output = llm(&weir, &url(&serving), &flags);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("per request  10.0 tokens in · 10.0 out"), "{}", output.stdout);
    assert_eq!(weir.run(&["report", "run.json"]).stdout, output.stdout);
    assert!(weir.read("run.html").contains("TTFT") && weir.read("run.csv").starts_with("t_s,"));
}
