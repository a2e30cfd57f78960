//! Scenarios of several agents: the same iterations as of one process, and the result is their sum.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Reply, Server, Weir};

/// Figures of a run that depend on the seed alone.
fn story(run: &Value) -> Vec<String> {
    let of_step = |step: &Value| {
        let checks: Vec<String> = step["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|check| format!("{} {}/{}", check["text"], check["passed"], check["failed"]))
            .collect();
        format!("{} {} {} {} {checks:?}", step["name"], step["requests"], step["ok"], step["failures"])
    };
    let of_scenario =
        |scenario: &Value| format!("{} {} {}", scenario["name"], scenario["iterations"], scenario["failed"]);
    let list = |key: &str| run[key].as_array().unwrap().clone();
    list("steps").iter().map(of_step).chain(list("scenarios").iter().map(of_scenario)).collect()
}

#[test]
fn the_same_seed_gives_the_same_counts_by_step_on_one_process_and_on_agents() {
    let server = Server::start(|seen| match seen.line().contains("/b") {
        true => Reply::status(404, "none"),
        false => Reply::ok("hello"),
    });
    let folder = Weir::new();
    folder.write("shop.hurl", format!("GET {}\n\nGET {}\nHTTP 200\n", server.url("/a"), server.url("/b")));
    folder.write("look.hurl", format!("GET {}\nHTTP 200\n[Asserts]\nbody == \"hello\"\n", server.url("/c")));
    let flags = ["-s", "shop.hurl", "-s", "look.hurl", "-n", "60", "-c", "4", "--seed", "5", "--format", "json"];
    let run = |more: &[&str]| -> Value {
        let output = folder.run(&[&["load"], &flags[..], more].concat());
        serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", output.stderr))
    };
    let alone = run(&[]);
    assert_eq!(alone["iterations"]["total"], 60);
    for agents in ["1", "2"] {
        let run = run(&["--on", "local", "--agents", agents]);
        assert_eq!(story(&run), story(&alone), "{agents} agents");
        assert_eq!(run["agents"].as_array().unwrap().len().to_string(), agents);
        let samples = run["steps"][1]["samples"].as_array().unwrap();
        assert!((1..=3).contains(&samples.len()), "{samples:?}");
    }
}
