//! `weir compare`: files and folders in, verdicts and exit codes out.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_measure::Run;
use weir_testing::{Server, Weir};

/// Saves a real run in several copies with throughputs of `level` times its own, in turns with those of other sides.
fn save(weir: &Weir, folder: &str, run: &Run, levels: &[f64], turn: f64) {
    std::fs::create_dir_all(weir.path(folder)).unwrap();
    for (i, level) in levels.iter().enumerate() {
        let mut run = run.clone();
        run.rate_per_s.achieved *= level;
        run.rate_per_s.offered = run.rate_per_s.achieved;
        run.manifest.started_unix_s = 1000.0 + i as f64 * 10.0 + turn;
        run.trust.ok = true;
        run.trust.reasons.clear();
        weir.write(&format!("{folder}/{i}.json"), run.to_json());
    }
}

fn run() -> Run {
    let server = Server::start(|_| weir_testing::Reply::ok("hello"));
    weir_testing::load(&server.url("/"), &["-c", "2", "-n", "200"])
}

const LEVELS: [f64; 5] = [1.0, 1.004, 0.996, 1.002, 0.998];

#[test]
fn what_became_worse_is_exit_code_1_and_what_stayed_0() {
    let (weir, run) = (Weir::new(), run());
    save(&weir, "old", &run, &LEVELS, 0.0);
    save(&weir, "same", &run, &LEVELS, 3.0);
    save(&weir, "slower", &run, &LEVELS.map(|level| level * 0.9), 5.0);
    let output = weir.run(&["compare", "old", "slower"]);
    assert_eq!((output.code, output.stderr.as_str()), (1, ""), "{}", output.stdout);
    assert!(output.stdout.contains("B vs A: worse: rate -10.0%"), "{}", output.stdout);
    assert_eq!(weir.run(&["compare", "slower", "old"]).code, 0, "better is no failure");
    let output = weir.run(&["compare", "old", "same", "--format", "json"]);
    assert_eq!(output.code, 0, "{}", output.stdout);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["pairs"][0]["finding"], "same");
    assert_eq!(value["pairs"][0]["by_round"], true);
    let output = weir.run(&["compare", "old", "same", "slower", "--format", "markdown", "--metric", "rate,p90"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("### 🔴 C vs A") && output.stdout.contains("| p90 |"), "{}", output.stdout);
}

