//! Scenarios under faults: an outage in the middle, a service that is killed, a full disk, Ctrl-C.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use weir_measure::Run;
use weir_testing::{Relay, Reply, Server, Weir, until};

/// Timeout of everything that a test waits for.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Length of an outage.
const OUTAGE: Duration = Duration::from_secs(2);

/// Scenario of three steps that need each other.
fn shop() -> (Server, Weir) {
    let server = Server::start(|_| Reply::ok(r#"{"id": 123}"#));
    let folder = Weir::new();
    let step = |name: &str, path: &str| format!("# @name {name}\nGET {path}\nHTTP 200\n");
    let capture = "[Captures]\nid: jsonpath \"$.id\"\n";
    let text = [step("login", "/login"), capture.into(), step("item", "/items/{{id}}"), step("buy", "/buy")].join("\n");
    folder.write("shop.hurl", text);
    (server, folder)
}

/// Requests of each step that the service got.
fn seen(server: &Server) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::from([("login", 0), ("item", 0), ("buy", 0)]);
    for seen in server.seen() {
        let path = seen.line().split(' ').nth(1).unwrap_or_default().to_owned();
        let step = match path.as_str() {
            "/login" => "login",
            "/items/123" => "item",
            "/buy" => "buy",
            other => panic!("a request for {other}, which no step makes"),
        };
        *counts.get_mut(step).unwrap() += 1;
    }
    counts
}

/// Compares the counts of each step with those of the service: a request whose connection ended may have arrived.
fn assert_counts(run: &Run, server: &Server) {
    let seen = seen(server);
    for step in &run.steps {
        let lost: u64 = ["closed", "reset"].iter().map(|kind| step.failures.get(*kind).copied().unwrap_or(0)).sum();
        let got = seen[step.name.as_str()];
        // Ctrl-C cuts requests off that have arrived.
        let most = step.ok + lost + run.requests.unfinished;
        assert!((step.ok..=most).contains(&got), "{}: {got} of {step:?}", step.name);
        assert_eq!(step.requests, step.ok + step.failures.values().sum::<u64>());
        assert_eq!(step.unsent, 0);
    }
    let failed: u64 = run.steps.iter().map(|step| step.failed).sum();
    let iterations = run.iterations.as_ref().unwrap();
    assert_eq!(iterations.failed - iterations.dropped, failed, "a failed step ends its iteration");
    for step in &run.steps {
        assert_eq!(step.series.iter().map(|point| point.ok).sum::<u64>(), step.ok, "{:?}", step.series);
        assert_eq!(step.series.iter().map(|point| point.failed).sum::<u64>(), step.failed, "{:?}", step.series);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "an outage has a length; nothing is waited for")]
fn users_go_on_after_an_outage_and_every_request_is_counted() {
    let closed = ["--users", "5", "--think", "5ms"];
    let open = ["--rate", "100", "-c", "50", "--timeout", "5s"];
    // The users of the closed loop need a new connection each.
    for (loop_flags, connections) in [(&closed[..], 5), (&open, 1)] {
        let (server, folder) = shop();
        let mut relay = Relay::to(&server.address());
        let base = relay.url("");
        let args = ["load", base.as_str(), "-s", "shop.hurl", "-d", "10m", "--format", "json"];
        let running = folder.start(&[&args[..], loop_flags].concat());
        until("requests before the outage", TEST_TIMEOUT, || server.requests() > 60);
        relay.cut();
        thread::sleep(OUTAGE);
        let before = server.counts();
        relay.restore();
        until("requests after the outage", TEST_TIMEOUT, || {
            let now = server.counts();
            now.connections >= before.connections + connections && now.requests > before.requests + 60
        });
        running.interrupt();
        let output = running.finish();
        assert_eq!(output.code, 130, "{}", output.stderr);
        let run = output.json();
        assert!(run.interrupted && run.steps.iter().all(|step| step.ok > 0), "{:?}", run.steps);
        assert!(run.steps[0].failures.get("connect").is_some_and(|refused| *refused > 0), "{:?}", run.steps[0]);
        drop(relay);
        assert_counts(&run, &server);
    }
}

#[test]
fn a_service_that_is_killed_ends_iterations_and_not_the_run() {
    let (server, folder) = shop();
    let mut relay = Relay::to(&server.address());
    let base = relay.url("");
    let args =
        ["load", base.as_str(), "-s", "shop.hurl", "-c", "5", "-n", "400", "--think", "10ms", "--format", "json"];
    let running = folder.start(&args);
    until("some requests", TEST_TIMEOUT, || server.requests() > 60);
    relay.cut();
    let output = running.finish();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let run = output.json();
    let iterations = run.iterations.as_ref().unwrap();
    assert_eq!((iterations.total, iterations.unfinished, run.interrupted), (400, 0, false));
    assert!(iterations.ok > 0 && iterations.failed > 0 && !run.trust.ok, "{iterations:?}");
    assert_counts(&run, &server);
}

#[test]
fn a_full_disk_is_one_line_and_exit_code_2_after_the_whole_run() {
    for flag in ["--jtl", "--out", "--csv", "--csv-steps", "--html"] {
        let (server, folder) = shop();
        let base = server.url("");
        let output = folder.run(&["load", &base, "-s", "shop.hurl", "-n", "20", "-c", "2", "-q", flag, "/dev/full"]);
        assert_eq!(output.code, 2, "{flag}");
        // What is written while the load goes on counts its lines.
        let lost = if flag == "--jtl" { "60 of 60 lines were lost: " } else { "" };
        assert_eq!(output.one_line(), format!("cannot write /dev/full: {lost}No space left on device"), "{flag}");
        assert!(output.stdout.contains("60 ok"), "{flag}: the report is there: {}", output.stdout);
        assert_eq!(seen(&server), BTreeMap::from([("login", 20), ("item", 20), ("buy", 20)]));
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_in_every_file() {
    let (server, folder) = shop();
    let base = server.url("");
    let files = ["--out", "run.json", "--jtl", "run.jtl", "--csv-steps", "steps.csv", "--html", "run.html"];
    let args =
        ["load", base.as_str(), "-s", "shop.hurl", "-c", "3", "-d", "10m", "--think", "20ms", "--format", "json"];
    let running = folder.start(&[&args[..], &files].concat());
    until("some requests", TEST_TIMEOUT, || server.requests() > 40);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130, "{}", output.stderr);
    let run = output.json();
    assert!(run.interrupted && run.iterations.as_ref().unwrap().unfinished <= 3, "{:?}", run.iterations);
    assert_counts(&run, &server);
    assert_eq!(Run::from_json(&folder.read("run.json")).unwrap(), run);
    let log = folder.read("run.jtl");
    assert_eq!(log.lines().count() as u64 - 1, run.requests.total);
    let urls = |path: &str| log.lines().filter(|line| line.contains(&format!(",{base}{path},"))).count() as u64;
    let base_urls = ["/login", "/items/{{id}}", "/buy"].map(urls);
    assert_eq!(base_urls.to_vec(), run.steps.iter().map(|step| step.requests).collect::<Vec<_>>());
    let table = folder.read("steps.csv");
    assert!(table.lines().nth(3).unwrap().starts_with(&format!("shop,buy,{},", run.steps[2].requests)), "{table}");
    assert!(folder.read("run.html").contains("Interrupted"));
}
