//! Variants that fail.

use std::fs;

use serde_json::Value;

use super::{GOOD, SHORT, cells, counted, failure, json, study};
use weir_testing::Weir;

#[test]
fn a_failing_variant_has_a_reason_and_the_others_are_measured() {
    let weir = Weir::new();
    let bad = r#"
[variants.missing]
command = ["no-such-command"]
[variants.never-ready]
command = "echo I wait for my database >&2; exec sleep 1000"
ready = "port"
[variants.quits]
command = "echo no such table >&2; exit 7"
ready = "port"
[variants.errors]
command = ["weir", "serve", "work", "--port", "{port}", "--mix", "error=1", "--delay", "1ms"]
[variants.broken]
setup = "echo no compiler >&2; exit 5"
command = ["true"]
[variants.client]
kind = "client"
command = "echo '{\"other\": 1}'"
[metrics]
rate = "higher"
"#;
    let text = counted().replace("repeats = 2", "repeats = 1").replace("ready = \"10s\"", "ready = \"3s\"");
    let output = study(&weir, &format!("{text}{bad}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    let found = json(&output);
    for (variant, reason, output) in [
        ("missing", "no such command: 'no-such-command'", ""),
        ("never-ready", "never ready", "I wait for my database"),
        ("quits", "ended before it was ready: exit code 7", "no such table"),
        ("errors", "no good response", ""),
        ("broken", "set-up", "no compiler"),
        ("client", "no number \"rate\"", ""),
    ] {
        let (is, lines) = failure(&found, variant);
        assert!(is.contains(reason) && lines.contains(output), "{variant}: {is}: {lines}");
    }
    assert!(failure(&found, "errors").0.contains("status 500"), "{found:#}");
    assert_eq!(cells(&found, "good")[0]["failure"], Value::Null, "{found:#}");
    let report = fs::read_to_string(weir.path("results/report.md")).unwrap();
    assert!(report.contains("no such table") && report.contains("**quits**"), "{report}");
}

#[test]
fn a_study_without_a_measurement_ends_with_2() {
    let weir = Weir::new();
    let output = study(&weir, &format!("{SHORT}\n[variants.a]\ncommand = [\"no-such-command\"]\n"));
    assert_eq!(output.code, 2, "{output:?}");
}
