//! `weir simulate` by the real binary: reports on stdout, one-line errors, and metrics of the given simulation.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::Weir;

const SMALL: [&str; 2] = ["simulate", "--scenario=fails-fast"];

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
fn each_scenario_runs_with_each_limiter() {
    let of = json(&[&SMALL[..], &["--limiter=static,none"]].concat());
    let runs = of["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["limiter"].as_str().unwrap()).collect::<Vec<_>>(), ["static", "none"]);
    assert!(number(&runs[0]["headline"]) > 0.9, "{}", runs[0]["scored"]);
    assert_eq!(of["pairings"][0]["other"], "none");
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
        (&["--limiter=fast"], "unknown limiter 'fast'; choose auto, "),
        (&["--limiter=static:0"], "static:50"),
        (&["--slots=3"], "unexpected argument '--slots'"),
    ] {
        let output = Weir::new().run(&[&["simulate"], args].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
        assert!(output.one_line().contains(named), "{args:?}: {}", output.stderr);
    }
}
