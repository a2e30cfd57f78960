//! End-to-end tests of `weir study`: measurements, saved results, resumption, cleanup, and failing variants.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Output, Weir, until};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Variant that responds after a millisecond.
const GOOD: &str = r#"
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "good=1"]
"#;

/// Short load, no warm-up, two rounds.
const SHORT: &str = r#"
repeats = 2
timeouts = { warmup = "0s", ready = "10s", stop = "2s" }
[loads.work]
url = "http://127.0.0.1:{port}/api/work"
connections = 2
duration = "200ms"
"#;

fn study(weir: &Weir, text: &str) -> Output {
    weir.write("study.toml", text);
    weir.run(&["study", "study.toml", "--format", "json", "--quiet"])
}

/// Findings, validated against the published schema.
fn json(output: &Output) -> Value {
    let found = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    let schema: Value = serde_json::from_str(include_str!("../docs/study-result.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&found).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    found
}

/// Measurements of a variant.
fn cells<'a>(found: &'a Value, variant: &str) -> Vec<&'a Value> {
    found["measurements"].as_array().unwrap().iter().filter(|cell| cell["variant"] == variant).collect()
}

/// Reason and last lines of the first measurement of a variant, which has failed.
fn failure(found: &Value, variant: &str) -> (String, String) {
    let failure = &cells(found, variant)[0]["failure"];
    let lines = failure["last_lines"].as_array().unwrap_or_else(|| panic!("{variant} did not fail: {found:#}"));
    let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
    (failure["reason"].as_str().unwrap().to_owned(), lines.join("\n"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Whether a process runs; a zombie does not.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Process ID that a variant writes to a file; waits for it.
fn pid_in(weir: &Weir, name: &str) -> u32 {
    let read = || fs::read_to_string(weir.path(name)).ok()?.trim().parse::<u32>().ok();
    until("a pid", TIMEOUT, || read().is_some());
    read().unwrap()
}

/// Asserts that a study has left neither a marker of running processes nor a partial file.
fn assert_tidy(results: &Path) {
    for file in files(results) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name != "running.json" && !name.ends_with(".part"), "{file:?}");
    }
}

#[test]
fn variants_are_measured_at_each_point_in_each_round_and_reported() {
    let weir = Weir::new();
    let text =
        SHORT.replace("connections = 2", "connections = \"{connections}\"").replace("repeats = 2", "repeats = 3");
    let slow = GOOD.replace("good]", "slow]").replace("1ms", "20ms");
    let output = study(&weir, &format!("question = \"Which?\"\n{text}\n[sweep]\nconnections = [1, 4]\n{GOOD}{slow}"));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let found = json(&output);
    for variant in ["good", "slow"] {
        let cells = cells(&found, variant);
        assert_eq!(cells.len(), 6);
        for cell in cells {
            assert_eq!(cell["failure"], Value::Null, "{cell:#}");
            assert!(cell["loads"][0]["rate_per_s"].as_f64().unwrap() > 10.0, "{cell:#}");
            assert!(cell["usage"]["rss_peak_bytes"].as_u64().unwrap() > 1_000_000, "{cell:#}");
        }
    }
    let primary = |verdict: &&Value| verdict["primary"] == true && verdict["point"]["connections"] == "4";
    let verdict = found["verdicts"].as_array().unwrap().iter().find(primary).unwrap();
    assert_eq!((&verdict["base"], &verdict["other"]), (&"good".into(), &"slow".into()));
    // The size of the effect depends on the machine; the verdict has to agree with the measured rates.
    let rates = |variant: &str| {
        let there = cells(&found, variant)
            .into_iter()
            .filter(|cell| cell["point"].as_array().unwrap().iter().any(|it| it[1] == "4"));
        there.map(|cell| cell["loads"][0]["rate_per_s"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let (good, slow) = (rates("good"), rates("slow"));
    let ratios = || slow.iter().flat_map(|slow| good.iter().map(move |good| slow / good));
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let effect = verdict["effect"].as_f64().unwrap();
    assert!(effect >= least * 0.999 && effect <= most * 1.001, "{least} to {most}: {verdict:#}");
    let results = weir.path("results");
    let report = fs::read_to_string(results.join("report.md")).unwrap();
    for words in ["# Which?", "## work: successes", "connections=4", "## Method", "plots/memory-peak.svg"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    for line in report.lines().filter_map(|line| line.split_once("](")) {
        let picture = line.1.trim_end_matches(')');
        for ending in [".svg", ".csv", ".png"] {
            assert!(results.join(picture.replace(".svg", ending)).is_file(), "{picture}: {ending}");
        }
    }
    let run = results.join("runs/slow/connections=4/work/3.json");
    weir::measure::Run::from_json(&fs::read_to_string(run).unwrap()).unwrap();
    let saved: Value = serde_json::from_str(&fs::read_to_string(results.join("study.json")).unwrap()).unwrap();
    assert_eq!(saved, found);
    assert_tidy(&results);
}

#[test]
fn the_schema_of_findings_is_closed_and_has_descriptions() {
    let schema: Value = serde_json::from_str(include_str!("../docs/study-result.schema.json")).unwrap();
    let kinds = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for kind in kinds {
        assert_eq!(kind["additionalProperties"], false, "{kind:#}");
        assert!(kind["description"].is_string(), "{kind:#}");
        let fields = kind["properties"].as_object().unwrap();
        let required: Vec<&str> =
            kind["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(fields.len(), required.len(), "{kind:#}");
        for (name, field) in fields {
            assert!(required.contains(&name.as_str()), "{name}");
            assert!(field["description"].as_str().is_some_and(|words| words.ends_with('.')), "{name}");
        }
    }
}

#[test]
fn measurements_are_saved_and_reused_unless_their_definition_changes() {
    let weir = Weir::new();
    let begun =
        |found: &Value| cells(found, "good").iter().map(|cell| cell["started_unix_s"].as_f64().unwrap()).collect();
    let first: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}"))));
    let again: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}"))));
    assert_eq!(first, again, "nothing was measured again");
    let more: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}").replace("repeats = 2", "repeats = 3"))));
    assert_eq!((more.len(), &more[..2]), (3, &first[..]), "only what was missing");
    let other: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}").replace("1ms", "2ms"))));
    assert!(other.iter().all(|at| !more.contains(at)), "all measured again: {more:?} {other:?}");
    let rerun = weir.run(&["study", "study.toml", "--format", "json", "--quiet", "--rerun"]);
    let rerun: Vec<f64> = begun(&json(&rerun));
    assert!(rerun.iter().all(|at| !other.contains(at)), "all measured again");
}

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
fn no_process_of_a_variant_outlives_its_measurement() {
    let weir = Weir::new();
    let output = study(&weir, &format!("{SHORT}{DAEMON}").replace("repeats = 2", "repeats = 1"));
    let found = json(&output);
    assert_eq!(cells(&found, "daemon")[0]["failure"], Value::Null, "{found:#}");
    assert!(
        cells(&found, "daemon")[0]["usage"]["processes_peak"].as_u64().unwrap() >= 2,
        "the child counts: {found:#}"
    );
    for name in ["main", "child"] {
        assert!(!is_alive(pid_in(&weir, name)), "{name}");
    }
}

#[test]
fn no_process_outlives_a_study_that_is_killed() {
    let weir = Weir::new();
    let text = format!("{SHORT}{DAEMON}").replace("200ms", "60s");
    weir.write("study.toml", text);
    let running = weir.start(&["study", "study.toml", "--quiet"]);
    let (main, child) = (pid_in(&weir, "main"), pid_in(&weir, "child"));
    assert!(is_alive(main) && is_alive(child));
    running.signal(Signal::KILL);
    drop(running);
    until("its supervisor to end everything", TIMEOUT, || !is_alive(main) && !is_alive(child));
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_tidy(&weir.path("results"));
}

#[test]
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
    assert!(is_alive(main) && is_alive(child), "no supervisor is left to end them");
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!is_alive(main) && !is_alive(child));
    assert_tidy(&weir.path("results"));
}

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
    let text = SHORT.replace("repeats = 2", "repeats = 1").replace("ready = \"10s\"", "ready = \"3s\"");
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
    assert!(failure(&found, "leaks").0.contains("ended for its memory"), "{found:#}");
}

