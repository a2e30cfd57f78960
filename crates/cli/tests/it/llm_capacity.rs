//! Searches for the capacity of a language model's server, and of streams.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use weir_testing::{Serving, Weir};

/// A model of which a token takes 2 ms, and with eight requests at a time 16 ms.
const MODEL: &str = "llm --prefill 0ms --prefill-per-token 0ms --decode 2ms --jitter 0% --batch-effect 100% --output-tokens 4 --model m";

/// A search that ends after a few levels.
fn search(flags: &[&str]) -> (i32, Value) {
    let serving = Serving::start_line(MODEL);
    let url: &[&str] = &["llm", &serving.url, "--model", "m", "-q", "--input-tokens", "4", "--format", "json"];
    let output = Weir::new().run(&[url, flags, &["--step-time", "5s", "--precision", "100%"]].concat());
    (output.code, serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}")))
}

#[test]
fn rates_are_searched_under_percentiles_of_tokens() {
    // Objectives of each request are met at 99% without another word; here none is.
    let (code, found) = search(&["--capacity", "rate", "--goodput", "tpot:1us", "--from", "50", "--to", "50"]);
    assert_eq!((code, found["passes"].is_null()), (1, true), "{found}");
    assert_eq!(found["objectives"], json!(["goodput>99%"]));
    let few = ["--capacity", "rate", "--slo", "tpot.p50<5s", "--slo", "errors<20%", "--from", "50", "--to", "50"];
    let (code, found) = search(&few);
    assert_eq!(found["objectives"], json!(["tpot.p50<5s", "errors<20%"]));
    // Where others take the machine, a service may not keep up.
    assert_eq!(code, i32::from(found["passes"].is_null()), "{found}");
}
