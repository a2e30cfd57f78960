//! `weir send`: what is a template and what is data, where keys and credentials go, and who may read the files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use weir_testing::{RedisServer, Reply, Running, Seen, Server, Weir, closed_address, until, weir_path};

const TIMEOUT: Duration = Duration::from_secs(30);
const KEY: &str = "sk-0123456789-SECRET";

fn send(weir: &Weir, args: &[&str]) -> (i32, Value, String) {
    let output = weir.run(&[&["send", "jobs.jsonl", "--format", "json"][..], args].concat());
    let summary = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.code, summary, output.stderr)
}

fn has_key(seen: &Seen) -> bool {
    let (head, body) = (format!("{seen:?}"), String::from_utf8_lossy(&seen.body));
    head.contains(KEY) || body.contains(KEY)
}

#[test]
fn bodies_urls_and_headers_of_jobs_are_sent_byte_for_byte() {
    let server = Server::hello();
    let weir = Weir::new();
    let text = "Repeat: {key}, {nonce}, {id} {other} {{key}} {";
    let form = "a={key}&b={id}";
    let object = format!(r#"{{"messages": [{{"content": "{text}"}}], "n": 1.50}}"#);
    let jobs = [
        format!(r#"{{"id":"text","body":"{text}"}}"#),
        format!(r#"{{"id":"form","headers":{{"content-type":"application/x-www-form-urlencoded"}},"body":"{form}"}}"#),
        format!(r#"{{"custom_id":"batch","method":"POST","url":"/{{id}}?k={{key}}","body":{object}}}"#),
        r#"{"id":"header","headers":{"X-Text":"{key} {id}"},"body":["{key}"]}"#.to_owned(),
        r#"{"id":"base64","body":"e2tleX0=","headers":{"content-encoding":"base64"}}"#.to_owned(),
    ];
    weir.write("jobs.jsonl", jobs.join("\n") + "\n");
    let url = server.url("/?id={id}");
    let args = ["--url", &url, "-H", "X-Key: {key}", "--key", KEY, "--max-concurrency", "1"];
    let (code, summary, stderr) = send(&weir, &args);
    assert_eq!((code, &summary["done"]), (0, &5.into()), "{summary} {stderr}");
    assert!(stderr.contains("line 3: the URL has a field in braces, which is sent as it is"), "{stderr}");
    let seen = server.seen();
    let of =
        |part: &str| seen.iter().find(|seen| seen.line().contains(part)).unwrap_or_else(|| panic!("{part}: {seen:?}"));
    assert_eq!(of("id=text").body, text.as_bytes());
    assert_eq!(of("id=form").body, form.as_bytes());
    assert_eq!(of("/%7Bid%7D?k={key} ").body, object.as_bytes(), "as it was written");
    assert_eq!(
        (of("id=header").header("x-text"), &of("id=header").body[..]),
        (Some("{key} {id}"), &b"[\"{key}\"]"[..])
    );
    assert_eq!(of("id=base64").body, b"e2tleX0=");
    assert!(seen.iter().all(|seen| seen.header("x-key") == Some(KEY)), "the operator's header is a template");
}

/// Submits jobs to a store while the service is away, ends, and sends them by a second process.
fn restart(store: &str) {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\",\"body\":\"{key} {id}\",\"headers\":{\"X-A\":\"{id}\"}}\n{\"id\":\"b\"}\n");
    let args = ["--body", "k={key}&i={id}", "-H", "X-B: {id}", "--key", KEY, "--store", store];
    let away = format!("http://{}/{{id}}", closed_address());
    let running = weir.start(&[&["send", "jobs.jsonl", "--grace", "0s", "--url", &away][..], &args].concat());
    let jobs = || {
        let output = weir.run(&["send", "status", store, "--format", "json"]);
        let status: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        ["queued", "leased", "retrying"].iter().filter_map(|state| status["jobs"][state]["jobs"].as_u64()).sum::<u64>()
    };
    until("the jobs to be in the store", TIMEOUT, || jobs() == 2);
    running.interrupt();
    running.finish();
    // The host of the stored jobs is closed; they move to one that is not.
    for id in ["a", "b"] {
        let url = server.url(&format!("/{id}"));
        let edited = weir.run(&["send", "edit", store, id, "--url", &url]);
        assert_eq!(edited.code, 0, "{edited:?}");
    }
    weir.write("jobs.jsonl", "");
    let (code, summary, stderr) = send(&weir, &[&["--url", &server.url("/")][..], &args].concat());
    assert_eq!((code, &summary["done"]), (0, &2.into()), "{summary} {stderr}");
    let seen = server.seen();
    let of = |path: &str| seen.iter().find(|seen| seen.line().contains(path)).unwrap();
    assert_eq!(
        (&of("/a ").body[..], of("/a ").header("x-a"), of("/a ").header("x-b")),
        (&b"{key} {id}"[..], Some("{id}"), Some("a"))
    );
    assert_eq!(String::from_utf8_lossy(&of("/b ").body), format!("k={KEY}&i=b"));
}

#[test]
fn after_a_restart_the_same_parts_are_templates() {
    restart("jobs.db");
}

#[test]
fn after_a_restart_the_same_parts_are_templates_in_redis() {
    let Some(redis) = RedisServer::with(&["--appendonly", "no"]) else { return };
    restart(&redis.url("queue=a&lease=1s"));
}

#[test]
fn keys_and_credentials_go_to_the_origin_of_the_url_only() {
    let (own, other) = (Server::hello(), Server::hello());
    let weir = Weir::new();
    let lines = |ids: &[&str]| -> String {
        let line = |id: &&str| format!("{{\"id\":\"{id}\",\"url\":\"{}\"}}\n", other.url(&format!("/{id}")));
        ids.iter().map(line).collect::<String>() + "{\"id\":\"own\",\"url\":\"/own\"}\n"
    };
    weir.write("jobs.jsonl", lines(&["webhook"]));
    let url = own.url("/");
    let keyed = ["--url", &url, "-H", "Authorization: Bearer {key}", "--key", KEY, "--out", "out"];
    let (code, summary, stderr) = send(&weir, &keyed);
    assert_eq!((code, &summary["done"], &summary["invalid"]), (1, &1.into(), &1.into()), "{summary} {stderr}");
    assert_eq!((own.requests(), other.requests()), (1, 0));
    let invalid = weir.read("out.invalid");
    assert!(invalid.contains("needs an API key") && invalid.contains("--key-host http://127.0.0.1:"), "{invalid}");

    // Credentials without a key are left out, with a note; other headers go anywhere.
    weir.write("jobs.jsonl", lines(&["plain"]));
    let plain = ["--url", &url, "-H", "Cookie: s=1", "-H", "X-Api-Key: abc", "-H", "X-Trace: 7", "--store", "p.db"];
    let (code, summary, stderr) = send(&weir, &plain);
    assert_eq!((code, &summary["done"]), (0, &2.into()), "{summary} {stderr}");
    let seen = other.seen();
    assert_eq!(["cookie", "x-api-key", "x-trace"].map(|name| seen[0].header(name)), [None, None, Some("7")]);
    assert!(stderr.contains("does not get --header 'Cookie', a credential; give --key-host 127.0.0.1:"), "{stderr}");
    assert_eq!(own.seen()[1].header("cookie"), Some("s=1"));

    let place = other.url("/");
    let host = place.trim_start_matches("http://").trim_end_matches('/');
    weir.write("jobs.jsonl", lines(&["named"]));
    let (code, summary, stderr) = send(&weir, &[&keyed[..], &["--key-host", host, "--store", "n.db"]].concat());
    assert_eq!((code, &summary["done"]), (0, &1.into()), "the own one is in the results: {summary} {stderr}");
    assert!(other.seen().iter().filter(|seen| has_key(seen)).count() == 1, "{:?}", other.seen());
}

#[test]
fn a_key_in_the_url_or_body_of_a_job_goes_to_no_other_host() {
    let (own, other) = (Server::hello(), Server::hello());
    let weir = Weir::new();
    let place = other.url("/");
    let with_key = place.replace("http://", "http://{key}@");
    let jobs = [
        format!(r#"{{"id":"url","url":"{place}?k={{key}}"}}"#),
        format!(r#"{{"id":"user","url":"{with_key}"}}"#),
        format!(r#"{{"id":"body","url":"{place}","body":{{"k":"{{key}}"}}}}"#),
        format!(r#"{{"id":"host","url":"{place}@x/"}}"#),
    ];
    weir.write("jobs.jsonl", jobs.join("\n") + "\n");
    let url = own.url("/");
    let args = ["--url", &url, "--key", KEY, "--url-fields", "--body-fields", "--out", "out", "-q"];
    let (code, summary, stderr) = send(&weir, &args);
    assert_eq!((code, &summary["invalid"]), (1, &3.into()), "{summary} {stderr}");
    assert!(!other.seen().iter().any(has_key) && own.requests() == 0, "{:?}", other.seen());
}

#[test]
fn a_foreign_host_disables_no_key() {
    let own = Server::hello();
    let other = Server::start(|_| Reply::status(401, "who?"));
    let weir = Weir::new();
    weir.write("jobs.jsonl", format!("{{\"id\":\"f\",\"url\":\"{}\"}}\n{{\"id\":\"own\"}}\n", other.url("/")));
    let url = own.url("/?k={key}");
    let (code, summary, stderr) = send(&weir, &["--url", &url, "--key", KEY, "--max-concurrency", "1", "-q"]);
    assert_eq!((code, &summary["done"], &summary["dead_lettered"]), (1, &1.into(), &1.into()), "{summary} {stderr}");
}

#[test]
fn an_id_leads_to_no_other_path() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"..\"}\n{\"id\":\"a/../b\"}\n{\"id\":\"x?y=1&z#\"}\n");
    let url = server.url("/jobs/{id}");
    let (code, summary, _) = send(&weir, &["--url", &url, "--out", "out", "-q"]);
    assert_eq!((code, &summary["dead_lettered"]), (1, &1.into()), "{summary}");
    let mut lines: Vec<String> = server.seen().iter().map(|seen| seen.line().to_owned()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["GET /jobs/a%2F..%2Fb HTTP/1.1", "GET /jobs/x%3Fy%3D1%26z%23 HTTP/1.1"]);
}

#[test]
fn stores_and_results_are_private_whatever_the_umask() {
    let server = Server::start(|_| Reply::nothing().freeze());
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\nnot a job\n");
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(weir_path()).current_dir(weir.path(""));
    command.args(["send", "jobs.jsonl", "--url", &server.url("/"), "--out", "out", "--grace", "0s"]);
    let running = Running::new(&mut command);
    until("a request", TIMEOUT, || server.requests() == 1);
    let mode = |name: &str| weir.path(name).metadata().map(|file| file.permissions().mode() & 0o777).unwrap_or(0);
    let files =
        ["jobs.jsonl.db", "jobs.jsonl.db-wal", "jobs.jsonl.db-shm", "jobs.jsonl.db-turn", "jobs.jsonl.db-sender"];
    let modes: Vec<_> =
        files.iter().chain(&["jobs.jsonl.db-sending", "out", "out.invalid"]).map(|name| (*name, mode(name))).collect();
    running.interrupt();
    running.finish();
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    // A file that is there keeps its mode.
    std::fs::set_permissions(weir.path("out"), PermissionsExt::from_mode(0o644)).unwrap();
    let again = weir.start(&["send", "jobs.jsonl", "--url", &server.url("/"), "--out", "out", "--grace", "0s", "-q"]);
    until("another request", TIMEOUT, || server.requests() == 2);
    again.interrupt();
    again.finish();
    assert_eq!(mode("out"), 0o644);
}

/// A job that another version has stored, or that was edited by hand: its own `Host` names a host without keys.
#[test]
fn a_stored_job_with_a_host_of_its_own_gets_no_key() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"evil\"}\n{\"id\":\"plain\"}\n{\"id\":\"own\"}\n");
    let away = format!("http://{}/{{id}}", closed_address());
    let args = ["-H", "Authorization: Bearer {key}", "--key", KEY];
    let running = weir.start(&[&["send", "jobs.jsonl", "--grace", "0s", "--url", &away][..], &args].concat());
    let queued = || {
        let output = weir.run(&["send", "status", "jobs.jsonl.db", "--format", "json"]);
        let status: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
        ["queued", "leased", "retrying"].iter().filter_map(|state| status["jobs"][state]["jobs"].as_u64()).sum::<u64>()
    };
    until("the jobs to be in the store", TIMEOUT, || queued() == 3);
    running.interrupt();
    running.finish();
    let store = rusqlite::Connection::open(weir.path("jobs.jsonl.db")).unwrap();
    let own = server.url("/").trim_start_matches("http://").trim_end_matches('/').to_owned();
    for (number, headers) in [
        (1, r#"[["Authorization","Bearer {key}"],["Host","evil.example"]]"#.to_owned()),
        (2, r#"[["X-A","1"],["host","evil.example"]]"#.to_owned()),
        (3, format!(r#"[["Authorization","Bearer {{key}}"],["HOST","{own}"]]"#)),
    ] {
        let url = server.url(&format!("/{number}"));
        let sql = "UPDATE request SET url = ?1, headers = ?2, templates = ?4 WHERE number = ?3";
        let templates = r#"{"headers":[0]}"#;
        assert_eq!(store.execute(sql, rusqlite::params![url, headers, number, templates]).unwrap(), 1);
    }
    drop(store);
    weir.write("jobs.jsonl", "");
    let (code, summary, stderr) = send(&weir, &[&["--url", &server.url("/")][..], &args].concat());
    assert_eq!((code, &summary["done"], &summary["dead_lettered"]), (1, &2.into(), &1.into()), "{summary} {stderr}");
    let seen = server.seen();
    let with_key: Vec<&str> = seen.iter().filter(|seen| has_key(seen)).map(Seen::line).collect();
    assert_eq!(with_key, ["GET /3 HTTP/1.1"], "{seen:?}");
    let shown = weir.run(&["send", "list", "jobs.jsonl.db", "--format", "json"]).stdout;
    assert!(shown.contains("http://evil.example may have none"), "{shown}");
}
