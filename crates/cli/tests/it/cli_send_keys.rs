//! `weir send` with pinned jobs: only their keys send them, they do not block others, and are not waited for in vain.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use weir_send::store::{self, SqliteStore, Store};
use weir_send::{ApiKey, Job, JobRequest, TemplateParts, wall_ms};
use weir_testing::{Reply, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `weir send jobs --url SERVER/?key={key}&id={id} --store q.db ...`: exit code, summary, and stderr.
fn send(weir: &Weir, server: &Server, args: &[&str]) -> (i32, Value, String) {
    let url = server.url("/?key={key}&id={id}");
    let plain = ["send", "jobs", "--url", &url, "--store", "q.db", "--format", "json"];
    let output = weir.run(&[&plain, args].concat());
    (output.code, serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}")), output.stderr)
}

/// Key of the last request, by job ID.
fn keys(server: &Server) -> BTreeMap<String, String> {
    let seen = server.seen();
    let parts = seen.iter().map(|seen| {
        let query = seen.line().split(['?', ' ']).nth(2).unwrap().to_owned();
        let (key, id) = query.split_once('&').unwrap();
        (id.trim_start_matches("id=").to_owned(), key.trim_start_matches("key=").to_owned())
    });
    parts.collect()
}

#[test]
fn a_pinned_job_is_sent_with_its_key() {
    let server = Server::hello();
    let weir = Weir::new();
    let unnamed = ApiKey::new("third").name().to_owned();
    let lines: String = (0..600)
        .map(|number| match number % 4 {
            0 => format!("{{\"id\":\"{number}\",\"pinned_key\":\"alice\"}}\n"),
            1 => format!("{{\"id\":\"{number}\",\"pinned_key\":\"bob\"}}\n"),
            2 => format!("{{\"id\":\"{number}\",\"pinned_key\":\"{unnamed}\"}}\n"),
            _ => format!("{{\"id\":\"{number}\"}}\n"),
        })
        .collect();
    weir.write("jobs", lines);
    weir.write("keys", "# some keys\nbob=second\nthird\n");
    let (code, summary, stderr) = send(
        &weir,
        &server,
        &["--key", "alice=first", "--keys-file", "keys", "--out", "out", "--max-concurrency", "8"],
    );
    assert_eq!((code, &summary["done"], stderr.as_str()), (0, &600.into(), ""), "{summary}");
    for (id, key) in keys(&server) {
        let expected = ["first", "second", "third"].get(id.parse::<usize>().unwrap() % 4);
        assert!(expected.is_none_or(|expected| *expected == key), "{id} by {key}");
    }
    let names: Vec<&String> = summary["per_key"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["alice", "bob", &unnamed]);
    let first: Value =
        serde_json::from_str(weir.read("out").lines().find(|line| line.contains("\"0\"")).unwrap()).unwrap();
    assert_eq!(first["last_key"], "alice");
}

#[test]
fn a_line_with_an_unknown_pinned_key_is_invalid() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs", "{\"id\":\"a\"}\n{\"id\":\"b\",\"pinned_key\":\"s3cret-of-mine\"}\n");
    let (code, summary, stderr) = send(&weir, &server, &["--key", "alice=s3cret-of-mine", "--key", "other"]);
    assert_eq!((code, &summary["done"], &summary["invalid"]), (1, &1.into(), &1.into()), "{summary}");
    let name = ApiKey::new("other").name().to_owned();
    let why = format!("line 2: unknown pinned_key; choose alice, {name}");
    assert!(stderr.contains(&why) && !stderr.contains("s3cret"), "{stderr}");
}

#[test]
fn duplicate_keys_and_names_are_rejected() {
    let weir = Weir::new();
    weir.write("jobs", "{}\n");
    for (first, second, part) in [("a=x", "b=x", "given twice"), ("a=x", "a=y", "two keys have the name 'a'")] {
        let output = weir.run(&["send", "jobs", "--url", "http://127.0.0.1:9/", "--key", first, "--key", second]);
        assert!(output.code == 2 && output.one_line().contains(part), "{output:?}");
    }
}

