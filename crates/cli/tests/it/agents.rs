//! End-to-end tests of load from agents: the binary as driver and as agents, with a real service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_machine::processes;
use weir_testing::{Output, Reply, Running, Server, Serving, Weir, children, close, is_running, load, until};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Duration longer than any test.
const LONG: &str = "10m";

/// Number of requests by body.
fn bodies(server: &Server) -> BTreeMap<Vec<u8>, u64> {
    let mut counts = BTreeMap::new();
    server.seen().into_iter().for_each(|seen| *counts.entry(seen.body).or_insert(0) += 1);
    counts
}

/// Process IDs of a driver's agents; waits until there are `count`.
pub(crate) fn agents(driver: &Running, count: usize) -> Vec<u32> {
    let is_agent =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.ends_with(b"\0agent-process\0"));
    let mut found = Vec::new();
    until("all agents to be there", TIMEOUT, || {
        found = children(driver.pid()).into_iter().filter(is_agent).collect();
        found.len() == count
    });
    found
}

pub(crate) fn are_gone(agents: &[u32]) -> bool {
    !agents.iter().any(|pid| is_running(*pid))
}

/// Driver with running agents.
fn under_way(weir: &Weir, server: &Server, args: &[&str]) -> (Running, Vec<u32>) {
    let driver = weir.start(&[&["load", &server.url("/"), "--format", "json", "-d", LONG], args].concat());
    server.wait_for("the load to begin", |counts| counts.requests > 20);
    let count = args.windows(2).find(|pair| pair[0] == "--agents").map_or(1, |pair| pair[1].parse().unwrap());
    let agents = agents(&driver, count);
    (driver, agents)
}

fn rejected(weir: &Weir, args: &[&str]) -> String {
    let output = weir.run(args);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{args:?}: {output:?}");
    output.one_line().to_owned()
}

#[test]
fn any_number_of_agents_sends_the_same_requests_and_the_result_is_the_sum() {
    let mut all = Vec::new();
    let choice = ["-b", "one", "-b", "two", "-b", "three", "--weights", "1,2,3", "--seed", "7"];
    for count in ["1", "2", "4", "7"] {
        let server = Server::hello();
        let flags = ["-r", "600", "-d", "500ms", "--arrivals", "poisson", "--on", "local", "--agents", count];
        let run = load(&server.url("/"), &[&choice[..], &flags].concat());
        assert_eq!((run.requests.total, run.requests.ok), (server.requests(), server.requests()), "{count} agents");
        assert_eq!(run.agents.len().to_string(), count);
        assert_eq!(run.agents.iter().map(|agent| agent.requests).sum::<u64>(), run.requests.total);
        assert_eq!(run.agents.iter().map(|agent| agent.threads).sum::<u64>(), run.manifest.threads);
        assert_eq!(run.response_histogram().unwrap().count(), run.requests.total);
        assert_eq!(run.series.iter().map(|point| point.ok).sum::<u64>(), run.requests.total);
        let rates: f64 = run.agents.iter().map(|agent| agent.rate_per_s).sum();
        assert!(close(rates, run.rate_per_s.achieved, 1e-9), "{rates} of {}", run.rate_per_s.achieved);
        let even = run.requests.total as f64 / run.agents.len() as f64;
        assert!(run.agents.iter().all(|agent| (agent.requests as f64 - even).abs() <= 1.0), "{:?}", run.agents);
        all.push((run.requests.total, bodies(&server)));
    }
    let server = Server::hello();
    let alone = load(&server.url("/"), &[&choice[..], &["-r", "600", "-d", "500ms", "--arrivals", "poisson"]].concat());
    assert!(alone.agents.is_empty());
    all.push((alone.requests.total, bodies(&server)));
    assert!(all.iter().all(|sent| *sent == all[0]), "{all:?}");
}

