//! `weir send status`, `list`, `retry`, `edit` and `purge`, by the real binary, with and without a running sender.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use serde_json::Value;
use weir_testing::{Output, Reply, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// `weir send COMMAND q.db ARGS`.
fn ask(weir: &Weir, command: &str, args: &[&str]) -> Output {
    weir.run(&[&["send", command, "q.db"], args].concat())
}

/// JSON output of a successful command.
fn told(weir: &Weir, command: &str, args: &[&str]) -> Value {
    let output = ask(weir, command, &[args, &["--format", "json"]].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{command} {args:?}: {output:?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Jobs of `list`.
fn listed(weir: &Weir, args: &[&str]) -> Vec<Value> {
    let output = ask(weir, "list", &[args, &["--format", "json", "-q"]].concat());
    assert_eq!(output.code, 0, "{args:?}: {output:?}");
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(jobs: &[Value]) -> Vec<&str> {
    jobs.iter().map(|job| job["id"].as_str().unwrap()).collect()
}

/// Store with jobs that ended in all ways: good and fine are done, bad and worse are dead-lettered, late is expired.
fn ended(server: &Server) -> Weir {
    let weir = Weir::new();
    let lines = ["good", "bad", "fine", "worse"].map(|id| format!("{{\"id\":\"{id}\",\"url\":\"/{id}?k={{key}}\"}}\n"));
    weir.write("jobs", lines.concat() + "{\"id\":\"late\",\"ttl\":0}\n");
    let url = server.url("/");
    let secret = ["-H", "Authorization: Bearer topsecret", "--key", "s3cretS3cretS3cret", "--url-fields"];
    let output =
        weir.run(&[&["send", "jobs", "--url", &url, "--store", "q.db", "--retries", "0", "-q"][..], &secret].concat());
    assert_eq!(output.code, 1, "{output:?}");
    weir
}

fn moody() -> Server {
    Server::start(|seen| match seen.line() {
        line if line.contains("/bad") || line.contains("/worse") => Reply::status(500, "broken"),
        _ => Reply::ok("fine"),
    })
}

#[test]
fn status_is_an_overview_of_the_store() {
    let weir = ended(&moody());
    let status = told(&weir, "status", &[]);
    let jobs = |state: &str| status["jobs"][state]["jobs"].as_u64().unwrap();
    assert_eq!([jobs("done"), jobs("dead_lettered"), jobs("expired"), jobs("queued")], [2, 2, 1, 0], "{status}");
    assert_eq!((&status["sender"], &status["oldest"], &status["schema"]), (&Value::Null, &Value::Null, &2.into()));
    assert!(status["bytes"].as_u64().unwrap() > 4096 && status["jobs"]["done"]["bytes"].as_u64().unwrap() > 10);
    let key = &status["keys"][0];
    assert_eq!((&key["jobs"], &key["done"]), (&4.into(), &2.into()), "{status}");
    let text = ask(&weir, "status", &[]);
    assert!(text.stdout.contains("no sender") && text.stdout.contains("dead-lettered 2 jobs"), "{text:?}");
}

#[test]
fn jobs_are_listed_by_filters_and_pages() {
    let weir = ended(&moody());
    assert_eq!(ids(&listed(&weir, &[])), ["good", "bad", "fine", "worse", "late"]);
    assert_eq!(ids(&listed(&weir, &["--state", "dead_lettered,expired"])), ["bad", "worse", "late"]);
    assert_eq!(ids(&listed(&weir, &["--text", "status 500"])), ["bad", "worse"]);
    assert_eq!(ids(&listed(&weir, &["--number", "3", "late"])), ["fine", "late"]);
    assert_eq!(ids(&listed(&weir, &["--max-items", "2", "--after", "1"])), ["bad", "fine"]);
    let page = ask(&weir, "list", &["-n", "2"]);
    assert_eq!(page.one_line(), "there are more; continue with --after 2");
    assert_eq!(page.stdout.lines().count(), 3, "a heading and two rows: {page:?}");
    assert_eq!(ask(&weir, "list", &["-n", "5"]).stderr, "", "these are all");
    let bad = &listed(&weir, &["bad"])[0];
    let fields = ["state", "reason", "status", "attempts", "method"].map(|name| bad[name].to_string());
    assert_eq!(fields, ["\"dead_lettered\"", "\"status 500\"", "500", "1", "\"GET\""], "{bad}");
    assert_eq!(ask(&weir, "list", &["--state", "retrying"]).one_line(), "no such jobs");
    let missing = ask(&weir, "list", &["missing", "good"]);
    assert_eq!((missing.code, missing.one_line()), (1, "job 'missing': no such job"));
    assert!(missing.stdout.contains("good"), "{missing:?}");
}

#[test]
fn history_has_all_of_a_job_without_secrets() {
    let weir = ended(&moody());
    let bad = &listed(&weir, &["bad", "--history"])[0];
    assert_eq!(bad["response"]["body"], "broken", "{bad}");
    let last = bad["history"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["state"], &last["status"], &last["last_key"]),
        (&"dead_lettered".into(), &500.into(), &bad["last_key"])
    );
    let text = ask(&weir, "list", &["--history"]).stdout;
    assert!(text.contains("Authorization: ***") && text.contains("?k={key}"), "{text}");
    for all in [text, bad.to_string(), told(&weir, "status", &[]).to_string()] {
        assert!(!all.contains("topsecret") && !all.contains("s3cretS3cret"), "{all}");
    }
}

#[test]
fn failed_jobs_are_requeued_by_retry() {
    let healed = Arc::new(AtomicBool::new(false));
    let is_healed = Arc::clone(&healed);
    let server = Server::start(move |seen| {
        let fails = !is_healed.load(Relaxed) && (seen.line().contains("/bad") || seen.line().contains("/worse"));
        if fails { Reply::status(500, "broken") } else { Reply::ok("fine") }
    });
    let weir = ended(&server);
    let output = ask(&weir, "retry", &["bad", "good", "late", "missing"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, "1 job requeued\n"), "{output:?}");
    let why = ["job 'good': already done", "job 'late': its time to live has ended", "job 'missing': no such job"];
    assert!(why.iter().all(|why| output.stderr.contains(why)), "{output:?}");
    let again = ask(&weir, "retry", &["bad"]);
    assert_eq!((again.code, again.one_line()), (1, "job 'bad': already queued"));
    let all = ask(&weir, "retry", &["--all"]);
    assert_eq!((all.code, all.one_line()), (1, "1 job: their time to live has ended; give a new one with --ttl"));
    assert_eq!(told(&weir, "retry", &["--state", "expired", "--ttl", "1h"])["retried"], 1);
    healed.store(true, Relaxed);
    weir.write("none", "");
    let output =
        weir.run(&["send", "none", "--url", &server.url("/"), "--key", "s3cretS3cretS3cret", "--store", "q.db", "-q"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(told(&weir, "status", &[])["jobs"]["done"]["jobs"], 5);
}

#[test]
fn edit_changes_one_job() {
    let weir = ended(&moody());
    let edited = ask(
        &weir,
        "edit",
        &[
            "bad",
            "--url",
            "http://h/other?i={id}",
            "-m",
            "put",
            "-H",
            "X-A: 1",
            "-H",
            "authorization:",
            "-b",
            "{}",
            "--ttl",
            "1h",
            "--priority",
            "-3",
            "--weight",
            "7",
            "--pinned-key",
            "alice",
        ],
    );
    assert_eq!(edited.code, 0, "{edited:?}");
    assert_eq!(edited.stdout, "job 'bad' changed; it is dead-lettered, 'weir send retry' requeues it\n");
    let bad = &listed(&weir, &["bad", "--history"])[0];
    let fields = ["method", "url", "body", "priority", "weight", "pinned_key"].map(|name| bad[name].to_string());
    assert_eq!(fields, ["\"PUT\"", "\"http://h/other?i={id}\"", "\"{}\"", "-3", "7", "\"alice\""], "{bad}");
    assert_eq!(bad["headers"], serde_json::json!([["X-A", "1"]]));
    assert!(bad["expires_ms"].as_i64() > bad["created_ms"].as_i64());
    assert_eq!(told(&weir, "edit", &["bad", "--pinned-key", "any", "--ttl", "none"])["state"], "dead_lettered");
    let bad = &listed(&weir, &["bad"])[0];
    assert_eq!((&bad["pinned_key"], &bad["expires_ms"], &bad["weight"]), (&Value::Null, &Value::Null, &7.into()));
    let done = ask(&weir, "edit", &["good", "--weight", "2"]);
    assert_eq!((done.code, done.one_line()), (1, "job 'good': already done"));
    let wrong: [(&[&str], &str); 6] = [
        (&["bad"], "nothing to change"),
        (&["bad", "good", "--weight", "2"], "give one job"),
        (&["bad", "--url", "http://h/{user}"], "unknown field '{user}'"),
        (&["bad", "--url", "ftp://h/"], "'ftp'"),
        (&["bad", "-H", "no colon"], "--header"),
        (&["bad", "--weight", "0"], "--weight"),
    ];
    for (args, part) in wrong {
        let output = ask(&weir, "edit", args);
        assert!(output.code == 2 && output.one_line().contains(part), "{args:?}: {output:?}");
    }
}

#[test]
fn purge_removes_only_the_selected_jobs() {
    let weir = ended(&moody());
    let output = ask(&weir, "purge", &[]);
    assert!(output.code == 2 && output.one_line().contains("--state done"), "{output:?}");
    let output = ask(&weir, "purge", &["--state", "done,leased"]);
    assert!(output.code == 2 && output.one_line().contains("leased jobs"), "{output:?}");
    assert_eq!(told(&weir, "purge", &["--state", "done", "--older-than", "1h"])["purged"], 0);
    let output = ask(&weir, "purge", &["--state", "dead_lettered", "bad", "good", "missing"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, "1 job removed\n"), "{output:?}");
    assert_eq!(ids(&listed(&weir, &[])), ["good", "fine", "worse", "late"]);
    assert_eq!(told(&weir, "purge", &["--state", "done,dead_lettered,expired", "--older-than", "0s"])["purged"], 4);
    assert_eq!(told(&weir, "status", &[])["jobs"]["dead_lettered"]["jobs"], 0);
}

#[test]
fn all_commands_work_beside_a_sender() {
    let thawed = Arc::new(AtomicBool::new(false));
    let is_thawed = Arc::clone(&thawed);
    let server = Server::start(move |seen| {
        let is_slow = !is_thawed.load(Relaxed) && seen.line().contains("/slow");
        if is_slow { Reply::nothing().freeze() } else { Reply::ok("") }
    });
    let weir = Weir::new();
    let jobs: String = (0..40).map(|number| format!("{{\"id\":\"{number}\",\"url\":\"/slow\"}}\n")).collect();
    weir.write("jobs", jobs + "{\"id\":\"last\",\"url\":\"/slow\"}\n");
    let url = server.url("/");
    let running = weir.start(&[
        "send",
        "jobs",
        "--url",
        &url,
        "--store",
        "q.db",
        "--max-concurrency",
        "1",
        "--grace",
        "0s",
        "-q",
    ]);
    until("a request to be out", TIMEOUT, || server.requests() > 0);
    until("the last job to be in", TIMEOUT, || ask(&weir, "list", &["last"]).code == 0);
    let status = told(&weir, "status", &[]);
    assert_eq!(status["sender"]["pid"], running.pid(), "{status}");
    assert_eq!(status["oldest"]["id"], "0", "{status}");
    let leased = ask(&weir, "edit", &["0", "--weight", "2"]);
    assert_eq!((leased.code, leased.one_line()), (1, "job '0': it is leased; edit it when the sender has released it"));
    assert_eq!(ask(&weir, "retry", &["0"]).one_line(), "job '0': it is leased");
    assert_eq!(told(&weir, "edit", &["last", "--url", &server.url("/quick")])["state"], "queued");
    assert_eq!(told(&weir, "purge", &["--state", "queued", "39", "38"])["purged"], 2);
    running.interrupt();
    assert_eq!(running.finish().code, 130);
    assert_eq!(told(&weir, "status", &[])["sender"], Value::Null);
    assert_eq!(told(&weir, "purge", &["--state", "queued", "--text", "/slow"])["purged"], 37);
    weir.write("jobs", "");
    thawed.store(true, Relaxed);
    let output = weir.run(&["send", "jobs", "--url", &url, "--store", "q.db", "-q"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(server.seen().iter().any(|seen| seen.line().contains("/quick")));
    assert_eq!(ids(&listed(&weir, &["--state", "done"])), ["0", "last"], "what was out, and what was changed");
}

#[test]
fn a_file_that_is_not_a_store_is_one_line_and_stays_as_it_is() {
    let weir = ended(&moody());
    let connection = rusqlite::Connection::open(weir.path("q.db")).unwrap();
    connection.execute_batch("UPDATE meta SET value = 7 WHERE name = 'version'").unwrap();
    drop(connection);
    rusqlite::Connection::open(weir.path("other.db")).unwrap().execute_batch("CREATE TABLE job (a)").unwrap();
    weir.write("text", "no store at all");
    weir.write("empty", "");
    weir.write("jobs.db", "");
    let cases = [
        ("none.db", "no job store"),
        ("text", "not a job store"),
        ("empty", "not a job store"),
        ("other.db", "not a job store"),
        ("q.db", "has version 7"),
        ("jobs", "did you mean 'jobs.db'"),
        (".", "cannot open the store"),
    ];
    let before = std::fs::read(weir.path("other.db")).unwrap();
    for (file, part) in cases {
        for args in [
            ["status", file].as_slice(),
            &["list", file],
            &["retry", file, "--all"],
            &["edit", file, "a", "--weight", "2"],
            &["purge", file, "--state", "done"],
        ] {
            let output = weir.run(&[&["send"], args].concat());
            assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
            assert!(output.one_line().contains(part), "{args:?}: {output:?}");
        }
    }
    assert!(!weir.path("none.db").exists(), "none is made");
    assert_eq!(weir.read("empty"), "");
    assert_eq!(std::fs::read(weir.path("other.db")).unwrap(), before);
}

#[test]
fn a_file_of_jobs_named_like_a_command_is_sent_by_its_path() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("status", "{}\n");
    let output = weir.run(&["send", "./status", "--url", &server.url("/"), "-q"]);
    assert_eq!((output.code, server.requests()), (0, 1), "{output:?}");
    let missing = weir.run(&["send"]);
    assert!(missing.code == 2 && missing.one_line().contains("JOBS"), "{missing:?}");
}
