//! Counts of scenarios against those of `weir serve shop`, which counts what it got: they are equal, whatever goes
//! wrong.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_measure::Run;
use weir_measure::run_steps::RunStep;
use weir_testing::{Serving, until};

/// Folder of the example scenarios.
const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios");
/// Timeout of everything that a test waits for.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Steps of the example scenario, and the shop's endpoints that their requests go to.
const STEPS: [(&str, &[&str]); 6] = [
    ("login", &["login", "home"]),
    ("items", &["items"]),
    ("item", &["item"]),
    ("cart", &["add"]),
    ("buy", &["buy"]),
    ("logout", &["logout"]),
];

fn scenario(name: &str) -> String {
    format!("{SCENARIOS}/{name}")
}

fn stats(shop: &Serving) -> Value {
    shop.get("/stats").json()
}

/// Number at a path of the statistics; 0 if it is not there.
fn number(stats: &Value, path: &str) -> u64 {
    stats.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

fn step<'a>(run: &'a Run, name: &str) -> &'a RunStep {
    run.steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step {name}: {:?}", run.steps))
}

/// Run of a scenario against a shop, and what the shop counted.
fn play(shop: &Serving, scenario: &str, args: &[&str]) -> (Run, Value) {
    let fixed = ["load", "-s", scenario, &shop.url, "--variable", "user=ann", "--format", "json"];
    let output = shop.weir.run(&[&fixed[..], args].concat());
    let run = output.json();
    // A run whose iterations have all failed is of no use; on a slow machine all of them may be unfinished.
    let iterations = run.iterations.as_ref().unwrap();
    let code = if iterations.ok == 0 && iterations.failed > 0 { 3 } else { 0 };
    assert_eq!(output.code, code, "{args:?}: {output:?}");
    (run, stats(shop))
}

/// Compares all counts of a run with those of the shop.
fn assert_equal_counts(run: &Run, stats: &Value, case: &str) {
    for (name, endpoints) in STEPS {
        let step = step(run, name);
        let sum = |path: &str| -> u64 {
            endpoints.iter().map(|endpoint| number(stats, &format!("/endpoints/{endpoint}/{path}"))).sum()
        };
        assert_eq!(step.requests, sum("requests"), "{case}: requests of {name}: {step:?} {stats}");
        for status in [200, 201, 204, 302, 401, 403, 404, 409, 429, 500] {
            let counted = step.status.get(&status.to_string()).copied().unwrap_or(0);
            assert_eq!(counted, sum(&format!("statuses/{status}")), "{case}: {status} of {name}: {step:?} {stats}");
        }
        let failed = |kind: &str| step.failures.get(kind).copied().unwrap_or(0);
        assert_eq!(failed("reset") + failed("closed"), sum("resets"), "{case}: resets of {name}: {step:?}");
        assert_eq!(failed("check"), sum("wrong_bodies"), "{case}: wrong bodies of {name}: {step:?}");
        assert_eq!(failed("5xx"), sum("statuses/500"), "{case}: {step:?}");
        assert_eq!(failed("4xx"), sum("statuses/429"), "{case}: {step:?}");
        assert_eq!(step.failed, step.failures.values().sum::<u64>(), "{case}: {step:?}");
        assert_eq!((step.ok + step.failed, step.unsent), (step.requests, 0), "{case}: {step:?}");
        assert_eq!(sum("client_closed") + sum("in_flight"), 0, "{case}: {stats}");
    }
    let iterations = run.iterations.as_ref().unwrap();
    assert_eq!(run.requests.total, number(stats, "/requests"), "{case}");
    assert_eq!(iterations.ok, number(stats, "/iterations"), "{case}: {iterations:?} {stats}");
    let began = iterations.total - iterations.dropped + iterations.unfinished;
    let logins = number(stats, "/endpoints/login/requests");
    // An iteration that is cut may not have sent its first request.
    assert!((logins..=logins + iterations.unfinished).contains(&began), "{case}: {iterations:?} {stats}");
    assert_eq!(number(stats, "/violations_total"), 0, "{case}: {stats}");
}

