//! `weir simulate` by the real binary: stdout is data, what is wrong is one line, and figures are those of the world asked for.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use serde_json::Value;
use support::{Weir, close};

const SMALL: [&str; 5] = ["simulate", "--slots=5", "--service=10ms..50ms", "--duration=10s", "--deadline=500ms"];

fn run(args: &[&str]) -> String {
    let output = Weir::new().run(args);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{args:?}");
    output.stdout
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&run(&[args, &["--format", "json"]].concat())).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_list_names_scenarios_that_are_there() {
    let list = run(&["simulate", "--list"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 17 && names.contains(&"flash-crowd"), "{list}");
    let page = std::fs::read_to_string(format!("{}/docs/overload.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    for name in names {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
    }
}

#[test]
fn figures_of_ones_own_make_the_world() {
    let of = json(&[&SMALL[..], &["--load=3", "--limit=static,none", "--step=1s"]].concat());
    let runs = of["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["limit"].as_str().unwrap()).collect::<Vec<_>>(), ["static", "none"]);
    for run in runs {
        assert_eq!((run["scenario"].as_str(), run["series"].as_array().unwrap().len()), (Some("own"), 10));
        assert!(close(number(&run["scored"]["capacity_per_s"]), 5.0 / 0.030, 0.01), "{}", run["scored"]);
        assert!(close(number(&run["scored"]["offered_per_s"]), 500.0, 0.1), "{}", run["scored"]);
    }
    assert!(number(&runs[0]["headline"]) > 0.9 && number(&runs[1]["headline"]) < 0.3);
    assert_eq!(of["duels"][0]["ahead"], 1);
    let by_rate = json(&[&SMALL[..], &["--rate=50", "--gates=2", "--arrivals=constant", "--warmup=0s"]].concat());
    assert_eq!(number(&by_rate["runs"][0]["scored"]["offered_per_s"]), 50.0);
}

#[test]
fn stages_and_changes_are_phases_of_the_run() {
    let args = [
        "simulate",
        "--service=20ms",
        "--slots=4",
        "--load=0.5/2s,3/4s",
        "--change=4s slots=2",
        "--warmup=0s",
        "--limit=static:4",
    ];
    let run = &json(&args)["runs"][0];
    let phases = run["phases"].as_array().unwrap();
    assert_eq!(phases.iter().map(|phase| number(&phase["to_s"])).collect::<Vec<_>>(), [2.0, 6.0]);
    assert!(number(&phases[0]["refused"]) < 0.2 && number(&phases[1]["refused"]) > 0.6, "{phases:?}");
    let best = |at: usize| number(&run["series"][at]["best_in_flight"]);
    assert_eq!((best(7), best(8)), (4.0, 2.0));
}

#[test]
fn the_text_is_for_people_and_fits_a_terminal() {
    let text = run(&["simulate", "--scenario=step-up,deadline", "--limit=auto,static"]);
    assert!(
        text.starts_with("step-up: ") && text.contains("\ndeadline: ") && text.contains("static: ahead in "),
        "{text}"
    );
    assert!(text.lines().filter(|line| line.starts_with("  ")).all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(text, run(&["simulate", "--scenario=step-up,deadline", "--limit=auto,static"]), "not by a clock");
}

#[test]
fn a_seed_makes_other_dice() {
    let with = |seed: &str| json(&[&SMALL[..], &["--seed", seed]].concat())["runs"][0]["scored"].clone();
    assert_eq!(with("1"), json(&SMALL)["runs"][0]["scored"]);
    assert_ne!(with("1"), with("2"));
}

#[test]
fn what_makes_no_sense_is_named_in_one_line() {
    for (args, named) in [
        (&["--scenario=steps"][..], "'steps' is no scenario; choose step-down, "),
        (&["--scenario=ramp", "--slots=3"], "--scenario does not go with figures of your own"),
        (&["--limit=fast"], "'fast' is no limit; choose auto, "),
        (&["--limit=static:0"], "static:50"),
        (&["--slots=0"], "'0'"),
        (&["--load=much"], "'much' is not a load"),
        (&["--load=-1"], "'-1' is not a load"),
        (&["--load=1/1s", "--duration=1s"], "--duration does not go with stages"),
        (&["--load=1", "--rate=1"], "cannot be used with"),
        (&["--load=1e9"], "are more than 100000000"),
        (&["--duration=10ms"], "too short"),
        (&["--duration=1m", "--warmup=1m"], "--warmup"),
        (&["--deadline=0s"], "--deadline 0s"),
        (&["--step=50ms"], "tenths of a second"),
        (&["--change=30s"], "is no change"),
        (&["--change=30s slots=-1"], "is no change"),
        (&["--change=30s slower=0"], "is no change"),
        (&["--change=30s replica=1 slots=1"], "--replicas"),
        (&["--priorities=1,2"], "weights"),
        (&["--priorities=0,0,0,0"], "weights"),
        (&["--obey"], "--retries"),
        (&["--queue=1", "--thrashes"], "cannot be used with"),
        (&["--service=soon"], "'soon' is not a time"),
        (&["--balance=dice"], "choose fewest or turns"),
        (&["--service=0ms"], "--service"),
    ] {
        let output = Weir::new().run(&[&["simulate"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
        assert!(output.one_line().contains(named), "{args:?}: {}", output.stderr);
    }
}
