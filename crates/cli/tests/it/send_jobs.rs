//! `weir send` from lines of jobs to lines of results: input, requests, invalid jobs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use weir_send::State;
use weir_send::store::{self, JobSelector, SqliteStore, Store};
use weir_testing::{Reply, Running, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Result of the job with this ID.
fn result(weir: &Weir, id: &str) -> Value {
    let all = lines(&weir.read("out.jsonl"));
    let mut found = all.iter().filter(|line| line["id"] == id);
    let result = found.next().unwrap_or_else(|| panic!("no result of {id}: {all:?}")).clone();
    assert!(found.next().is_none(), "{id} has one result");
    result
}

/// `weir send jobs.jsonl ... --out out.jsonl --format json`: exit code and summary.
fn send(weir: &Weir, args: &[&str]) -> (i32, Value) {
    let plain = ["send", "jobs.jsonl", "--out", "out.jsonl", "--format", "json", "-q"];
    let output = weir.run(&[&plain, args].concat());
    (output.code, serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")))
}

#[test]
fn a_request_follows_from_the_line_and_the_flags() {
    let server = Server::start(|_| Reply::ok("fine"));
    let weir = Weir::new();
    weir.write(
        "jobs.jsonl",
        r#"{"id": "a", "body": {"who": "{id}", "n": {"x": 1.50}}, "headers": {"X-Other": "{nonce}"}}
{"custom_id": "b/1", "method": "PUT", "url": "/other?i={id}", "body": "plain {key}"}

{"id": 3, "method": "GET", "url": "/third"}
"#,
    );
    let url = server.url("/first?k={key}");
    let fields = ["--url-fields", "--body-fields"];
    let args =
        ["--url", &url, "--key", "s e", "-H", "X-All: {key}-{id}", "-H", "x-own: {nonce}", "--max-concurrency", "1"];
    let args = [&args[..], &fields].concat();
    let (code, summary) = send(&weir, &args);
    assert_eq!((code, &summary["done"]), (0, &3.into()), "{summary}");
    let seen = server.seen();
    let of = |line: &str| seen.iter().find(|seen| seen.line() == line).unwrap_or_else(|| panic!("{line}: {seen:?}"));
    let first = of("POST /first?k=s%20e HTTP/1.1");
    assert_eq!(first.body, br#"{"who": "a", "n": {"x": 1.50}}"#, "a body of JSON goes as it was written");
    assert_eq!((first.header("x-all"), first.header("content-type")), (Some("s e-a"), Some("application/json")));
    assert!(first.header("x-own").unwrap().parse::<u64>().unwrap() > 1_600_000_000_000, "a nonce is a time in ms");
    assert_eq!(first.header("x-other"), Some("{nonce}"), "headers of jobs are data");
    assert_eq!(of("PUT /other?i=b%2F1 HTTP/1.1").body, b"plain s e");
    assert!(of("GET /third HTTP/1.1").header("x-other").is_none());
    let third = result(&weir, "3");
    assert_eq!((&third["state"], &third["body"], &third["attempts"]), (&"done".into(), &"fine".into(), &1.into()));
    let order: Vec<i64> = ["created_ms", "sent_ms", "ended_ms"].map(|name| third[name].as_i64().unwrap()).into();
    assert!(order.is_sorted(), "{third}");
    assert_eq!(seen.iter().map(|seen| seen.connection).max(), Some(0), "the connection is kept");
}

#[test]
fn invalid_lines_go_to_a_file_with_their_numbers_and_the_others_go_on() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{\"id\":\nnonsense\n{\"id\":\"b\",\"urll\":\"/x\"}\n{\"id\":\"c\"}\n");
    let (code, summary) = send(&weir, &["--url", &server.url("/")]);
    assert_eq!((code, &summary["done"], &summary["invalid"]), (1, &2.into(), &3.into()), "{summary}");
    let invalid = lines(&weir.read("out.jsonl.invalid"));
    let numbers: Vec<_> = invalid.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2, 3, 4]);
    assert!(invalid[2]["reason"].as_str().unwrap().contains("urll"), "{invalid:?}");
    assert_eq!(invalid[1]["text"], "nonsense");
    // Once more: the lines are those of this run, not twice as many.
    send(&weir, &["--url", &server.url("/")]);
    assert_eq!(lines(&weir.read("out.jsonl.invalid")).len(), 3);
    assert_eq!(server.requests(), 2);
}