#[test]
fn one_run_a_side_shows_the_change_and_never_fails() {
    let (weir, run) = (Weir::new(), run());
    save(&weir, "a", &run, &[1.0], 0.0);
    save(&weir, "b", &run, &[0.5], 0.0);
    let output = weir.run(&["compare", "a/0.json", "b/0.json"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("-50.0%") && output.stdout.contains("one run"), "{}", output.stdout);
}

#[test]
fn another_machine_is_compared_only_by_force() {
    let (weir, run) = (Weir::new(), run());
    save(&weir, "a", &run, &LEVELS, 0.0);
    let mut other = run;
    other.manifest.hostname = "elsewhere".into();
    save(&weir, "b", &other, &LEVELS, 1.0);
    let output = weir.run(&["compare", "a", "b"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.one_line().contains("different machines") && output.one_line().contains("--force"), "{output:?}");
    let output = weir.run(&["compare", "a", "b", "--force"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("note: different machines"), "{}", output.stdout);
}

#[test]
fn untrusted_runs_are_named_and_strict_is_exit_code_3() {
    let (weir, mut run) = (Weir::new(), run());
    save(&weir, "a", &run, &LEVELS, 0.0);
    save(&weir, "b", &run, &LEVELS.map(|level| level * 2.0), 1.0);
    run.rate_per_s.achieved *= 2.0;
    run.manifest.started_unix_s = 1001.0;
    run.trust.ok = false;
    run.trust.reasons = vec!["weir itself sent late.".into()];
    for i in 0..2 {
        run.manifest.started_unix_s += f64::from(i) * 10.0;
        weir.write(&format!("b/{i}.json"), run.to_json());
    }
    let output = weir.run(&["compare", "a", "b", "--metric", "rate"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("not trusted: B: b/0.json, b/1.json: weir itself sent late."), "{}", output.stdout);
    assert!(output.stdout.contains("inconclusive: too"), "it would have won: {}", output.stdout);
    assert_eq!(weir.run(&["compare", "a", "b", "--strict"]).code, 3);
}

#[test]
fn results_of_other_tools_are_compared() {
    let weir = Weir::new();
    let golden = |name: &str| {
        let path = format!("{}/../load/report/src/read/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    for folder in ["a", "b"] {
        std::fs::create_dir(weir.path(folder)).unwrap();
        weir.write(&format!("{folder}/notes.md"), "no run");
        for i in 0..4 {
            weir.write(
                &format!("{folder}/{i}.txt"),
                golden("wrk.txt").replace("181.02", &format!("{}", 181.02 + f64::from(i))),
            );
        }
    }
    let output = weir.run(&["compare", "a", "b", "--metric", "rate"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("B vs A: the same") && output.stdout.contains("note: wrk does not report"));
    assert!(output.stderr.contains("a/notes.md: not a result of a tool") && output.stderr.contains("ignored"));
    let output = weir.run(&["compare", "a/0.txt", "b/notes.md"]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().starts_with("b/notes.md: not a result of a tool"));
}

#[test]
fn what_cannot_be_read_is_one_line_and_exit_code_2() {
    let weir = Weir::new();
    std::fs::create_dir(weir.path("empty")).unwrap();
    for (args, words) in [
        (["missing", "missing"].as_slice(), "cannot read missing"),
        (&["empty", "empty"], "no run in this folder"),
        (&["one"], "only one side"),
        (&["a", "b", "--metric", "speed"], "unknown metric 'speed'"),
        (&["a", "b", "--min-effect", "much"], "invalid percentage 'much'"),
        (&["a", "b", "--confidence", "100%"], "--confidence"),
    ] {
        let output = weir.run(&[&["compare"], args].concat());
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.one_line().contains(words), "{args:?}: {output:?}");
    }
}

#[test]
fn runs_of_scenarios_are_compared_by_step_and_more_failures_of_a_step_are_no_win() {
    let server = Server::start(|_| weir_testing::Reply::ok("hello"));
    let weir = Weir::new();
    let step = |name: &str| format!("# @name {name}\nGET {}\nHTTP 200\n\n", server.url("/"));
    weir.write("shop.hurl", [step("list"), step("buy")].concat());
    let saved = weir.run(&["load", "-s", "shop.hurl", "-n", "200", "-c", "2", "-q", "--out", "run.json"]);
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    let run = Run::from_json(&weir.read("run.json")).unwrap();
    save(&weir, "old", &run, &LEVELS, 0.0);
    let mut failing = run;
    let buy = &mut failing.steps[1];
    (buy.ok, buy.failed) = (buy.ok - 10, buy.failed + 10);
    buy.checks[0].failed += 10;
    save(&weir, "new", &failing, &LEVELS.map(|level| level * 1.5), 3.0);
    let output = weir.run(&["compare", "old", "new", "--format", "json"]);
    assert_eq!(output.code, 1, "a step is worse: {}", output.stdout);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    let pair = &value["pairs"][0];
    assert_eq!((&pair["finding"], &pair["verdicts"][0]["finding"]), (&"worse".into(), &"inconclusive".into()));
    assert_eq!(pair["verdicts"][0]["reason"], "more of the requests or checks of a step fail");
    let steps: Vec<&str> = pair["steps"].as_array().unwrap().iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(steps, ["list", "buy"]);
    let names = |step: &Value| -> Vec<Value> {
        step["verdicts"].as_array().unwrap().iter().map(|judged| judged["name"].clone()).collect()
    };
    assert_eq!(names(&pair["steps"][1]), ["p50", "p99", "errors", "checks"]);
    let text = weir.run(&["compare", "old", "new"]).stdout;
    assert!(text.contains("B vs A: worse: buy errors +5.0 pp, buy checks -"), "{text}");
}