#[test]
fn every_count_of_20_runs_with_faults_is_that_of_the_shop() {
    const FAULTS: [&[&str]; 5] = [
        &["--mix", "error=5%,reset=3%,garbage=4%", "--wrong-price", "5%"],
        &["--mix", "limited=5%,reset=5%", "--gzip", "--close", "10%", "--delay", "0ms..4ms"],
        &["--redirect-login", "--mix", "error=4%,reset=2%", "--rotate-cookie"],
        &["--close", "100%", "--wrong-price", "10%", "--delay", "exponential:2ms"],
        &["--mix", "error=30%,garbage=20%,reset=20%", "--gzip", "--rotate-cookie"],
    ];
    const LOADS: [&[&str]; 4] = [
        &["-c", "8", "-n", "80"],
        &["-c", "5", "-d", "400ms"],
        &["--rate", "150", "-d", "500ms"],
        &["-c", "10", "-n", "60", "--think", "1ms..5ms"],
    ];
    let text = std::fs::read_to_string(scenario("shop.hurl")).unwrap();
    for seed in 0..20_usize {
        let (faults, load) = (FAULTS[seed % FAULTS.len()], LOADS[seed % LOADS.len()]);
        let seed = seed.to_string();
        let shop = Serving::start(&[&["shop", "--seed", &seed], faults].concat());
        let mut file = scenario("shop.hurl");
        if faults.contains(&"--redirect-login") {
            // The cookie is on the first response, and checks are made on the last one.
            let redirected = text.replace("POST /login\n", "POST /login\n[Options]\nlocation: true\n");
            let redirected = redirected.replace("cookie \"session\" exists\n", "");
            file = shop.weir.write("redirected.hurl", redirected).display().to_string();
        }
        let (run, stats) = play(&shop, &file, &[load, &["--seed", &seed]].concat());
        assert!(run.requests.total > 10, "{run:?}");
        assert_equal_counts(&run, &stats, &format!("seed {seed}, {faults:?}, {load:?}"));
    }
}

#[test]
fn a_wrong_price_fails_its_check_and_no_other() {
    let shop = Serving::start(&["shop", "--wrong-price", "20%", "--seed", "3"]);
    let (run, stats) = play(&shop, &scenario("shop.hurl"), &["-c", "4", "-n", "200"]);
    let wrong = number(&stats, "/endpoints/item/wrong_bodies");
    assert!(wrong > 10, "{stats}");
    for check in run.steps.iter().flat_map(|step| &step.checks) {
        let failed = if check.text.contains("{{price}}") { wrong } else { 0 };
        assert_eq!(check.failed, failed, "{check:?}");
        assert!(check.passed > 0, "{check:?}");
    }
}

/// Run of a changed example, in which a rule of the shop is broken; the step that breaks it, and its name.
fn broken(shop: &Serving, change: impl Fn(String) -> String, violation: &str, name: &str) {
    let text = std::fs::read_to_string(scenario("shop.hurl")).unwrap();
    let file = shop.weir.write("broken.hurl", change(text)).display().to_string();
    let (run, stats) = play(shop, &file, &["-c", "2", "-n", "10"]);
    assert_eq!(number(&stats, &format!("/violations/{violation}")), 10, "{stats}");
    assert_eq!(number(&stats, "/violations_total"), 10, "{stats}");
    let step = step(&run, name);
    assert_eq!((step.requests, step.failures.get("4xx")), (10, Some(&10)), "{step:?}");
    assert_eq!(run.iterations.as_ref().unwrap().failed, 10);
    assert!(step.checks.iter().any(|check| check.failed == 10), "{step:?}");
}

#[test]
fn a_wrong_token_a_lost_cookie_and_a_skipped_step_are_found() {
    let wrong_token = |text: String| text.replacen("Bearer {{token}}", "Bearer t1-0-0000000000000000", 1);
    broken(&Serving::start(&["shop"]), wrong_token, "wrong_token", "items");
    let shop = Serving::start(&["shop", "--host", "0.0.0.0"]);
    let port = shop.address.rsplit(':').next().unwrap().to_owned();
    // A cookie belongs to the host that set it.
    let other_host = |text: String| text.replace("GET /items?", &format!("GET http://127.0.0.2:{port}/items?"));
    broken(&shop, other_host, "lost_cookie", "items");
    let skipped = |text: String| {
        let (from, to) = (text.find("# @name item\n").unwrap(), text.find("# @name cart\n").unwrap());
        format!("{}{}", &text[..from], &text[to..])
    };
    broken(&Serving::start(&["shop"]), skipped, "skipped_step", "cart");
}

#[test]
fn a_cookie_that_each_response_replaces_is_kept() {
    let shop = Serving::start(&["shop", "--rotate-cookie"]);
    let (run, stats) = play(&shop, &scenario("shop.hurl"), &["-c", "6", "-n", "60"]);
    assert_equal_counts(&run, &stats, "rotated");
    assert_eq!(run.iterations.as_ref().unwrap().ok, 60);
}

