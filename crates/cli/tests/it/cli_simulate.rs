//! `weir simulate` by the real binary: reports on stdout, one-line errors, and metrics of the given simulation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Weir, close};

const SMALL: [&str; 5] = ["simulate", "--slots=5", "--service-time=10ms..50ms", "--duration=10s", "--deadline=500ms"];

fn run(args: &[&str]) -> String {
    let output = Weir::new().run(args);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    output.stdout
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(&[args, &["--format", "json"]].concat())).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn the_list_names_all_scenarios() {
    let list = run(&["simulate", "--list"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 17 && names.contains(&"flash-crowd"), "{list}");
    let page = std::fs::read_to_string(format!("{}/../../docs/overload.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
    }
}

#[test]
fn flags_define_a_custom_simulation() {
    let of = json(&[&SMALL[..], &["--load=3", "--limiter=static,none", "--interval=1s"]].concat());
    let runs = of["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["limiter"].as_str().unwrap()).collect::<Vec<_>>(), ["static", "none"]);
    for run in runs {
        assert_eq!((run["scenario"].as_str(), run["series"].as_array().unwrap().len()), (Some("custom"), 10));
        assert!(close(number(&run["scored"]["capacity_per_s"]), 5.0 / 0.030, 0.01), "{}", run["scored"]);
        assert!(close(number(&run["scored"]["offered_per_s"]), 500.0, 0.1), "{}", run["scored"]);
    }
    assert!(number(&runs[0]["headline"]) > 0.9 && number(&runs[1]["headline"]) < 0.3);
    assert_eq!(of["pairings"][0]["wins"], 1);
    let by_rate = json(&[&SMALL[..], &["--rate=50", "--gates=2", "--arrivals=constant", "--warmup=0s"]].concat());
    assert_eq!(number(&by_rate["runs"][0]["scored"]["offered_per_s"]), 50.0);
}

#[test]
fn stages_and_changes_are_phases_of_the_run() {
    let args = [
        "simulate",
        "--service-time=20ms",
        "--slots=4",
        "--load=0.5/2s,3/4s",
        "--change=4s slots=2",
        "--warmup=0s",
        "--limiter=static:4",
    ];
    let run = &json(&args)["runs"][0];
    let phases = run["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(|phase| number(&phase["end_s"])).collect::<Vec<_>>(), [2.0, 6.0]);
    assert!(number(&phases[0]["rejected"]) < 0.2 && number(&phases[1]["rejected"]) > 0.6, "{phases:?}");
    let optimum = |at: usize| number(&run["series"][at]["optimal_in_flight"]);
    assert_eq!((optimum(7), optimum(8)), (4.0, 2.0));
}

#[test]
fn a_phase_without_calls_has_no_metrics_of_calls() {
    let args =
        ["simulate", "--slots=5", "--service-time=20ms", "--load=0/5s,3/5s", "--warmup=0s", "--limiter=static:4"];
    let of = json(&args);
    let (idle, busy) = (&of["runs"][0]["phases"][0], &of["runs"][0]["phases"][1]);
    let names = ["goodput", "p50_ms", "p99_ms", "p99_ratio", "rejected", "upstream_rejected", "timed_out"];
    for name in names.iter().chain(&["rejected_wait_p99_ms"]) {
        assert!(idle[name].is_null() && busy[name].is_number(), "{name}: {idle} {busy}");
    }
    assert_eq!((number(&idle["offered_per_s"]), number(&idle["goodput_per_s"])), (0.0, 0.0));
    let text = run(&args);
    let row: Vec<&str> = text.lines().nth(3).unwrap().split_whitespace().skip(3).collect();
    assert_eq!(row[..6], ["0", "-", "-", "-", "-", "-"], "{text}");
    let none = json(&["simulate", "--rate=0.001", "--duration=5s", "--slots=2"]);
    assert!(none["runs"][0]["headline"].is_null(), "{none}");
}

#[test]
fn the_text_report_fits_a_terminal_and_is_reproducible() {
    let text = run(&["simulate", "--scenario=step-up,deadline", "--limiter=auto,static"]);
    assert!(
        text.starts_with("step-up: ")
            && text.contains("\ndeadline: ")
            && text.contains(" static: ")
            && text.contains(" wins, "),
        "{text}"
    );
    assert!(text.lines().filter(|line| line.starts_with("  ")).all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text, run(&["simulate", "--scenario=step-up,deadline", "--limiter=auto,static"]), "no clock is read");
}

#[test]
fn a_seed_changes_the_random_choices() {
    let with = |seed: &str| json(&[&SMALL[..], &["--seed", seed]].concat())["runs"][0]["scored"].clone();
    assert_eq!(with("1"), json(&SMALL)["runs"][0]["scored"]);
    assert_ne!(with("1"), with("2"));
}

#[test]
fn an_invalid_flag_is_named_in_one_line() {
    for (args, named) in [
        (&["--scenario=steps"][..], "unknown scenario 'steps'; choose step-down, "),
        (&["--scenario=ramp", "--slots=3"], "--scenario cannot be used with flags of a custom simulation"),
        (&["--limiter=fast"], "unknown limiter 'fast'; choose auto, "),
        (&["--limiter=static:0"], "static:50"),
        (&["--slots=0"], "'0'"),
        (&["--load=much"], "invalid load 'much'"),
        (&["--load=-1"], "invalid load '-1'"),
        (&["--load=1/1s", "--duration=1s"], "--duration cannot be used with stages"),
        (&["--load=1", "--rate=1"], "cannot be used with"),
        (&["--load=1e9"], "exceed the maximum of 100000000"),
        (&["--duration=10ms"], "too short"),
        (&["--duration=1m", "--warmup=1m"], "--warmup"),
        (&["--deadline=0s"], "--deadline 0s"),
        (&["--interval=50ms"], "not a multiple of 100ms"),
        (&["--change=30s"], "invalid change"),
        (&["--change=30s slots=-1"], "invalid change"),
        (&["--change=30s slower=0"], "invalid change"),
        (&["--change=30s replica=1 slots=1"], "--replicas"),
        (&["--priorities=1,2"], "weights"),
        (&["--priorities=0,0,0,0"], "weights"),
        (&["--honor-retry-after"], "--retries"),
        (&["--max-queue=1", "--degrade"], "cannot be used with"),
        (&["--service-time=soon"], "invalid time 'soon'"),
        (&["--balance=rng"], "[possible values: least-in-flight, round-robin]"),
        (&["--service-time=0ms"], "--service-time"),
    ] {
        let output = Weir::new().run(&[&["simulate"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
        assert!(output.one_line().contains(named), "{args:?}: {}", output.stderr);
    }
}
