//! Interruption, and cleanup of processes.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::{GOOD, SHORT, TIMEOUT, assert_tidy, cells, failure, json, pid_in, study};
use weir_testing::{Weir, is_running, until};

#[test]
fn an_interrupted_study_ends_with_130_and_the_same_command_continues() {
    let weir = Weir::new();
    weir.write("study.toml", format!("{SHORT}{GOOD}").replace("repeats = 2", "repeats = 6"));
    let running = weir.start(&["study", "study.toml", "--format", "json", "--quiet"]);
    let second = weir.path("results/measurements/good/all/2/measurement.json");
    until("two measurements", TIMEOUT, || second.exists());
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let found = json(&output);
    let saved = cells(&found, "good").len();
    assert!((2..6).contains(&saved) && found["missing"] == 6 - saved, "{found:#}");
    assert_tidy(&weir.path("results"));
    let output = weir.run(&["study", "study.toml", "--format", "json", "--quiet"]);
    let whole = json(&output);
    assert_eq!((output.code, cells(&whole, "good").len()), (0, 6));
    assert_eq!(cells(&whole, "good")[..saved], cells(&found, "good")[..], "saved measurements are reused");
}

/// Variant that writes its process ID to a file, with a child that leaves its session and its parent.
const DAEMON: &str = r#"
[variants.daemon]
command = "(setsid sh -c 'echo $$ > child; exec sleep 1000' &) ; until [ -s child ]; do sleep 0.01; done; echo $$ > main; exec weir serve work --port {port} --delay 1ms --mix good=1"
"#;

#[test]
#[cfg_attr(weir_portable, ignore = "all descendants are known on Linux only")]
fn no_process_of_a_variant_outlives_its_measurement() {
    let weir = Weir::new();
    // Two samples at least, on a busy machine too.
    let text = format!("{SHORT}{DAEMON}").replace("repeats = 2", "repeats = 1").replace("200ms", "1s");
    let output = study(&weir, &text);
    let found = json(&output);
    assert_eq!(cells(&found, "daemon")[0]["failure"], Value::Null, "{found:#}");
    assert!(
        cells(&found, "daemon")[0]["usage"]["processes_peak"].as_u64().unwrap() >= 2,
        "the child counts: {found:#}"
    );
    for name in ["main", "child"] {
        assert!(!is_running(pid_in(&weir, name)), "{name}");
    }
}

#[test]
#[cfg_attr(weir_portable, ignore = "all descendants are known on Linux only")]
fn no_process_outlives_a_study_that_is_killed() {
    let weir = Weir::new();
    let text = format!("{SHORT}{DAEMON}").replace("200ms", "60s");
    weir.write("study.toml", text);
    let running = weir.start(&["study", "study.toml", "--quiet"]);
    let (main, child) = (pid_in(&weir, "main"), pid_in(&weir, "child"));
    assert!(is_running(main) && is_running(child));
    running.signal(Signal::KILL);
    drop(running);
    until("its supervisor to end everything", TIMEOUT, || !is_running(main) && !is_running(child));
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_tidy(&weir.path("results"));
}

#[test]
#[cfg_attr(weir_portable, ignore = "all descendants are known on Linux only")]
fn the_next_start_ends_what_a_study_left_that_was_killed_with_its_supervisor() {
    let weir = Weir::new();
    weir.write("study.toml", format!("{SHORT}{DAEMON}").replace("200ms", "60s"));
    let running = weir.start(&["study", "study.toml", "--quiet"]);
    let (main, child) = (pid_in(&weir, "main"), pid_in(&weir, "child"));
    let stat = fs::read_to_string(format!("/proc/{main}/stat")).unwrap();
    let guard: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Stopped, the study cannot notice the end of its supervisor before it is killed itself.
    running.signal(Signal::STOP);
    rustix::process::kill_process(rustix::process::Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    running.signal(Signal::KILL);
    drop(running);
    assert!(is_running(main) && is_running(child), "no supervisor is left to end them");
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!is_running(main) && !is_running(child));
    assert_tidy(&weir.path("results"));
}

#[test]
#[cfg_attr(weir_portable, ignore = "all descendants are known on Linux only")]
fn a_load_ends_with_its_service() {
    let weir = Weir::new();
    let bad = r#"
[limits]
memory = "100MiB"
[variants.dies]
command = "weir serve work --port {port} --delay 1ms --mix good=1 >/dev/null & sleep 2; kill -9 $!; echo out of luck >&2; exit 3"
[variants.leaks]
command = "(head -c 150000000 /dev/zero; sleep 1000) | tail > /dev/null & exec weir serve work --port {port} --delay 1ms --mix good=1"
"#;
    // Longer than a test may take.
    let text = SHORT.replace("repeats = 2", "repeats = 1").replace("200ms", "10m");
    weir.write("study.toml", format!("{text}{bad}"));
    let output = weir.run(&["study", "study.toml", "--format", "json", "--quiet"]);
    assert_eq!(output.code, 2, "nothing could be measured: {output:?}");
    let found = json(&output);
    let (reason, output) = failure(&found, "dies");
    assert!(
        reason.contains("ended in the middle: exit code 3") && output.contains("out of luck"),
        "{reason}: {output}"
    );
    assert!(failure(&found, "leaks").0.contains("over its memory limit"), "{found:#}");
}