#[test]
fn a_study_without_a_measurement_ends_with_2() {
    let weir = Weir::new();
    let output = study(&weir, &format!("{SHORT}\n[variants.a]\ncommand = [\"no-such-command\"]\n"));
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn clients_measure_themselves_against_their_own_service() {
    let weir = Weir::new();
    let text = r#"
repeats = 1
[services.upstream]
command = ["weir", "serve", "work", "--port", "{upstream.port}", "--delay", "{delay}", "--mix", "good=1"]
[variants.few]
kind = "client"
command = "weir load http://127.0.0.1:{upstream.port}/api/work -q -n 20 -c 1 --format json | tr -d '\n'; echo; printf 's,left\\n0,9\\n1,{n}\\n' > {out}/series.csv; echo '{\"answers\": {n}, \"pi\": {pi}, \"bad\": 0.5}'"
values = { n = 20 }
[variants.many]
kind = "client"
command = "echo '{\"answers\": {n}, \"bad\": 0}'"
values = { n = 40 }
[values]
pi = 3
[metrics]
answers = "higher"
bad = "lower fraction"
[sweep]
delay = ["1ms", "2ms"]
"#;
    let output = study(&weir, text);
    let found = json(&output);
    assert_eq!(output.code, 0, "{found:#}");
    assert_eq!(cells(&found, "few")[0]["metrics"]["answers"], 20.0, "{found:#}");
    assert_eq!(cells(&found, "few")[0]["metrics"]["pi"], 3.0);
    assert_eq!(cells(&found, "many")[1]["metrics"]["answers"], 40.0);
    let verdicts = found["verdicts"].as_array().unwrap();
    let of = |metric: &str| verdicts.iter().find(|of| of["metric"]["name"] == metric).map(|of| &of["effect"]);
    assert_eq!((of("answers"), of("bad")), (Some(&Value::from(2.0)), Some(&Value::from(-0.5))), "{found:#}");
    let plot = fs::read_to_string(weir.path("results/plots/left-over-s-at-delay-2ms.csv")).unwrap();
    assert_eq!(plot, "series,x,y,low,high,runs,doubtful\nfew,0,9,9,9,1,false\nfew,1,20,20,20,1,false\n");
}

#[test]
fn several_loads_run_at_the_same_time() {
    let weir = Weir::new();
    let more = "[loads.other]\nurl = \"http://127.0.0.1:{port}/api/work\"\nrate = 100\nduration = \"200ms\"\n";
    let output = study(&weir, &format!("{SHORT}{more}{GOOD}"));
    let found = json(&output);
    let cell = cells(&found, "good")[0];
    let read = |name: &str| {
        let text = fs::read_to_string(weir.path(&format!("results/runs/good/all/{name}/1.json"))).unwrap();
        weir::measure::Run::from_json(&text).unwrap()
    };
    let (work, other) = (read("work"), read("other"));
    assert_eq!(cell["loads"].as_array().unwrap().len(), 2);
    let apart = (work.manifest.started_unix_s - other.manifest.started_unix_s).abs();
    assert!(apart < work.duration_s, "{apart} s apart");
    assert_eq!(other.requests.total, 20);
}

#[test]
fn a_load_with_when_is_applied_and_judged_at_those_points_only() {
    let weir = Weir::new();
    let text = format!(
        "{SHORT}when = {{ case = [\"alone\", \"both\"] }}\n[loads.other]\nurl = \"http://127.0.0.1:{{port}}/api/work\"\n\
         requests = 20\nwhen = {{ case = \"both\" }}\n[sweep]\nn = [1, 2]\ncase = [\"alone\", \"both\"]\n{GOOD}{}",
        GOOD.replace("good]", "slow]").replace("1ms", "5ms")
    );
    let found = json(&study(&weir, &text));
    for cell in cells(&found, "good") {
        let applied: Vec<&str> =
            cell["loads"].as_array().unwrap().iter().map(|load| load["load"].as_str().unwrap()).collect();
        let both = cell["point"].as_array().unwrap().iter().any(|it| it[1] == "both");
        assert_eq!(applied, if both { vec!["work", "other"] } else { vec!["work"] }, "{cell:#}");
    }
    let judged = |load: &str, case: &str| {
        let of = |verdict: &&Value| verdict["load"] == load && verdict["point"]["case"] == case;
        found["verdicts"].as_array().unwrap().iter().filter(of).count()
    };
    assert!(judged("work", "alone") > 0 && judged("work", "both") > 0 && judged("other", "both") > 0);
    assert_eq!(judged("other", "alone"), 0);
    // One plot for each value of the second parameter, with a line per variant.
    let plot = |name: &str| fs::read_to_string(weir.path(&format!("results/plots/{name}.csv")));
    let alone = plot("work-successes-at-case-alone").unwrap();
    assert_eq!(alone.lines().count(), 1 + 2 * 2, "{alone}");
    assert!(plot("other-successes-at-case-both").is_ok() && plot("other-successes-at-case-alone").is_err());
}

#[test]
fn the_quick_table_overrides_the_duration_of_a_load() {
    let weir = Weir::new();
    weir.write("study.toml", format!("{SHORT}{GOOD}[quick]\nrepeats = 1\nloads.work.duration = \"1300ms\"\n"));
    let found = json(&weir.run(&["study", "study.toml", "--format", "json", "--quiet", "--quick"]));
    assert_eq!((cells(&found, "good").len(), &found["quick"]), (1, &true.into()));
    let run = fs::read_to_string(weir.path("results/runs/good/all/work/1.json")).unwrap();
    assert!(weir::measure::Run::from_json(&run).unwrap().duration_s >= 1.3);
}

#[test]
fn a_warm_up_ends_when_the_service_is_steady() {
    let weir = Weir::new();
    let text = SHORT.replace("warmup = \"0s\"", "warmup = \"20s\"").replace("repeats = 2", "repeats = 1");
    let found = json(&study(&weir, &format!("{text}{}", GOOD.replace("1ms", "10ms"))));
    let warmup = &cells(&found, "good")[0]["warmup"];
    // Eight intervals of a quarter of a second without disturbance; longer on a busy machine.
    assert!(warmup["duration_s"].as_f64().unwrap() >= 2.0, "{found:#}");
}

#[test]
fn the_example_works_and_does_not_overwrite_a_file() {
    let weir = Weir::new();
    assert_eq!(weir.run(&["study", "new"]).code, 0);
    let output = weir.run(&["study", "study.toml", "--check"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(output.stdout.contains("3 variants x 4 points x 10 rounds: 120 measurements: fine"), "{output:?}");
    let output = weir.run(&["study", "new"]);
    assert!(output.code == 2 && output.one_line().contains("study.toml"), "{output:?}");
    let output = weir.run(&["study", ".", "--check", "--quick"]);
    assert!(output.stdout.contains("3 variants x 3 points x 3 rounds"), "{output:?}");
}

/// Script that writes a Python package as a wheel.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("answer-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("answer.py", "ANSWER = 42\n")
    wheel.writestr("answer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n")
    wheel.writestr("answer-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("answer-1.0.dist-info/RECORD", "")
"#;

#[test]
fn python_packages_of_a_variant_are_installed_once_and_for_it_alone() {
    let weir = Weir::new();
    weir.write("wheel.py", WHEEL);
    let made = std::process::Command::new("python3").arg("wheel.py").current_dir(weir.path(".")).status();
    assert!(made.unwrap().success());
    let wheel = weir.path("answer-1.0-py3-none-any.whl");
    let text = format!(
        r#"
repeats = 1
[variants.with]
kind = "client"
command = ["python", "-c", "import answer; print('{{\"n\": %d}}' % answer.ANSWER)"]
requirements = ["{}"]
[variants.without]
kind = "client"
command = ["python3", "-c", "import answer"]
[metrics]
n = "higher"
"#,
        wheel.display()
    );
    weir.write("study.toml", text);
    let run = || {
        let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet", "--rerun"]);
        // Neither the network nor this machine's cache.
        command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
        support::Running::new(&mut command).finish()
    };
    let found = json(&run());
    assert_eq!(cells(&found, "with")[0]["metrics"]["n"], 42.0, "{found:#}");
    assert!(failure(&found, "without").1.contains("No module named 'answer'"), "{found:#}");
    // The saved environment is reused: without the wheel it could not be made again.
    fs::remove_file(&wheel).unwrap();
    let again = json(&run());
    assert_eq!(cells(&again, "with")[0]["metrics"]["n"], 42.0, "{again:#}");
}

#[test]
fn packages_that_cannot_be_installed_fail_the_variant() {
    let weir = Weir::new();
    weir.write(
        "study.toml",
        "repeats = 1\n[variants.a]\nkind = \"client\"\ncommand = \"true\"\nrequirements = [\"./no-such.whl\"]\n",
    );
    let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet"]);
    command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
    let output = support::Running::new(&mut command).finish();
    assert_eq!(output.code, 2, "nothing could be measured: {output:?}");
    let (reason, lines) = failure(&json(&output), "a");
    assert!(
        reason.contains("set-up: cannot install its packages") && lines.contains("no-such.whl"),
        "{reason}: {lines}"
    );
}