#[test]
fn the_same_command_again_sends_nothing_twice() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{}\n{}\n");
    let args = ["--url", &server.url("/"), "--store", "queue"];
    assert_eq!(send(&weir, &args).1["done"], 3);
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{}\n{}\n{\"id\":\"new\"}\n");
    let (code, summary) = send(&weir, &args);
    assert_eq!(
        (code, &summary["done"], &summary["duplicates"], &summary["accepted"]),
        (0, &1.into(), &3.into(), &1.into()),
        "{summary}"
    );
    assert_eq!(server.requests(), 4);
    assert_eq!(lines(&weir.read("out.jsonl")).len(), 4, "results are appended");
    // Where nothing is new, the summary says so; and it has no counts of zero.
    let told = weir.run(&[&["send", "jobs.jsonl", "--out", "out.jsonl", "-q"], &args[..]].concat()).stdout;
    assert!(told.contains("nothing was sent: they are in queue already (4 done); "), "{told}");
    assert!(told.contains("0 requests, 0 retried"), "{told}");
    assert_eq!(server.requests(), 4);
}

#[test]
fn failures_are_retried_and_dead_lettered() {
    let server = Server::start(|seen| match seen.line().split(' ').nth(1).unwrap() {
        "/again" if seen.number < 2 => Reply::status(503, "busy"),
        "/never" => Reply::status(500, "broken"),
        "/wrong" => Reply::status(404, "no such thing"),
        "/reset" => Reply::nothing().reset(),
        _ => Reply::ok("at last"),
    });
    let weir = Weir::new();
    weir.write(
        "jobs.jsonl",
        "{\"id\":\"again\",\"url\":\"/again\"}\n{\"id\":\"never\",\"url\":\"/never\"}\n{\"id\":\"wrong\",\"url\":\"/wrong\"}\n{\"id\":\"reset\",\"url\":\"/reset\"}\n",
    );
    let (code, summary) = send(&weir, &["--url", &server.url("/"), "--retries", "3", "--max-concurrency", "1"]);
    assert_eq!((code, &summary["done"], &summary["dead_lettered"]), (1, &1.into(), &3.into()), "{summary}");
    assert_eq!(result(&weir, "again")["state"], "done");
    let never = result(&weir, "never");
    assert_eq!((&never["status"], &never["attempts"], &never["body"]), (&500.into(), &4.into(), &"broken".into()));
    assert_eq!(never["failure"], "status 500");
    let wrong = result(&weir, "wrong");
    assert_eq!((&wrong["status"], &wrong["attempts"]), (&404.into(), &1.into()), "another attempt would not help");
    let reset = result(&weir, "reset");
    assert_eq!((&reset["status"], &reset["failure"]), (&Value::Null, &"connection reset".into()));
}

#[test]
fn a_service_that_is_down_costs_no_attempt() {
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let url = format!("http://{address}/");
    let running = weir.start(&["send", "jobs.jsonl", "--url", &url, "--retries", "0", "--out", "out.jsonl", "-q"]);
    let options = store::Options { create: false, ..store::Options::default() };
    until("it to be in hand", TIMEOUT, || {
        let queue = SqliteStore::open(&weir.path("jobs.jsonl.db"), &options).ok();
        let detail = queue.and_then(|queue| queue.inspect(&JobSelector::Id("a".into())).ok()?);
        detail.is_some_and(|detail| detail.entry.status.state == State::Leased)
    });
    let listener = std::net::TcpListener::bind(address).unwrap();
    let served = std::thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
    });
    let output = running.finish();
    served.join().unwrap();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(result(&weir, "a")["state"], "done");
}

