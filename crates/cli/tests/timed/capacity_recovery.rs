//! `weir capacity --recovery`: services whose fate is known by construction, alone and behind the gateway. The judgement
//! has its exact tests in virtual time; these are about the load, its clients and its phases.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Reply, Server, Serving, Weir};

use super::recovery_setting::{RETRY_STORM, SERVICE, test_recovery};

/// At 50/s, with a spike that leaves 2 s of work, which is done within 4 s.
const PATIENT: [&str; 8] = ["--load", "50", "--trigger", "spike:4x,2s", "--retries", "0", "--timeout", "30s"];

fn requests_per_call(value: &Value, phase: &str) -> f64 {
    let phases = value["recovery"]["phases"].as_array().unwrap();
    let found = phases.iter().find(|known| known["phase"] == phase);
    found.and_then(|phase| phase["requests_per_call"].as_f64()).unwrap_or_else(|| panic!("{phase}: {value:#}"))
}

#[test]
fn the_same_service_recovers_from_clients_that_do_not_retry() {
    let serving = Serving::start(&SERVICE);
    let (value, output) = test_recovery(&format!("{}/api/work", serving.url), &PATIENT);
    // What waits is served in time, more than arrives; a queue that drains is waited for.
    assert_eq!((value["recovery"]["verdict"].as_str(), output.code), (Some("recovered"), 0), "{value:#}");
    assert!(value["recovery"]["recovery_s"].as_u64().is_some_and(|s| s >= 1), "{value:#}");
    assert_eq!(value["recovery"]["rest"], Value::Null);
}

#[test]
fn a_service_that_works_for_clients_that_have_gone_is_metastable_also_behind_a_gateway_without_its_policies() {
    let (alone, behind) = (Serving::start(&SERVICE), Serving::start(&SERVICE));
    let plain = Serving::gate(&["--upstream", &behind.url, "--max-in-flight", "none"]);
    let urls = [&alone, &plain].map(|serving| format!("{}/api/work", serving.url));
    // Both at the same time: they wait for most of half a minute.
    let tests = std::thread::scope(|scope| {
        urls.each_ref()
            .map(|url| scope.spawn(move || test_recovery(url, &RETRY_STORM)))
            .map(|test| test.join().unwrap())
    });
    for (value, output) in &tests {
        let verdict = value["recovery"]["verdict"].as_str();
        assert_eq!((verdict, output.code), (Some("metastable"), 1), "{value:#}");
    }
    let (value, recovery) = (&tests[0].0, &tests[0].0["recovery"]);
    assert_eq!((&recovery["recovery_s"], &recovery["load_per_s"]), (&Value::Null, &45.0.into()));
    assert!(recovery["rest"]["duration_s"].as_u64().is_some_and(|s| s > 0), "{value:#}");
    // Each call is three requests, which is what keeps it down.
    let [before, after] = ["baseline", "observation"].map(|phase| requests_per_call(value, phase));
    assert!(before < 1.5 && after > 1.5, "{value:#}");
    assert_eq!((&value["passes"], value["steps"].as_array().map(Vec::len)), (&Value::Null, Some(0)));
}

#[test]
fn a_command_disturbs_the_service_and_the_report_says_when_it_was_as_before() {
    // While the file is there, every call fails, as with a dependency that is away.
    let weir = Weir::new();
    let flag = weir.path("away");
    let away = flag.clone();
    let server = Server::start(move |_| if away.exists() { Reply::status(503, "away") } else { Reply::ok("hello") });
    let (path, url) = (flag.display(), server.url("/"));
    let command = format!("command:touch {path}; until [ -e {path}.seen ]; do sleep 0.1; done; rm {path}");
    let seen = weir.path("away.seen");
    let args = [
        "capacity",
        &url,
        "--recovery",
        "--load",
        "40",
        "--retries",
        "1",
        "--trigger",
        &command,
        "--step-time",
        "9s",
        "--html",
        "report.html",
        "--out",
        "saved.json",
    ];
    let running = weir.start(&args);
    weir_testing::until("the trigger", std::time::Duration::from_secs(60), || flag.exists());
    let failing_since = server.counts().requests;
    weir_testing::until("retries", std::time::Duration::from_secs(60), || {
        server.counts().requests > failing_since + 200
    });
    std::fs::write(&seen, "").unwrap();
    let output = running.finish();
    assert_eq!(output.code, 0, "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].ends_with(" · open loop") && lines[1].starts_with("recovered "), "{}", output.stdout);
    assert!(output.stdout.contains("they give up a request after 1s, and retry once"), "{}", output.stdout);
    assert!(output.stderr.contains("recovery: trigger at 40.0/s"), "{}", output.stderr);
    let value: Value = serde_json::from_str(&weir.read("saved.json")).unwrap();
    let trigger = requests_per_call(&value, "trigger");
    assert!((1.3..=2.1).contains(&trigger), "{trigger}: {value:#}");
    assert!(weir.read("report.html").contains("Recovered "));
}