#[test]
fn jobs_for_a_busy_key_hold_up_no_others() {
    let server = Server::hello();
    let weir = Weir::new();
    let pinned: String = (0..5000).map(|number| format!("{{\"id\":\"p{number}\",\"pinned_key\":\"a\"}}\n")).collect();
    let free: String = (0..300).map(|number| format!("{{\"id\":\"f{number}\"}}\n")).collect();
    weir.write("jobs", pinned + &free);
    let url = server.url("/?key={key}&id={id}");
    // Two thirds of an hour's requests of key a.
    let running = weir.start(&[
        "send",
        "jobs",
        "--url",
        &url,
        "--key",
        "a=1",
        "--key",
        "b=2",
        "--store",
        "q.db",
        "--limit",
        "400/120s",
        "--grace",
        "1s",
        "--delay-bound",
        "none",
        "-q",
    ]);
    until("the others to be done", TIMEOUT, || keys(&server).keys().filter(|id| id.starts_with('f')).count() == 300);
    running.interrupt();
    assert_eq!(running.finish().code, 130);
    let keys = keys(&server);
    assert!(keys.iter().all(|(id, key)| id.starts_with('f') || key == "1"), "{keys:?}");
    assert!(keys.len() < 1000, "the rest waits for key a: {}", keys.len());
}

#[test]
fn jobs_pinned_to_a_missing_key_stay_and_are_reported() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("jobs", "");
    {
        let store = SqliteStore::open(&weir.path("q.db"), &store::Options::default()).unwrap();
        let jobs = [("1", Some("gone")), ("2", None), ("3", Some("here"))].map(|(id, key)| {
            let url = server.url("/?key={key}&id={id}");
            let templates = TemplateParts { url_bytes: url.len(), ..TemplateParts::default() };
            let request = JobRequest { method: "GET".into(), url, templates, ..JobRequest::default() };
            Job {
                id: Some(id.into()),
                request,
                key_hint: key.map(str::to_owned),
                created_at: wall_ms(),
                ..Job::default()
            }
        });
        store.submit(jobs.into()).wait().unwrap();
    }
    let output = weir.run(&["send", "status", "q.db"]);
    assert!(output.stdout.contains("pinned to     gone: 1 job queued"), "{output:?}");
    let (code, summary, stderr) = send(&weir, &server, &["--key", "here=y"]);
    assert_eq!((code, &summary["done"], &summary["queue"]["queued"]), (2, &2.into(), &1.into()), "{summary} {stderr}");
    assert!(stderr.contains("1 of the jobs in the store are pinned to key gone, which is not given"), "{stderr}");
    assert!(stderr.contains("1 job waits for unusable keys: gone; give these keys"), "{stderr}");
    assert_eq!(weir.run(&["send", "edit", "q.db", "1", "--pinned-key", "any"]).code, 0);
    let (code, summary, stderr) = send(&weir, &server, &["--key", "here=y"]);
    // After five seconds there would be a line of progress.
    assert_eq!((code, &summary["done"], stderr.contains("gone")), (0, &1.into(), false), "{summary} {stderr}");
    assert_eq!(keys(&server).into_values().collect::<Vec<_>>(), ["y", "y", "y"]);
}

#[test]
fn jobs_pinned_to_a_disabled_key_stay_in_the_store() {
    let server =
        Server::start(|seen| if seen.line().contains("key=bad") { Reply::status(401, "who?") } else { Reply::ok("") });
    let weir = Weir::new();
    let lines =
        (0..30).map(|number| format!("{{\"id\":\"{number}\",\"pinned_key\":\"{}\"}}\n", ["a", "b"][number % 2]));
    weir.write("jobs", lines.collect::<String>());
    let (code, summary, stderr) = send(&weir, &server, &["--key", "a=bad", "--key", "b=good", "-q"]);
    assert_eq!(
        (code, &summary["done"], &summary["queue"]["queued"]),
        (2, &15.into(), &15.into()),
        "{summary} {stderr}"
    );
    assert!(stderr.contains("15 jobs wait for unusable keys: a;"), "{stderr}");
    assert!(summary["per_key"]["a"]["disabled"].as_str().unwrap().contains("401"), "{summary}");
    let listed = weir.run(&["send", "list", "q.db", "--state", "queued", "--format", "json"]).stdout;
    let attempts: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["attempts"].clone()).collect();
    assert!(
        attempts.len() == 15 && attempts.iter().all(|count| *count == 0),
        "an unusable key costs no attempt: {attempts:?}"
    );
    let (code, summary, _) = send(&weir, &server, &["--key", "a=fine", "--key", "b=good", "-q"]);
    assert_eq!((code, &summary["done"]), (0, &15.into()), "{summary}");
}
