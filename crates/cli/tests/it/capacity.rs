//! `weir capacity`: against real services, as short as may be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use serde_json::Value;
use weir_testing::{Reply, Server, Serving, Weir};

#[test]
fn an_interrupted_search_reports_its_bounds_so_far() {
    let server = Server::start(|_| Reply::ok("hello"));
    let weir = Weir::new();
    let url = server.url("/");
    let running =
        weir.start(&["capacity", &url, "--slo", "p99<5s", "--from", "5", "--step-time", "1h", "--precision", "0.5%"]);
    weir_testing::until("a step to begin", Duration::from_secs(30), || server.counts().requests > 12);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.code, 130);
    assert!(output.stdout.contains("interrupted"), "{output:?}");
}

#[test]
fn a_search_ends_when_its_time_is_over_with_the_reason() {
    let server = Server::hello();
    let args = ["--slo", "p99<5s", "--from", "5", "--step-time", "1h", "--max-time", "3s", "--format", "json", "-q"];
    let output = Weir::new().run(&[&["capacity", &server.url("/")], &args[..]].concat());
    let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    assert_eq!((value["interrupted"].as_bool(), output.code), (Some(false), 1), "{value:#}");
    assert_eq!(value["stop_reason"], "--max-time of 3s ran out", "{value:#}");
}

#[test]
fn a_step_too_short_for_the_rate_ends_the_search_above_one_a_second() {
    let serving = Serving::start(&["work", "--mix", "good=1", "--delay", "20ms"]);
    let url = format!("{}/api/work", serving.url);
    let args = ["--slo", "p99<1ms", "--from", "4", "--step-time", "3s", "--warmup", "1s", "--format", "json", "-q"];
    let output = Weir::new().run(&[&["capacity", &url], &args[..]].concat());
    let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    let loads: Vec<f64> =
        value["steps"].as_array().unwrap().iter().map(|step| step["load"].as_f64().unwrap()).collect();
    assert!(loads.iter().all(|load| *load >= 1.0) && loads.len() <= 8, "{loads:?}");
    assert!(value["stop_reason"].as_str().is_some_and(|why| !why.is_empty()), "{value:#}");
    assert_eq!(value["objectives"], serde_json::json!(["p99<1ms", "errors<1%"]));
}

#[test]
fn a_service_that_misses_its_objective_when_idle_ends_the_search_at_once() {
    let server = Server::start(|_| Reply::ok("late").after(Duration::from_millis(60)));
    let args = ["--slo", "p99<20ms", "--from", "5", "--step-time", "1h", "--format", "json", "-q"];
    let output = Weir::new().run(&[&["capacity", &server.url("/")], &args[..]].concat());
    let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    assert_eq!((output.code, value["steps"].as_array().map(Vec::len)), (1, Some(0)), "{value:#}");
    let reason = value["reason"].as_str().unwrap();
    assert!(reason.starts_with("the service misses p99<20ms without load (one request at a time: "), "{reason}");
    assert_eq!((&value["passes"], &value["limited_by"]), (&Value::Null, &"service".into()), "{value:#}");
}

#[test]
fn a_single_slow_response_to_a_single_user_does_not_end_a_search() {
    // The third of the first ten requests, as of a host that stalls once.
    let server = Server::start(|seen| {
        let delay = if seen.number == 2 { 300 } else { 0 };
        Reply::ok("fine").after(Duration::from_millis(delay))
    });
    let args = ["--slo", "p90<250ms", "--from", "20", "--to", "20", "--step-time", "4s", "--format", "json", "-q"];
    let output = Weir::new().run(&[&["capacity", &server.url("/")], &args[..]].concat());
    let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    assert!(!value["steps"].as_array().unwrap().is_empty(), "{value:#}");
    assert!(value["reason"].as_str().is_some_and(|why| !why.contains("without load")), "{value:#}");
}

#[test]
fn what_a_service_says_to_a_single_user_that_it_rejects_is_named_without_secrets() {
    let server = Server::start(|_| Reply::status(403, "{\"error\": \"lost_cookie\", \"token\": \"sesame\"}"));
    let output = Weir::new().run(&["capacity", &server.url("/"), "--slo", "p99<1s", "-q"]);
    let line = output.one_line();
    assert!(line.contains("status 403: {\"error\": \"lost_cookie\"") && !line.contains("sesame"), "{line}");
}

#[test]
fn what_cannot_be_searched_is_one_line_and_exit_code_2() {
    let server = Server::start(|_| Reply::status(500, "broken"));
    let (url, unreachable) = (server.url("/"), "http://127.0.0.1:9/".to_owned());
    let no_process = if cfg!(weir_portable) { "on Linux only" } else { "no process 4194305" };
    for (args, words) in [
        ([unreachable.as_str(), "--slo", "p99<1s"].as_slice(), "cannot connect"),
        (&[&url, "--slo", "p99<1s"], "no request of a single user succeeds: status 500: broken"),
        (&[&url, "--slo", "rate>5"], "is not an upper bound"),
        (&[&url, "--slo", "service.p99<1s"], "is not an upper bound"),
        (&[&url], "--slo"),
        (&[&url, "--slo", "p99<1s", "--from", "0"], "--from"),
        (&[&url, "--slo", "p99<1s", "--precision", "0%"], "--precision"),
        (&[&url, "--slo", "p99<1s", "--step-time", "1s"], "--step-time"),
        (&[&url, "--slo", "p99<1s", "--pid", "4194305"], no_process),
        (&[&url, "--slo", "p99<1s", "--closed", "-c", "5"], "--closed"),
    ] {
        let output = Weir::new().run(&[&["capacity"], args].concat());
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.one_line().contains(words), "{args:?}: {output:?}");
    }
}

#[test]
fn a_mix_gives_its_objectives_and_what_a_search_does_not_use_is_said() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("shop.hurl", "# @name list\nGET /items\nX-Shop: {{part}}\nHTTP 200\n");
    let mix = "[load]\nbase_url = \"BASE\"\nusers = 40\nduration = \"1m\"\ntimeout = \"20s\"\nheader = [\"X-Mix: yes\"]\n\
               [variables]\npart = 7\n[[scenario]]\nfile = \"shop.hurl\"\n[thresholds]\n\"p99\" = \"< 20s\"\n\
               \"shop: list: p99\" = \"< 20s\"\n\"checks\" = \"> 1%\"\nabort = \"errors > 90%\"\n";
    weir.write("mix.toml", mix.replace("BASE", &server.url("")));
    let search = ["capacity", "-s", "mix.toml", "--from", "20", "--to", "20", "--step-time", "3s", "--format", "json"];
    let output = weir.run(&search);
    let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", output.stderr));
    assert_eq!(value["objectives"], serde_json::json!(["p99 < 20s", "errors<1%"]), "{value:#}");
    let said = "the search ignores these entries of the mix file: users, duration, \"shop: list: p99 < 20s\", \"checks > 1%\", abort;";
    assert!(output.stderr.contains(said), "{}", output.stderr);
    assert!(server.seen().iter().all(|seen| seen.head.contains("X-Mix: yes")));
    weir.write("mix.toml", mix.replace("BASE", &server.url("")).replace("\"p99\" = \"< 20s\"\n", ""));
    let output = weir.run(&search);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{}", output.stderr);
    assert!(
        output.stderr.contains("--slo: give an objective to search for, e.g. --slo 'p99<200ms'"),
        "{}",
        output.stderr
    );
}
