//! Measurements, saved results, loads and warm-up.

use std::fs;

use serde_json::Value;

use super::{GOOD, SHORT, assert_tidy, cells, counted, json, study};
use weir_testing::Weir;

#[test]
#[cfg_attr(weir_portable, ignore = "CPU is sampled on Linux only")]
fn variants_are_measured_at_each_point_in_each_round_and_reported() {
    let weir = Weir::new();
    let text = SHORT
        .replace("connections = 2", "connections = \"{connections}\"")
        .replace("repeats = 2", "repeats = 3")
        .replace("duration = \"200ms\"", "requests = 800");
    let slow = GOOD.replace("good]", "slow]").replace("1ms", "5ms");
    let output = study(&weir, &format!("question = \"Which?\"\n{text}\n[sweep]\nconnections = [1, 4]\n{GOOD}{slow}"));
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    let found = json(&output);
    for variant in ["good", "slow"] {
        let cells = cells(&found, variant);
        assert_eq!(cells.len(), 6);
        for cell in cells {
            assert_eq!(cell["failure"], Value::Null, "{cell:#}");
            assert!(cell["loads"][0]["rate_per_s"].as_f64().unwrap() > 0.0, "{cell:#}");
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
        for ending in [".svg", ".csv"] {
            assert!(results.join(picture.replace(".svg", ending)).is_file(), "{picture}: {ending}");
        }
    }
    let run = results.join("runs/slow/connections=4/work/3.json");
    weir_measure::Run::from_json(&fs::read_to_string(run).unwrap()).unwrap();
    let saved: Value = serde_json::from_str(&fs::read_to_string(results.join("study.json")).unwrap()).unwrap();
    assert_eq!(saved, found);
    assert_tidy(&results);
}

#[test]
fn the_schema_of_findings_is_closed_and_has_descriptions() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../../../docs/schema/study-result.schema.json")).unwrap();
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
    let text = format!("{}{GOOD}", counted());
    let begun =
        |found: &Value| cells(found, "good").iter().map(|cell| cell["started_unix_s"].as_f64().unwrap()).collect();
    let first: Vec<f64> = begun(&json(&study(&weir, &text)));
    let again: Vec<f64> = begun(&json(&study(&weir, &text)));
    assert_eq!(first, again, "nothing was measured again");
    let more: Vec<f64> = begun(&json(&study(&weir, &text.replace("repeats = 2", "repeats = 3"))));
    assert_eq!((more.len(), &more[..2]), (3, &first[..]), "only what was missing");
    let other: Vec<f64> = begun(&json(&study(&weir, &text.replace("1ms", "2ms"))));
    assert!(other.iter().all(|at| !more.contains(at)), "all measured again: {more:?} {other:?}");
    let rerun = weir.run(&["study", "study.toml", "--format", "json", "--quiet", "--rerun"]);
    let rerun: Vec<f64> = begun(&json(&rerun));
    assert!(rerun.iter().all(|at| !other.contains(at)), "all measured again");
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
    assert_eq!(plot, "series,x,y,low,high,runs,untrusted\nfew,0,9,9,9,1,false\nfew,1,20,20,20,1,false\n");
}

#[test]
fn several_loads_run_at_the_same_time() {
    let weir = Weir::new();
    let more = "[loads.other]\nurl = \"http://127.0.0.1:{port}/api/work\"\nrate = 100\nduration = \"200ms\"\n";
    // Longer than a machine may stand still between the starts of two threads.
    let text = SHORT.replace("200ms", "5s").replace("repeats = 2", "repeats = 1");
    let output = study(&weir, &format!("{text}{more}{GOOD}"));
    let found = json(&output);
    let cell = cells(&found, "good")[0];
    let read = |name: &str| {
        let text = fs::read_to_string(weir.path(&format!("results/runs/good/all/{name}/1.json"))).unwrap();
        weir_measure::Run::from_json(&text).unwrap()
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
        "{}when = {{ case = [\"alone\", \"both\"] }}\n[loads.other]\nurl = \"http://127.0.0.1:{{port}}/api/work\"\n\
         requests = 20\nwhen = {{ case = \"both\" }}\n[sweep]\nn = [1, 2]\ncase = [\"alone\", \"both\"]\n{GOOD}{}",
        counted(),
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
    let run = fs::read_to_string(weir.path("results-quick/runs/good/all/work/1.json")).unwrap();
    assert!(weir_measure::Run::from_json(&run).unwrap().duration_s >= 1.3);
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