#[test]
fn users_loops_connections_and_requests_are_divided_among_agents() {
    let server = Server::hello();
    let run = load(&server.url("/"), &["--users", "7", "--loops", "5", "--on", "local", "--agents", "3"]);
    assert_eq!((run.requests.ok, server.counts().used), (35, 7));
    assert_eq!(run.agents.iter().map(|agent| agent.requests).collect::<Vec<_>>(), [15, 10, 10]);
    let mut all = Vec::new();
    for count in ["1", "4"] {
        let server = Server::hello();
        let bodies_of_three = ["-b", "a", "-b", "b", "-b", "c", "-n", "50", "-c", "8"];
        let run = load(&server.url("/"), &[&bodies_of_three[..], &["--on", "local", "--agents", count]].concat());
        assert_eq!((run.requests.ok, run.connections.max, run.connections.opened), (50, 8, 8), "{count} agents");
        all.push(bodies(&server));
    }
    assert_eq!(all[0], all[1]);
}

#[test]
fn bodies_from_files_and_a_warm_up_are_the_same_with_agents() {
    let (weir, server) = (Weir::new(), Server::hello());
    weir.write("body.bin", b"\x00\xff from a file");
    let flags = ["-r", "200", "-d", "1s", "--warmup", "500ms", "-b", "@body.bin", "--on", "local", "--agents", "2"];
    let run = weir.load(&server.url("/"), &flags);
    assert_eq!((run.requests.total, run.warmup_s, server.requests()), (100, 0.5, 200));
    assert!(server.seen().iter().all(|seen| seen.body == b"\x00\xff from a file"));
    assert!(close(run.rate_per_s.offered, 200.0, 1e-9), "{}", run.rate_per_s.offered);
}

#[test]
fn the_report_shows_each_agent() {
    let (weir, server) = (Weir::new(), Server::hello());
    let args = ["load", &server.url("/"), "-r", "100", "-d", "1s", "--on", "local", "--agents", "2", "--html", "page"];
    let output = weir.run(&args);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("2 agents on 1 node"), "{}", output.stdout);
    assert!(weir.read("page").contains("clock error"));
}

#[test]
fn a_killed_agent_ends_the_run_which_is_not_trusted_and_has_its_measurements() {
    let (weir, server) = (Weir::new(), Server::hello());
    let (driver, agents) = under_way(&weir, &server, &["-r", "200", "--on", "local", "--agents", "3"]);
    // All have reported at least one second.
    server.wait_for("two seconds", |counts| counts.requests > 450);
    processes::signal(agents[1], Signal::KILL);
    let output = driver.finish();
    assert_eq!(output.code, 3, "{output:?}");
    output.line_with("was lost: killed (signal 9)");
    let run = output.json();
    assert!(!run.trust.ok && !run.interrupted);
    assert_eq!(run.agents.iter().filter(|agent| agent.failure.is_some()).count(), 1);
    assert!(run.agents.iter().all(|agent| agent.requests > 50), "{:?}", run.agents);
    assert!(run.duration_s < 60.0 && run.requests.ok <= server.requests());
    assert!(are_gone(&agents));
}

#[test]
fn ctrl_c_ends_all_agents_and_the_run_has_its_measurements() {
    let (weir, server) = (Weir::new(), Server::hello());
    for load in [["-r", "200"], ["-c", "4"]] {
        let before = server.requests();
        let args = [&load[..], &["--on", "local", "--agents", "2"]].concat();
        let driver = weir.start(&[&["load", &server.url("/"), "--format", "json", "-d", LONG], &args[..]].concat());
        server.wait_for("the load to begin", |counts| counts.requests > before + 20);
        let agents = agents(&driver, 2);
        driver.interrupt();
        let output = driver.finish();
        assert_eq!(output.code, 130, "{output:?}");
        let run = output.json();
        assert!(run.interrupted && run.requests.ok > 20 && run.failed_agent().is_none(), "{run:?}");
        assert!(are_gone(&agents));
    }
}

