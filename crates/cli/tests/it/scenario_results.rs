//! Results of scenarios in all formats, of real runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;

use serde_json::Value;
use weir_testing::{Reply, Server, Weir};

/// Run of a call as JSON, whatever its exit code.
fn run_of(folder: &Weir, args: &[&str]) -> Value {
    let output = folder.run(&[&["load", "--format", "json"], args].concat());
    serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {}", output.stderr))
}

/// Service whose every fourth order fails.
fn shop() -> Server {
    Server::start(|seen| match seen.line().split(' ').nth(1) {
        Some("/order") if seen.number % 4 == 3 => {
            Reply::raw("HTTP/1.1 201 Created\r\nset-cookie: session=secret\r\ncontent-length: 8\r\n\r\nsold out")
        }
        Some("/order") => Reply::raw("HTTP/1.1 201 Created\r\ncontent-length: 7\r\n\r\nordered"),
        _ => Reply::ok("hello"),
    })
}

fn scenario(server: &Server) -> String {
    let url = server.url("");
    let url = url.trim_end_matches('/');
    format!(
        "# @name items\nGET {url}/items\nHTTP 200\n\n# @name order\nPOST {url}/order\nHTTP 201\n[Asserts]\nbody == \"ordered\"\n"
    )
}

#[test]
fn every_format_has_the_steps_and_their_counts_are_those_of_the_service() {
    let (server, folder) = (shop(), Weir::new());
    folder.write("shop.hurl", scenario(&server));
    let files = ["-o", "run.json", "--jtl", "run.jtl", "--csv-steps", "steps.csv", "--html", "run.html"];
    let output = folder.run(&[&["load", "-s", "shop.hurl", "-n", "40", "-c", "2"], &files[..]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    let run: Value = serde_json::from_str(&read("run.json")).unwrap();
    let orders = server.seen().iter().filter(|seen| seen.line().contains("/order")).count();
    let sold_out = run["steps"][1]["failed"].as_u64().unwrap();
    assert!(sold_out > 0);
    assert_eq!(run["steps"][1]["requests"], orders);
    assert_eq!(run["steps"][1]["failures"], serde_json::json!({ "check": sold_out }));
    assert_eq!(run["scenarios"][0]["name"], "shop");
    assert_eq!((&run["scenarios"][0]["iterations"], &run["scenarios"][0]["failed"]), (&40.into(), &sold_out.into()));
    assert_eq!((&run["iterations"]["total"], &run["iterations"]["unfinished"]), (&40.into(), &0.into()));
    let first = output.stdout.lines().next().unwrap();
    assert!(first.contains("REQUESTS FAILED") && output.stdout.contains("OF CHECKS FAILED"), "{}", output.stdout);
    assert!(output.stdout.lines().any(|line| line.starts_with("order ")), "{}", output.stdout);
    let log = read("run.jtl");
    let failed: Vec<&str> = log.lines().filter(|line| line.contains(",false,")).collect();
    assert_eq!(failed.len() as u64, sold_out);
    assert!(failed.iter().all(|line| line.contains(",order,201,") && line.contains("sold out")), "{failed:?}");
    assert_eq!(log.lines().filter(|line| line.contains(",items,200,")).count(), 40);
    let table = read("steps.csv");
    assert!(table.lines().nth(2).unwrap().starts_with(&format!("shop,order,40,{},{sold_out},", 40 - sold_out)));
    let page = read("run.html");
    assert!(page.contains("First failures") && page.contains("sold out"));
    for text in [&output.stdout, &read("run.json"), &page] {
        assert!(!text.contains("session=secret"), "a secret in a report");
    }
    let again = folder.run(&["report", "run.json", "--format", "jmeter"]);
    assert!(again.stdout.lines().any(|line| line.starts_with("order ")), "{}", again.stdout);
}

#[test]
fn a_mix_has_its_iterations_by_scenario_and_a_plain_run_has_no_field_of_scenarios() {
    let (server, folder) = (shop(), Weir::new());
    let get = |path: &str| format!("# @name get\nGET {}\n", server.url(path));
    folder.write("a.hurl", get("/a"));
    folder.write("b.hurl", get("/b"));
    let run = run_of(&folder, &["-s", "a.hurl", "-s", "b.hurl", "-n", "60", "-c", "2"]);
    let seen = server.seen();
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        let count = seen.iter().filter(|seen| seen.line().contains(&format!("/{name} "))).count();
        assert!(count > 0);
        let (scenario, step) = (&run["scenarios"][index], &run["steps"][index]);
        assert_eq!((&scenario["name"], &scenario["iterations"]), (&name.into(), &count.into()));
        assert_eq!((&step["name"], &step["scenario"]), (&format!("{name}: get").into(), &name.into()));
        assert_eq!(step["requests"], count);
    }
    let plain = run_of(&folder, &[&server.url("/"), "-n", "5", "-c", "1"]);
    for key in ["iterations", "scenarios", "steps"] {
        assert!(plain.get(key).is_none(), "{key}");
    }
}

#[test]
fn a_run_whose_iterations_all_fail_says_so_first_and_ends_with_code_3() {
    let (server, folder) = (shop(), Weir::new());
    folder.write("a.hurl", format!("GET {0}\n\nGET {0}\nHTTP 404\n", server.url("/")));
    let output = folder.run(&["load", "-s", "a.hurl", "-n", "10", "-c", "1"]);
    assert_eq!(output.code, 3, "{}", output.stderr);
    assert!(output.stdout.contains("NONE OF 10 ITERATIONS SUCCEEDED: 10 check"), "{}", output.stdout);
    assert!(output.stderr.contains("none of 10 iterations succeeded"), "{}", output.stderr);
    let without = folder.run(&["load", &server.url("/"), "--csv-steps", "x.csv"]);
    assert_eq!(without.code, 2);
    assert!(without.one_line().contains("--csv-steps needs a scenario"), "{}", without.stderr);
}

#[test]
fn think_time_is_no_load_and_raises_no_doubt() {
    let (server, folder) = (shop(), Weir::new());
    folder.write("a.hurl", format!("GET {0}\n\nGET {0}\n", server.url("/")));
    let run = run_of(&folder, &["-s", "a.hurl", "--think", "20ms", "-c", "20", "-d", "3s"]);
    // Both think times of an iteration are in its time, and in no response time.
    assert!(run["iterations"]["time_ms"]["min"].as_f64().unwrap() >= 19.0, "{}", run["iterations"]);
}

#[test]
fn a_shortage_of_users_in_the_open_loop_is_reported() {
    let (server, folder) = (shop(), Weir::new());
    folder.write("a.hurl", format!("GET {0}\n\nGET {0}\n", server.url("/")));
    let flags = ["--think", "100ms", "--rate", "100", "-c", "2", "-d", "1s", "--timeout", "200ms"];
    let run = run_of(&folder, &[&["-s", "a.hurl"], &flags[..]].concat());
    let iterations = &run["iterations"];
    assert!(iterations["dropped"].as_u64().unwrap() > 0, "{iterations}");
    assert!(run["requests"]["waited"].as_u64().unwrap() > 0 && run["connections"]["max_backlog"].as_u64().unwrap() > 0);
    assert!((iterations["rate_per_s"]["offered"].as_f64().unwrap() - 100.0).abs() < 2.0, "{iterations}");
    assert!(run["trust"]["reasons"].to_string().contains("never sent"), "{}", run["trust"]);
}

/// What judges a duration or an evenness, and runs alone.
mod timed {
    use super::*;

    #[test]
    fn think_time_is_not_in_the_law_of_little() {
        let (server, folder) = (shop(), Weir::new());
        folder.write("a.hurl", format!("GET {0}\n\nGET {0}\n", server.url("/")));
        let run = run_of(&folder, &["-s", "a.hurl", "--think", "20ms", "-c", "20", "-d", "1500ms"]);
        // With think times in it, 20 users would be in the system all the time. A stall of the machine changes the load
        // during the run, which moves both sides apart by less.
        let figure = |path: &str| run.pointer(path).unwrap().as_f64().unwrap();
        let expected = figure("/rate_per_s/achieved") * figure("/response_ms/mean") / 1000.0;
        let mean = figure("/in_flight_mean");
        assert!((mean - expected).abs() < 0.25 * expected + 1.0, "{mean} in the system, {expected} by Little's law");
    }
}
