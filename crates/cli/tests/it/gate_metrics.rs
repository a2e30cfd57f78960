//! Latency histograms by route and upstream, and hedges by outcome.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Gate, Reply, Server, Serving, Weir};

/// A sample, by its name and labels.
fn sample(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn latencies_have_histograms_and_hedges_outcomes() {
    let held = Gate::default();
    // The first attempt of each call hangs, and its hedge responds; a third path fails.
    let server = Server::start({
        let held = held.clone();
        move |seen| match (seen.line().split(' ').nth(1), seen.number % 2) {
            (Some("/hedged"), 0) => Reply::nothing().wait_for(&held),
            (Some("/fails"), _) => Reply::status(503, ""),
            _ => Reply::ok("hello"),
        }
    });
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        format!(
            "upstreams.backend.urls = [\"{}\"]\n[policies.hedged]\nhedge = [{{ after = \"100ms\" }}]\nbudget = \"none\"\n\
             [[routes]]\nmatch = {{ path = \"/hedged\" }}\npolicy = \"hedged\"\n\
             [[routes]]\nmatch = {{ path = \"/fails\" }}\npolicy = \"hedged\"\n\
             [[routes]]\nmatch = {{ path = \"/plain\" }}\n",
            server.url("")
        ),
    );
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    for _ in 0..3 {
        assert_eq!(gate.get("/hedged").text(), "hello");
    }
    assert_eq!(gate.get("/plain").text(), "hello");
    assert_eq!(gate.get("/fails").status, 503);
    let metrics = gate.get("/metrics").text().to_owned();
    for (route, calls) in [("/hedged", 3.0), ("/plain", 1.0), ("/fails", 1.0)] {
        assert_eq!(sample(&metrics, &format!("weir_gate_call_seconds_count{{route=\"{route}\"}}")), calls);
        let bucket = |bound: &str| format!("weir_gate_call_seconds_bucket{{le=\"{bound}\",route=\"{route}\"}}");
        assert_eq!(sample(&metrics, &bucket("+Inf")), calls, "{route}");
        assert!(sample(&metrics, &bucket("0.0005")) <= sample(&metrics, &bucket("10.0")));
        assert!(sample(&metrics, &format!("weir_gate_call_seconds_sum{{route=\"{route}\"}}")) > 0.0);
    }
    // Three hedges and a plain attempt succeeded; of the call that failed, the attempt and its hedge.
    assert_eq!(sample(&metrics, "weir_gate_attempt_seconds_count{upstream=\"backend\"}"), 6.0);
    let hedges = |outcome: &str| {
        sample(&metrics, &format!("weir_gate_hedges_total{{upstream=\"backend\",outcome=\"{outcome}\"}}"))
    };
    assert_eq!((hedges("won"), hedges("failed"), hedges("cancelled")), (3.0, 1.0, 0.0));
    held.open();
    assert_eq!(gate.stop().code, 0);
}