#[test]
fn ctrl_c_does_not_wait_for_agents_that_hang() {
    let (weir, server) = (Weir::new(), Server::hello());
    let (driver, agents) = under_way(&weir, &server, &["-r", "200", "--on", "local", "--agents", "2"]);
    agents.iter().for_each(|agent| processes::signal(*agent, Signal::STOP));
    driver.interrupt();
    let output = driver.finish();
    assert_eq!(output.code, 130, "{output:?}");
    let run = output.json();
    assert!(run.failed_agent().is_some_and(|why| why.contains("no report after the stop")), "{:?}", run.trust);
    assert!(are_gone(&agents));
}

#[test]
fn agents_end_with_a_driver_that_is_killed() {
    let (weir, server) = (Weir::new(), Server::hello());
    let (driver, agents) = under_way(&weir, &server, &["-r", "200", "--on", "local", "--agents", "2"]);
    driver.signal(Signal::KILL);
    until("the agents to end", TIMEOUT, || are_gone(&agents));
}

#[test]
fn a_slow_agent_is_named_in_the_run() {
    let (weir, server) = (Weir::new(), Server::hello());
    let args =
        ["load", &server.url("/"), "-r", "200", "-d", "4s", "--on", "local", "--agents", "2", "--format", "json"];
    let driver = weir.start(&args);
    server.wait_for("the load to begin", |counts| counts.requests > 20);
    let slow = agents(&driver, 2)[0];
    processes::signal(slow, Signal::STOP);
    // One and a half seconds of the other agent's requests.
    let before = server.requests();
    server.wait_for("some time", |counts| counts.requests > before + 150);
    processes::signal(slow, Signal::CONT);
    let output = driver.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let run = output.json();
    // On a busy machine the other one is late, too, but less.
    let late = |index: &usize| run.agents[*index].lateness_ms.p99.unwrap();
    let slow = (0..2).max_by(|a, b| late(a).total_cmp(&late(b))).unwrap();
    assert!(late(&slow) > 1000.0, "{:?}", run.agents);
    let words = format!("agent {} on ", slow + 1);
    let said = |why: &String| why.starts_with(&words) && why.contains("weir itself sent late");
    assert!(run.trust.reasons.iter().any(said), "{:?}", run.trust.reasons);
    let strict = weir.run(&["load", &server.url("/"), "-n", "10", "--on", "local", "--strict", "-q"]);
    assert_eq!(strict.code, 3, "too few responses: {strict:?}");
}

#[test]
fn invalid_agents_are_an_error_in_one_line_and_nothing_is_sent() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    for (args, words) in [
        (["--agents", "2"].as_slice(), "--on"),
        (&["--per-node", "2"], "--on"),
        (&["--on", "mars"], "unknown backend 'mars'; choose local, auto or ray://HOST:PORT"),
        (&["--on", "ray://head"], "ray://head"),
        (&["--on", "local", "--agents", "0"], "--agents: 0"),
        (&["--on", "local", "--agents", "5", "-c", "4"], "--agents: 5 agents cannot share 4 connections"),
        (&["--on", "local", "--jtl", "log"], "--jtl and --on"),
    ] {
        let line = rejected(&weir, &[&["load", &url], args].concat());
        assert!(line.contains(words), "{args:?}: {line}");
    }
    assert_eq!(server.counts().connections, 0);
    let line = rejected(&weir, &["load", "http://127.0.0.1:9/", "--on", "local", "--agents", "2"]);
    assert!(line.contains("agent ") && line.contains("cannot connect to 127.0.0.1:9"), "{line}");
}