#[test]
fn the_example_of_a_visitor_follows_the_redirect_with_its_cookie() {
    let shop = Serving::start(&["shop"]);
    let (run, stats) = play(&shop, &scenario("browse.hurl"), &["-c", "4", "-n", "40"]);
    assert_eq!(run.iterations.as_ref().unwrap().ok, 40, "{:?}", run.steps);
    assert_eq!((number(&stats, "/visitors"), number(&stats, "/endpoints/home/requests")), (40, 80));
    assert_eq!(step(&run, "first visit").requests, 80, "a redirect is a request of its step");
}

#[test]
fn the_example_of_an_upload_sends_a_form_and_a_file() {
    let service = Serving::start(&["httpbin"]);
    let run = service.weir.run(&[
        "load",
        "-s",
        &scenario("upload.hurl"),
        &service.url,
        "-c",
        "4",
        "-n",
        "40",
        "--format",
        "json",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = run.json();
    assert_eq!(run.iterations.as_ref().unwrap().ok, 40, "{:?}", run.steps);
    assert_eq!(run.requests.ok, 80);
}

#[test]
fn an_interrupt_ends_the_run_with_what_was_counted_so_far() {
    let shop = Serving::start(&["shop", "--delay", "2ms"]);
    let file = scenario("shop.hurl");
    let load = shop.weir.start(&[
        "load",
        "-s",
        &file,
        &shop.url,
        "--variable",
        "user=ann",
        "-c",
        "4",
        "-d",
        "5m",
        "--format",
        "json",
    ]);
    until("100 requests to arrive", TEST_TIMEOUT, || number(&stats(&shop), "/requests") > 100);
    load.interrupt();
    let output = load.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let run = output.json();
    let stats = stats(&shop);
    let (counted, arrived) = (run.requests.total, number(&stats, "/requests"));
    assert!(counted > 50 && (arrived - 4..=arrived).contains(&counted), "{counted} {stats}");
}

#[test]
fn a_host_that_refuses_connections_is_reported() {
    let shop = Serving::start(&["shop"]);
    let weir = weir_testing::Weir::new();
    let url = shop.url.clone();
    drop(shop);
    let output = weir.run(&["load", "-s", &scenario("shop.hurl"), &url, "--variable", "user=ann", "-n", "3"]);
    assert_eq!(output.code, 2, "{output:?}");
    let address = url.trim_start_matches("http://");
    assert_eq!(output.one_line(), format!("cannot connect to {address}: Connection refused"));
}

#[test]
fn a_redirect_to_a_host_that_the_file_does_not_name_needs_no_free_connection() {
    let (shop, other) = (Serving::start(&["shop"]), Serving::start(&["httpbin"]));
    let text = format!("POST {{{{other}}}}/echo\n`ok`\nHTTP 200\nGET {}/home\nHTTP 403\n", shop.url);
    let file = shop.weir.write("hosts.hurl", text).display().to_string();
    let other_host = format!("other={}", other.url);
    for load in [&["-c", "3", "-n", "30"][..], &["--rate", "200", "-d", "300ms"]] {
        let output = shop.weir.run(&[&["load", &file, "--variable", &other_host, "--format", "json"], load].concat());
        let run = output.json();
        assert_eq!((output.code, run.requests.failed), (0, 0), "{output:?}");
        assert!(run.iterations.as_ref().unwrap().ok >= 10, "{output:?}");
    }
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn service_times_of_steps_are_those_that_the_shop_measured() {
        let shop = Serving::start(&["shop", "--delay", "10ms..40ms", "--seed", "9"]);
        let (run, stats) = play(&shop, &scenario("shop.hurl"), &["-c", "4", "-n", "60"]);
        for (name, endpoints) in STEPS {
            let step = step(&run, name);
            for (quantile, measured) in [("p50", step.service_ms.p50.unwrap()), ("p90", step.service_ms.p90.unwrap())] {
                let path = format!("/endpoints/{}/service_ms/{quantile}", endpoints[0]);
                let truth = stats.pointer(&path).and_then(Value::as_f64).unwrap();
                // The network and a busy machine add to it, which wakes up the reader of a response as late as the sender
                // of a request; `make bench BENCH=truth` has the narrow bound.
                let most = truth + 30.0 + 2.0 * step.lateness_ms.max.unwrap();
                assert!(
                    (truth * 0.99 - 0.05..most).contains(&measured),
                    "{name} {quantile}: {measured} {truth} {most}"
                );
            }
        }
    }
}
