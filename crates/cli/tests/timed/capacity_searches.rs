//! Searches of `weir capacity` and `weir llm --capacity` for loads that are known by construction.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Serving, Weir};

use super::recovery_setting::SERVICE;

/// A model of which a token takes 2 ms, and with eight requests at a time 16 ms.
const MODEL: &str = "llm --prefill 0ms --prefill-per-token 0ms --decode 2ms --jitter 0% --batch-effect 100% --output-tokens 4 --model m";

#[test]
#[cfg_attr(weir_portable, ignore = "CPU is sampled on Linux only")]
fn a_service_of_few_slots_is_bracketed_and_its_cpu_is_seen() {
    // How close the bounds are is for simulations; a busy machine is late.
    let serving = Serving::start(&SERVICE);
    let url = format!("{}/api/work", serving.url);
    let weir = Weir::new();
    let pid = serving.pid().to_string();
    let args = ["--slo", "p99<2s", "--from", "60", "--to", "400", "--step-time", "4s", "--precision", "50%"];
    let output_args = ["--pid", &pid, "--format", "json", "--out", "saved.json", "-q"];
    let output = weir.run(&[&["capacity", &url], &args[..], &output_args].concat());
    assert_eq!(weir.read("saved.json"), output.stdout);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{value:#}");
    let (passes, fails) = (value["passes"].as_f64().unwrap(), value["fails"].as_f64().unwrap());
    assert!(passes < 115.0 && fails > 90.0 && fails <= 400.0, "{value:#}");
    assert!(value["reason"].as_str().is_some_and(|why| !why.is_empty()));
    let steps = value["steps"].as_array().unwrap();
    assert!(steps.len() >= 2 && steps.iter().all(|step| step["service_cores"].is_number()), "{value:#}");
}

#[test]
fn users_are_searched_in_whole_numbers_and_growth_is_fitted() {
    let serving = Serving::start(&SERVICE);
    let url = format!("{}/api/work", serving.url);
    let args = ["--closed", "--slo", "p50<70ms", "--step-time", "3s", "--to", "64", "--format", "json", "-q"];
    let output = Weir::new().run(&[&["capacity", &url], &args[..]].concat());
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    // n users share 2 slots: a request takes n x 10 ms, so 6 pass and 8 do not.
    let (passes, fails) = (value["passes"].as_f64().unwrap(), value["fails"].as_f64().unwrap());
    assert!((4.0..8.0).contains(&passes) && fails > passes && fails <= 16.0, "{value:#}");
    assert_eq!((passes.fract(), fails.fract()), (0.0, 0.0));
    assert!(value["usl"]["per_user"].as_f64().is_some_and(|rate| (20.0..60.0).contains(&rate)), "{value:#}");
}

#[test]
fn concurrency_is_searched_under_the_goodput_of_requests() {
    let serving = Serving::start_line(MODEL);
    let model = ["llm", &serving.url, "--model", "m", "-q", "--input-tokens", "4", "--format", "json"];
    let goodput = ["--capacity", "concurrency", "--goodput", "tpot:12ms", "--slo", "goodput>50%"];
    let levels = ["--from", "2", "--to", "16", "--step-time", "5s", "--precision", "100%"];
    let output = Weir::new().run(&[&model[..], &goodput, &levels].concat());
    let found: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(output.code, 0, "{found}");
    let bounds = [&found["passes"], &found["fails"]].map(|load| load.as_f64().unwrap());
    assert!((2.0..8.0).contains(&bounds[0]) && (4.0..=8.0).contains(&bounds[1]), "{found}");
    assert!(found["reason"].as_str().unwrap().starts_with("goodput>50%: goodput "), "{}", found["reason"]);
}

#[test]
fn gaps_of_a_stream_are_objectives_of_a_search() {
    let serving = Serving::start(&["stream", "--events", "5", "--gap", "20ms"]);
    let flags = ["-q", "--format", "json", "--slo", "gap.p50<5ms", "--step-time", "3s", "--from", "8", "--to", "8"];
    let output =
        Weir::new().run(&[&["capacity", &format!("{}/sse", serving.url), "--stream", "--closed"], &flags[..]].concat());
    assert_eq!(output.code, 1, "{output:?}");
    for words in ["misses gap.p50<5ms without load", "p50 gap between events "] {
        assert!(output.stdout.contains(words), "{}", output.stdout);
    }
}