#[test]
fn a_search_and_a_study_have_agents_too() {
    let weir = Weir::new();
    let serving = Serving::start(&["work", "--mix", "good=1", "--delay", "1ms"]);
    let url = format!("{}/api/work", serving.url);
    let args =
        ["--from", "50", "--to", "100", "--precision", "100%", "--step-time", "3s", "--on", "local", "--agents", "2"];
    let found = weir.run(&[&["capacity", &url, "--slo", "p99<5s", "--format", "json", "-q"], &args[..]].concat());
    assert!((0..2).contains(&found.code) && found.stderr.is_empty(), "{found:?}");
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    // A busy machine may leave the outcome of a step open.
    assert_ne!(found["steps"][0]["outcome"], "fails", "{found:#}");
    weir.write(
        "study.toml",
        r#"
question = "Do agents work?"
repeats = 2
timeouts = { warmup = "0s", ready = "10s", stop = "2s" }
[variants.good]
command = ["weir", "serve", "work", "--port", "{port}", "--delay", "1ms", "--mix", "good=1"]
[loads.work]
url = "http://127.0.0.1:{port}/api/work"
connections = 4
duration = "300ms"
"#,
    );
    let study = ["study", "study.toml", "--format", "json", "--quiet", "--on", "local", "--agents", "2"];
    let output = weir.run(&study);
    assert_eq!(output.code, 0, "{output:?}");
    let mut runs = 0;
    let mut folders = vec![weir.path("results")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = if path.is_dir() { String::new() } else { fs::read_to_string(&path).unwrap_or_default() };
            folders.extend(path.is_dir().then_some(path));
            if let Ok(run) = weir_measure::Run::from_json(&text) {
                assert_eq!(run.agents.len(), 2);
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 2, "one for each round");
}

#[test]
fn a_search_that_loses_an_agent_is_not_trusted_and_has_its_steps() {
    let (weir, server) = (Weir::new(), Server::hello());
    let url = server.url("/");
    let args =
        ["capacity", &url, "--slo", "p99<5s", "--from", "50", "--step-time", "3s", "--on", "local", "--agents", "2"];
    for steps in [0, 1] {
        let before = server.requests();
        let stderr = weir.write("stderr", "");
        let mut command = weir.command(&[&args[..], &["--format", "json"]].concat());
        let search = Running::new(command.stderr(fs::File::options().append(true).open(&stderr).unwrap()));
        let agents = agents(&search, 2);
        until("steps of the search", TIMEOUT, || weir.read("stderr").matches(" passes ").count() >= steps);
        let at = server.requests().max(before + 10);
        server.wait_for("the next load", |counts| counts.requests > at + 20);
        processes::signal(agents[0], Signal::KILL);
        let output = search.finish();
        assert_eq!(output.code, 3, "{output:?}");
        let found: Value = serde_json::from_str(&output.stdout).unwrap();
        let lost = found["lost_agent"].as_str().unwrap();
        assert!(lost.contains("was lost: killed (signal 9)"), "{found:#}");
        let said = weir.read("stderr").matches(" passes ").count();
        assert!(said >= steps, "{said} of {steps}");
        assert_eq!((found["steps"].as_array().unwrap().len(), found["passes"].is_number()), (said, said > 0));
        assert!(found["reason"].as_str().unwrap().ends_with(lost), "{found:#}");
        assert!(weir.read("stderr").ends_with(&format!("weir: {lost}\n")), "{}", weir.read("stderr"));
        assert!(are_gone(&agents));
    }
}

#[test]
fn a_measurement_that_loses_an_agent_is_not_trusted_and_repeated() {
    let (weir, server) = (Weir::new(), Server::hello());
    let study = |warmup: &str, requests: u64| {
        let text = format!(
            r#"
question = "What if an agent is lost?"
repeats = 1
timeouts = {{ warmup = "{warmup}", stop = "2s" }}
[variants.idle]
command = ["sleep", "1000"]
ready = "at once"
[loads.work]
url = "{}"
rate = 200
duration = "10m"
"#,
            server.url("/")
        );
        weir.write("study.toml", text);
        let before = server.requests();
        let study = weir.start(&["study", "study.toml", "--quiet", "--on", "local", "--agents", "2"]);
        server.wait_for("the load to begin", |counts| counts.requests > before + requests);
        let agents = agents(&study, 2);
        (study, agents)
    };
    // After two seconds all have reported at least one; after a third of a second the warm-up is not over.
    for (warmup, requests, loads) in [("0s", 450, 1), ("10m", 60, 0)] {
        let (running, agents) = study(warmup, requests);
        processes::signal(agents[0], Signal::KILL);
        let output = running.finish();
        assert_eq!(output.code, 3, "{output:?}");
        let lost = output.line_with("was lost: killed (signal 9)");
        let file = weir.read("results/measurements/idle/all/1/measurement.json");
        let measurement: Value = serde_json::from_str(&file).unwrap();
        assert_eq!(measurement["lost_agent"].as_str(), Some(lost));
        assert_eq!(
            (measurement["loads"].as_array().unwrap().len(), measurement["failure"].is_null()),
            (loads, loads > 0),
            "{measurement:#}"
        );
        let warned = measurement["warnings"].as_array().unwrap().contains(&measurement["lost_agent"]);
        assert_eq!(warned, loads > 0, "{measurement:#}");
        assert!(are_gone(&agents));
        // The same command measures it again.
        let (running, _) = study(warmup, 0);
        running.interrupt();
        assert_eq!(running.finish().code, 130);
    }
}

/// Output of the command if this shell script stands for Ray's driver, which is a Python program.
fn with_a_driver_that(script: &str, args: &[&str]) -> Output {
    let weir = Weir::new();
    let server = Server::start(|_| Reply::ok("hello"));
    let program = weir.write("python3", format!("#!/bin/sh\nread -r wish\n{script}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", weir.path("").display(), std::env::var("PATH").unwrap());
    let url = server.url("/");
    let mut command = weir.command(&[&["load", &url, "-r", "50", "-d", "1s", "--on", "auto"], args].concat());
    command.env("PATH", path).env("WEIR", env!("CARGO_BIN_EXE_weir"));
    Running::new(&mut command).finish()
}

#[test]
fn errors_of_ray_s_driver_are_one_line() {
    for (script, words) in [
        (r#"echo '- {"rejected": "no Ray cluster at auto"}'"#, "no Ray cluster at auto"),
        ("echo 'No module named weir' >&2; exit 1", "Ray's driver has ended (exit code 1): No module named weir"),
        (
            "echo \"No module named 'weir'\" >&2; exit 1",
            "python3 has no weir; install it there: pip install 'weir-http[ray]'",
        ),
        (r#"echo 'hello?'; echo '- {"placed": ["n1"]}'"#, "agent 1 on n1: the connection to Ray is lost"),
        (
            r#"echo '- {"placed": ["n1", "n2"]}'; echo '- {"log": [1, "out of memory"]}'; echo '- {"lost": [1, "it died"]}'"#,
            "agent 2 on n2: it died; last log line: out of memory",
        ),
        (r#"echo '- {"placed": ["n1"]}'; echo '0 {"ready":'"#, "agent 1 on n1: invalid message from agent"),
        (r#"echo '- {"placed": ["n1"]}'; echo '0 {"rejected":"no such host"}'; cat"#, "agent 1 on n1: no such host"),
    ] {
        let output = with_a_driver_that(script, &[]);
        assert_eq!(output.code, 2, "{script}: {output:?}");
        assert!(output.one_line().contains(words), "{script}: {output:?}");
    }
}

/// Driver with one agent on this machine, in shell: it adds agent numbers to events and removes them from commands.
const RELAY: &str = r#"echo '- {"placed": ["n1"]}'; sed -u 's/^0 //' | "$WEIR" agent-process | sed -u 's/^/0 /'"#;

#[test]
fn any_program_that_passes_lines_on_can_place_agents() {
    let output = with_a_driver_that(RELAY, &["--format", "json"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let run = output.json();
    assert_eq!((run.requests.ok, run.agents.len(), run.agents[0].node.as_str()), (50, 1, "n1"));
}