#[test]
fn expired_jobs_are_never_sent() {
    let server = Server::start(|_| Reply::ok("slow").after(Duration::from_millis(300)));
    let weir = Weir::new();
    weir.write(
        "jobs.jsonl",
        "{\"id\":\"a\",\"ttl\":\"10s\"}\n{\"id\":\"b\",\"ttl\":0.2}\n{\"id\":\"c\",\"ttl\":\"0ms\"}\n",
    );
    let (code, summary) = send(&weir, &["--url", &server.url("/"), "--max-concurrency", "1", "--order", "arrival"]);
    assert_eq!((code, &summary["done"], &summary["expired"]), (1, &1.into(), &2.into()), "{summary}");
    assert_eq!(server.requests(), 1);
    let late = result(&weir, "b");
    assert_eq!((&late["state"], &late["status"], &late["attempts"]), (&"expired".into(), &Value::Null, &0.into()));
}

#[test]
fn expired_jobs_continue_with_a_new_ttl_with_renew_expired() {
    let server = Server::start(|_| Reply::ok("slow").after(Duration::from_millis(150)));
    let weir = Weir::new();
    let jobs: String = (0..8).map(|number| format!("{{\"id\":\"{number}\"}}\n")).collect();
    weir.write("jobs.jsonl", jobs);
    let args =
        ["--url", &server.url("/"), "--max-concurrency", "1", "--ttl", "400ms", "--renew-expired", "--retries", "20"];
    let (code, summary) = send(&weir, &args);
    assert_eq!((code, &summary["done"], &summary["expired"]), (0, &8.into(), &0.into()), "{summary}");
    assert_eq!(server.requests(), 8);
}

#[test]
fn jobs_from_a_stream_are_sent_as_they_come() {
    let server = Server::hello();
    let weir = Weir::new();
    let mut command = weir.command(&["send", "-", "--url", &server.url("/"), "--format", "json", "-q"]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    command.stdin(Stdio::from(reader));
    let running = Running::new(&mut command);
    drop(command);
    writer.write_all(b"{}\n{\"id\":\"b\"}\n").unwrap();
    until("both to be sent while the stream is open", TIMEOUT, || server.requests() == 2);
    writer.write_all(b"{\"id\":\"last\"}").unwrap();
    drop(writer);
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((&summary["done"], &summary["queue"]["queued"]), (&3.into(), &0.into()));
}

#[test]
fn an_invalid_argument_is_one_line() {
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{}\n");
    weir.write("text.db", "not a job store, but a text that must stay");
    let url = "http://127.0.0.1:9/?k={key}";
    let cases: [(&[&str], &str); 15] = [
        (&["--url", "http://h/{user}"], "unknown field '{user}'"),
        (&["--url", "http://h/", "-b", "{\"a\": \"{me}\"}"], "--body: unknown field '{me}'"),
        (&["--url", "ftp://h/"], "'ftp'"),
        (&["--url", url], "no API key"),
        (&["--url", url, "--key", "a", "--limit", "0/1s"], "invalid limit '0/1s'"),
        (&["--url", url, "--key", "a", "--limit", "20"], "20/1s"),
        (&["--url", url, "--key", "a", "--key", "a"], "given twice"),
        (&["--url", url, "--key", "a", "--delay-bound", "soon"], "learn"),
        (&["--url", url, "--keys-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
        (&["--url", url, "--key", "a", "--store", "text.db"], "not a job store"),
        (&["--key", "a"], "or --key-host HOST"),
        (&["-H", "Authorization: x"], "--header 'Authorization' is a credential"),
        (&["--url", url, "--key", "a", "--key-host", "http://h/x"], "invalid --key-host 'http://h/x'"),
        (&["--url", url, "--key", "a", "--resend"], "--out"),
        (&["--url", url, "--key", "a", "--out", "no/such/folder/out"], "cannot write no/such/folder/out"),
    ];
    for (args, part) in cases {
        let output = weir.run(&[&["send", "jobs.jsonl"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
        assert!(output.one_line().contains(part), "{args:?}: {output:?}");
    }
    let output = weir.run(&["send", "nowhere.jsonl", "--url", "http://h/"]);
    assert!(output.code == 2 && output.one_line().contains("nowhere.jsonl"), "{output:?}");
}

#[test]
fn the_summary_is_text_by_default() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{}\n{}\n");
    let output = weir.run(&["send", "jobs.jsonl", "--url", &server.url("/"), "--store", "memory"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert!(output.stdout.starts_with("done          2 in "), "{}", output.stdout);
    assert!(!weir.path("jobs.jsonl.db").exists(), "what is in memory leaves no file");
    assert_eq!(json!(server.requests()), 2);
}
