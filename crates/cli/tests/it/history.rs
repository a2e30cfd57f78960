//! Saved runs: their list, their trend, and other commands that read them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::thread;

use rusqlite::Connection;
use serde_json::Value;
use weir_testing::{Output, Server, Weir};

fn save(weir: &Weir, url: &str, flags: &[&str]) -> Output {
    let output = weir.run(&[&["load", url, "-n", "120", "-c", "2", "-q", "--save"], flags].concat());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{}", output.stdout);
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"))
}

#[test]
fn a_saved_run_is_the_run_and_other_commands_read_it() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/items");
    for (label, name) in [("main", "1.json"), ("branch", "2.json")] {
        save(&weir, &url, &["--label", label, "--slo", "p97<10s", "--out", name]);
    }
    assert_eq!(weir.run(&["report", "last"]).stdout, weir.run(&["report", "2.json"]).stdout);
    assert_eq!(weir.run(&["report", "#1"]).stdout, weir.run(&["report", "1.json"]).stdout);
    let list = json(&weir.run(&["history", "--format", "json"]));
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["label"].as_str().unwrap()).collect::<Vec<_>>(), ["main", "branch"]);
    let whole: Value = serde_json::from_str(&weir.read("2.json")).unwrap();
    assert_eq!(runs[1]["figures"]["p99"], whole["response_ms"]["p99"]);
    // The figure of an objective is there, too.
    assert!(runs[1]["figures"]["p97"].as_f64().unwrap() > 0.0, "{}", runs[1]);
    assert_eq!(runs[1]["plan"], format!("GET {url}, closed loop, 2 connections"));
    let compared = weir.run(&["compare", "last~1", "last"]);
    assert!(compared.stdout.contains("A  last~1 (1 run of weir)"), "{compared:?}");
    let text = weir.run(&["history", "--label", "main"]).stdout;
    assert!(text.contains("#1  ") && !text.contains("#2  "), "{text}");
    assert_eq!(weir.run(&["history", "--plan", "/other"]).stdout, "no runs\n");
    // A file of that name comes first.
    fs::rename(weir.path("1.json"), weir.path("last")).unwrap();
    assert_eq!(weir.run(&["report", "last"]).stdout, weir.run(&["report", "#1"]).stdout);
}

#[test]
fn runs_that_end_at_the_same_time_are_all_saved_and_the_oldest_can_be_deleted() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| save(&weir, &url, &[]));
        }
    });
    let count = || json(&weir.run(&["history", "-n", "0", "--format", "json"]))["runs"].as_array().unwrap().len();
    assert_eq!(count(), 6);
    let deleted = weir.run(&["history", "--keep", "2", "--format", "json"]);
    assert_eq!((deleted.one_line(), count()), ("4 runs deleted", 2));
    save(&weir, &url, &[]);
    assert_eq!(weir.run(&["report", "#7"]).code, 0, "a number is not given twice");
}

#[test]
fn a_trend_names_the_run_with_which_a_figure_became_worse() {
    let (weir, server) = (Weir::new(), Server::hello());
    for _ in 0..24 {
        save(&weir, &server.url("/"), &[]);
    }
    // What the runs have measured is left to chance; a store with known figures is not.
    let store = Connection::open(weir.path(".weir/runs.db")).unwrap();
    store.execute("UPDATE runs SET trusted = 1, git_commit = printf('c%d', id)", []).unwrap();
    let figures = "UPDATE figures SET value = CASE WHEN run_id < 15 THEN 10.0 ELSE 14.0 END + (run_id % 3) * 0.1";
    store.execute(&format!("{figures} WHERE name = 'p99'"), []).unwrap();
    store.execute(&format!("{figures} WHERE name = 'rate'"), []).unwrap();
    store.execute("UPDATE figures SET value = 5.0 WHERE name = 'p50'", []).unwrap();
    store.execute("UPDATE runs SET trusted = 0 WHERE id = 3", []).unwrap();
    let text = weir.run(&["trend"]).stdout;
    for expected in [
        " GiB · 23 runs, ",
        " · 1 left out: not trusted, or interrupted",
        "  worse with #15 (c15) of ",
        ": 10.1ms to 14.1ms, +39.3%; before it #14 (c14)",
        "  better with #15 (c15) of ",
        "5ms  no change",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    for (flags, code) in [
        (&["--fail-if", "worse"][..], 1),
        (&["--fail-if", "worse", "--recent", "5"], 0),
        (&["--fail-if", "worse", "--metric", "rate"], 0),
        (&["--fail-if", "worse", "--min-effect", "50%"], 0),
        (&[], 0),
    ] {
        assert_eq!(weir.run(&[&["trend"], flags].concat()).code, code, "{flags:?}");
    }
    let found = json(&weir.run(&["trend", "--metric", "p99", "--format", "json"]));
    let change = &found["groups"][0]["trends"][0]["changes"][0];
    assert_eq!(
        (&change["run"], &change["previous_run"], &change["finding"]),
        (&15.into(), &14.into(), &"worse".into())
    );
}

#[test]
fn what_is_no_store_is_one_line_before_anything_is_sent() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("notes.txt", "a text that is long enough to be no database, and not empty either".repeat(20));
    weir.write("empty.db", "");
    let other = Connection::open(weir.path("other.db")).unwrap();
    other.execute("CREATE TABLE t (a)", []).unwrap();
    let newer = Connection::open(weir.path("newer.db")).unwrap();
    newer.execute_batch("PRAGMA application_id = 2003134834; PRAGMA user_version = 9").unwrap();
    for (file, expected) in [
        ("notes.txt", "notes.txt: not a store of runs; name another file"),
        ("other.db", "other.db: not a store of runs; name another file"),
        ("newer.db", "newer.db: version 9 of a store of runs; this weir reads version 1: name another file"),
    ] {
        let flag = format!("--save={file}");
        let output = weir.run(&["load", &server.url("/"), "-n", "1", &flag]);
        assert_eq!((output.code, output.one_line()), (2, format!("--save: {expected}").as_str()));
        let output = weir.run(&["history", file]);
        assert_eq!((output.code, output.one_line()), (2, expected));
    }
    assert_eq!(server.requests(), 0);
    for (args, expected) in [
        (&["history"][..], ".weir/runs.db: no saved runs; 'weir load --save' saves each run there"),
        (&["trend", "empty.db"], "empty.db: not a store of runs; name another file"),
        (&["report", "last"], ".weir/runs.db: no saved runs; 'weir load --save' saves each run there"),
    ] {
        let output = weir.run(args);
        let line = output.one_line();
        assert_eq!((output.code, line.strip_prefix("last: ").unwrap_or(line)), (2, expected));
    }
    save(&weir, &server.url("/"), &[]);
    let output = weir.run(&["compare", "last~5", "last"]);
    assert_eq!((output.code, output.one_line()), (2, "unknown run 'last~5' among 1; 'weir history' lists them"));
    let store = Connection::open(weir.path(".weir/runs.db")).unwrap();
    store.execute("UPDATE runs SET run = x'00'", []).unwrap();
    assert!(weir.run(&["report", "#1"]).one_line().starts_with("#1: run 1 is damaged: "));
}
