//! `weir doctor` on this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::Value;
use weir_testing::{Running, Weir, weir_path};

const CHECKS: [&str; 15] = [
    "kernel",
    "cores",
    "CPU quota",
    "CPU use",
    "steal",
    "CPU governor",
    "clock",
    "timers",
    "memory",
    "open files",
    "local ports",
    "TIME_WAIT",
    "accept backlog",
    "conntrack",
    "CA certificates",
];

#[test]
fn every_check_is_in_the_report_and_in_the_json_of_its_schema() {
    let weir = Weir::new();
    let text = weir.run(&["doctor"]);
    assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{text:?}");
    let report = weir.run(&["doctor", "--json"]);
    let json: Value = serde_json::from_str(&report.stdout).unwrap();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/doctor.schema.json")).unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let names: Vec<&str> =
        json["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, CHECKS);
    assert!(CHECKS.iter().all(|name| text.stdout.contains(name)), "{}", text.stdout);
    assert!(text.stdout.trim_end().lines().last().unwrap().starts_with("15 checks, "), "{}", text.stdout);
}

/// A shell lowers the hard limit of open files, since nothing can raise it again; root may, but weir does not here.
#[test]
fn a_low_limit_of_open_files_is_a_warning_with_a_remedy_and_fails_a_strict_call() {
    let run = |flags: &str| {
        let line = format!("ulimit -n 512 && exec '{}' doctor {flags}", weir_path().display());
        let mut command = Command::new("sh");
        command.args(["-c", &line]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        Running::new(&mut command).finish()
    };
    let (lenient, strict) = (run("-v"), run("--strict --format json"));
    assert_eq!((lenient.code, strict.code), (0, 1), "{lenient:?}");
    assert!(lenient.stdout.contains("hard limit 512: at most 384 connections"), "{}", lenient.stdout);
    assert!(lenient.stdout.contains("LimitNOFILE="), "{}", lenient.stdout);
    let json: Value = serde_json::from_str(&strict.stdout).unwrap();
    assert_eq!((&json["ok"], &json["facts"]["open_files_hard"]), (&Value::Bool(false), &Value::from(512)));
}

#[test]
fn two_formats_are_a_usage_error() {
    let output = Weir::new().run(&["doctor", "--json", "--format", "text"]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
}
