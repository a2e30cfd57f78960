//! Studies from beginning to end, through the real binary: what is measured, kept, resumed, cleaned up, and what becomes
//! of variants that fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Output, Weir, until};

const PATIENCE: Duration = Duration::from_secs(30);

/// A variant that answers after a millisecond.
const GOOD: &str = r#"
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "good=1"]
"#;

/// A short load, no warm-up, two rounds.
const SHORT: &str = r#"
repeats = 2
times = { warm_up = "0s", ready = "10s", stop = "2s" }
[loads.work]
url = "http://127.0.0.1:{port}/api/work"
connections = 2
duration = "200ms"
"#;

fn study(weir: &Weir, text: &str) -> Output {
    weir.write("study.toml", text);
    weir.run(&["study", "study.toml", "--format", "json", "--quiet"])
}

/// The findings, which are as the published schema says.
fn json(output: &Output) -> Value {
    let found = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    let schema: Value = serde_json::from_str(include_str!("../docs/study-result.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(&found).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    found
}

/// The measurements of a variant.
fn cells<'a>(found: &'a Value, variant: &str) -> Vec<&'a Value> {
    found["cells"].as_array().unwrap().iter().filter(|cell| cell["variant"] == variant).collect()
}

/// Why the first measurement of a variant failed, and what it said last.
fn failure(found: &Value, variant: &str) -> (String, String) {
    let failure = &cells(found, variant)[0]["failure"];
    let lines = failure["last_lines"].as_array().unwrap_or_else(|| panic!("{variant} did not fail: {found:#}"));
    let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
    (failure["why"].as_str().unwrap().to_owned(), lines.join("\n"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Whether a process runs; one that only waits for its parent to take note does not.
fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// The number that a variant has written to a file; waits for it.
fn pid_in(weir: &Weir, name: &str) -> u32 {
    let read = || fs::read_to_string(weir.path(name)).ok()?.trim().parse::<u32>().ok();
    until("a pid", PATIENCE, || read().is_some());
    read().unwrap()
}

/// What a study leaves behind: no note of what runs, and no half-written file.
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
    let main = |verdict: &&Value| verdict["main"] == true && verdict["point"]["connections"] == "4";
    let verdict = found["verdicts"].as_array().unwrap().iter().find(main).unwrap();
    assert_eq!((&verdict["base"], &verdict["other"]), (&"good".into(), &"slow".into()));
    // How much slower it was is the machine's affair: the verdict is about what was measured.
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
    for words in ["# Which?", "## work: good answers", "connections=4", "How it was measured", "plots/memory-peak.svg"]
    {
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
    let kept: Value = serde_json::from_str(&fs::read_to_string(results.join("study.json")).unwrap()).unwrap();
    assert_eq!(kept, found);
    assert_tidy(&results);
}

#[test]
fn what_the_schema_of_findings_says_is_closed_and_described() {
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
fn what_is_measured_is_kept_unless_its_definition_changes() {
    let weir = Weir::new();
    let begun =
        |found: &Value| cells(found, "good").iter().map(|cell| cell["started_unix_s"].as_f64().unwrap()).collect();
    let first: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}"))));
    let again: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}"))));
    assert_eq!(first, again, "nothing was measured again");
    let more: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}").replace("repeats = 2", "repeats = 3"))));
    assert_eq!((more.len(), &more[..2]), (3, &first[..]), "only what was missing");
    let other: Vec<f64> = begun(&json(&study(&weir, &format!("{SHORT}{GOOD}").replace("1ms", "2ms"))));
    assert!(other.iter().all(|at| !more.contains(at)), "all anew: {more:?} {other:?}");
    let fresh = weir.run(&["study", "study.toml", "--format", "json", "--quiet", "--fresh"]);
    let fresh: Vec<f64> = begun(&json(&fresh));
    assert!(fresh.iter().all(|at| !other.contains(at)), "all anew");
}

#[test]
fn an_interrupted_study_ends_with_130_and_the_same_command_goes_on() {
    let weir = Weir::new();
    weir.write("study.toml", format!("{SHORT}{GOOD}").replace("repeats = 2", "repeats = 6"));
    let running = weir.start(&["study", "study.toml", "--format", "json", "--quiet"]);
    let second = weir.path("results/cells/good/all/2/cell.json");
    until("two measurements", PATIENCE, || second.exists());
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let found = json(&output);
    let kept = cells(&found, "good").len();
    assert!((2..6).contains(&kept) && found["missing"] == 6 - kept, "{found:#}");
    assert_tidy(&weir.path("results"));
    let output = weir.run(&["study", "study.toml", "--format", "json", "--quiet"]);
    let whole = json(&output);
    assert_eq!((output.code, cells(&whole, "good").len()), (0, 6));
    assert_eq!(cells(&whole, "good")[..kept], cells(&found, "good")[..], "what was measured has been kept");
}

/// A variant that writes its number to a file, and has a child that leaves its session and its parent.
const DAEMON: &str = r#"
[variants.daemon]
command = "(setsid sh -c 'echo $$ > child; exec sleep 1000' &) ; until [ -s child ]; do sleep 0.01; done; echo $$ > main; exec weir serve work --port {port} --delay 1ms --mix good=1"
"#;

#[test]
fn nothing_of_a_variant_outlives_its_measurement() {
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
fn nothing_outlives_a_study_that_is_killed() {
    let weir = Weir::new();
    let text = format!("{SHORT}{DAEMON}").replace("200ms", "60s");
    weir.write("study.toml", text);
    let running = weir.start(&["study", "study.toml", "--quiet"]);
    let (main, child) = (pid_in(&weir, "main"), pid_in(&weir, "child"));
    assert!(is_alive(main) && is_alive(child));
    running.signal(Signal::KILL);
    drop(running);
    until("its guard to end everything", PATIENCE, || !is_alive(main) && !is_alive(child));
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_tidy(&weir.path("results"));
}

#[test]
fn the_next_start_ends_what_a_study_left_that_was_killed_with_its_guard() {
    let weir = Weir::new();
    weir.write("study.toml", format!("{SHORT}{DAEMON}").replace("200ms", "60s"));
    let running = weir.start(&["study", "study.toml", "--quiet"]);
    let (main, child) = (pid_in(&weir, "main"), pid_in(&weir, "child"));
    let stat = fs::read_to_string(format!("/proc/{main}/stat")).unwrap();
    let guard: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Halted, the study cannot see that its guard is gone before it is gone itself.
    running.signal(Signal::STOP);
    rustix::process::kill_process(rustix::process::Pid::from_raw(guard).unwrap(), Signal::KILL).unwrap();
    running.signal(Signal::KILL);
    drop(running);
    assert!(is_alive(main) && is_alive(child), "nobody is left to end them");
    let output = study(&weir, &format!("{SHORT}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!is_alive(main) && !is_alive(child));
    assert_tidy(&weir.path("results"));
}

#[test]
fn a_variant_that_fails_says_why_and_the_others_are_measured() {
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
[figures]
rate = "higher"
"#;
    let text = SHORT.replace("repeats = 2", "repeats = 1").replace("ready = \"10s\"", "ready = \"3s\"");
    let output = study(&weir, &format!("{text}{bad}{GOOD}"));
    assert_eq!(output.code, 0, "{output:?}");
    let found = json(&output);
    for (variant, why, said) in [
        ("missing", "there is no command 'no-such-command'", ""),
        ("never-ready", "never ready", "I wait for my database"),
        ("quits", "ended before it was ready: exit code 7", "no such table"),
        ("errors", "no good answer", ""),
        ("broken", "set-up", "no compiler"),
        ("client", "no number \"rate\"", ""),
    ] {
        let (is, lines) = failure(&found, variant);
        assert!(is.contains(why) && lines.contains(said), "{variant}: {is}: {lines}");
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
    // Far longer than a test may take.
    let text = SHORT.replace("repeats = 2", "repeats = 1").replace("200ms", "10m");
    weir.write("study.toml", format!("{text}{bad}"));
    let output = weir.run(&["study", "study.toml", "--format", "json", "--quiet"]);
    assert_eq!(output.code, 2, "nothing could be measured: {output:?}");
    let found = json(&output);
    let (why, said) = failure(&found, "dies");
    assert!(why.contains("ended in the middle: exit code 3") && said.contains("out of luck"), "{why}: {said}");
    assert!(failure(&found, "leaks").0.contains("ended for its memory"), "{found:#}");
}

#[test]
fn a_study_in_which_nothing_could_be_measured_ends_with_2() {
    let weir = Weir::new();
    let output = study(&weir, &format!("{SHORT}\n[variants.a]\ncommand = [\"no-such-command\"]\n"));
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn clients_measure_themselves_against_a_service_of_their_own() {
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
[figures]
answers = "higher"
bad = "lower share"
[sweep]
delay = ["1ms", "2ms"]
"#;
    let output = study(&weir, text);
    let found = json(&output);
    assert_eq!(output.code, 0, "{found:#}");
    assert_eq!(cells(&found, "few")[0]["figures"]["answers"], 20.0, "{found:#}");
    assert_eq!(cells(&found, "few")[0]["figures"]["pi"], 3.0);
    assert_eq!(cells(&found, "many")[1]["figures"]["answers"], 40.0);
    let verdicts = found["verdicts"].as_array().unwrap();
    let of = |metric: &str| verdicts.iter().find(|of| of["metric"]["name"] == metric).map(|of| &of["effect"]);
    assert_eq!((of("answers"), of("bad")), (Some(&Value::from(2.0)), Some(&Value::from(-0.5))), "{found:#}");
    let course = fs::read_to_string(weir.path("results/plots/left-over-s-at-delay-2ms.csv")).unwrap();
    assert_eq!(course, "series,x,y,low,high,runs,doubtful\nfew,0,9,9,9,1,false\nfew,1,20,20,20,1,false\n");
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
fn a_load_is_driven_where_the_file_says_so_and_judged_there_alone() {
    let weir = Weir::new();
    let text = format!(
        "{SHORT}when = {{ case = [\"alone\", \"both\"] }}\n[loads.other]\nurl = \"http://127.0.0.1:{{port}}/api/work\"\n\
         requests = 20\nwhen = {{ case = \"both\" }}\n[sweep]\nn = [1, 2]\ncase = [\"alone\", \"both\"]\n{GOOD}{}",
        GOOD.replace("good]", "slow]").replace("1ms", "5ms")
    );
    let found = json(&study(&weir, &text));
    for cell in cells(&found, "good") {
        let driven: Vec<&str> =
            cell["loads"].as_array().unwrap().iter().map(|load| load["load"].as_str().unwrap()).collect();
        let both = cell["point"].as_array().unwrap().iter().any(|it| it[1] == "both");
        assert_eq!(driven, if both { vec!["work", "other"] } else { vec!["work"] }, "{cell:#}");
    }
    let judged = |load: &str, case: &str| {
        let of = |verdict: &&Value| verdict["load"] == load && verdict["point"]["case"] == case;
        found["verdicts"].as_array().unwrap().iter().filter(of).count()
    };
    assert!(judged("work", "alone") > 0 && judged("work", "both") > 0 && judged("other", "both") > 0);
    assert_eq!(judged("other", "alone"), 0);
    // A plot for each value of the second parameter, with a line per variant.
    let plot = |name: &str| fs::read_to_string(weir.path(&format!("results/plots/{name}.csv")));
    let alone = plot("work-good-answers-at-case-alone").unwrap();
    assert_eq!(alone.lines().count(), 1 + 2 * 2, "{alone}");
    assert!(plot("other-good-answers-at-case-both").is_ok() && plot("other-good-answers-at-case-alone").is_err());
}

#[test]
fn the_table_of_a_quick_study_says_how_long_its_loads_are() {
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
    let text = SHORT.replace("warm_up = \"0s\"", "warm_up = \"20s\"").replace("repeats = 2", "repeats = 1");
    let found = json(&study(&weir, &format!("{text}{}", GOOD.replace("1ms", "10ms"))));
    let warm_up = &cells(&found, "good")[0]["warm_up"];
    // Eight stretches of a quarter of a second, if nothing disturbs; a busy machine may take longer.
    assert!(warm_up["took_s"].as_f64().unwrap() >= 2.0, "{found:#}");
}

#[test]
fn the_example_works_and_is_not_written_over_anything() {
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

/// Writes a Python package that says 42, as a wheel.
const WHEEL: &str = r#"
import zipfile
with zipfile.ZipFile("answer-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("answer.py", "ANSWER = 42\n")
    wheel.writestr("answer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: answer\nVersion: 1.0\n")
    wheel.writestr("answer-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr("answer-1.0.dist-info/RECORD", "")
"#;

#[test]
fn python_packages_of_a_variant_are_installed_once_and_are_its_own() {
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
[figures]
n = "higher"
"#,
        wheel.display()
    );
    weir.write("study.toml", text);
    let run = || {
        let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet", "--fresh"]);
        // Neither a network nor what this machine has in its cache.
        command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
        support::Running::new(&mut command).finish()
    };
    let found = json(&run());
    assert_eq!(cells(&found, "with")[0]["figures"]["n"], 42.0, "{found:#}");
    assert!(failure(&found, "without").1.contains("No module named 'answer'"), "{found:#}");
    // What is kept is not made again: it could not be.
    fs::remove_file(&wheel).unwrap();
    let again = json(&run());
    assert_eq!(cells(&again, "with")[0]["figures"]["n"], 42.0, "{again:#}");
}

#[test]
fn packages_that_cannot_be_had_are_why_a_variant_fails() {
    let weir = Weir::new();
    weir.write(
        "study.toml",
        "repeats = 1\n[variants.a]\nkind = \"client\"\ncommand = \"true\"\nrequirements = [\"./no-such.whl\"]\n",
    );
    let mut command = weir.command(&["study", "study.toml", "--format", "json", "--quiet"]);
    command.env("PIP_NO_INDEX", "1").env("XDG_CACHE_HOME", weir.path("cache"));
    let output = support::Running::new(&mut command).finish();
    assert_eq!(output.code, 2, "nothing could be measured: {output:?}");
    let (why, said) = failure(&json(&output), "a");
    assert!(why.contains("set-up: cannot install its packages") && said.contains("no-such.whl"), "{why}: {said}");
}
