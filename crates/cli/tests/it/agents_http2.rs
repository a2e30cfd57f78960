//! Agents that send by HTTP/2, and die in the middle of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use rustix::process::Signal;
use weir_machine::processes;
use weir_testing::{Http2Reply, Http2Service, Running, Weir, until};

use crate::agents::{agents, are_gone};

const TIMEOUT: Duration = Duration::from_secs(60);
const AGENTS: usize = 3;

/// A load by HTTP/2 from agents that has sent some requests, and its agents: enough requests for each to have reported one
/// second.
fn under_way(weir: &Weir, service: &Http2Service, flags: &[&str], requests: u64) -> (Running, Vec<u32>) {
    let before = service.requests();
    let url = service.url("/");
    let own = ["load", &url, "--h2c", "--format", "json", "-d", "10m", "--on", "local", "--agents", "3"];
    let driver = weir.start(&[&own[..], flags].concat());
    let agents = agents(&driver, AGENTS);
    until("the load to be under way", TIMEOUT, || service.requests() > before + requests);
    (driver, agents)
}

#[test]
fn an_agent_that_is_killed_in_a_load_by_http2_ends_the_run_with_the_results_of_all() {
    // Each response takes 20 ms.
    for (flags, requests) in [
        (["-r", "200", "-c", "6", "--streams", "8"].as_slice(), 450),
        (&["-c", "6", "--streams", "4"], 3 * 24 * 50),
        (&["--users", "12", "--streams", "4", "--check", "status == 200"], 3 * 12 * 50),
    ] {
        let service = Http2Service::build().goaway_after(60).start(|_| Http2Reply::after(Duration::from_millis(20)));
        let weir = Weir::new();
        let (driver, agents) = under_way(&weir, &service, flags, requests);
        processes::signal(agents[1], Signal::KILL);
        let output = driver.finish();
        assert_eq!(output.code, 3, "{flags:?} {output:?}");
        output.line_with("was lost: killed (signal 9)");
        let run = output.json();
        assert!(!run.trust.ok && !run.interrupted, "{flags:?} {:?}", run.trust);
        assert_eq!(run.agents.iter().filter(|agent| agent.failure.is_some()).count(), 1, "{flags:?}");
        assert!(run.agents.iter().all(|agent| agent.requests > 0), "{flags:?} {:?}", run.agents);
        // Connections that end in order lose nothing, and streams of the other agents go on to the end.
        assert_eq!(run.requests.failed, 0, "{flags:?} {:?}", run.failures);
        assert!(run.requests.ok > 100 && run.requests.ok <= service.requests(), "{flags:?} {:?}", run.requests);
        let http2 = run.http2.unwrap();
        assert!(http2.goaways > 0 && http2.errors.is_empty(), "{flags:?} {http2:?}");
        assert!(are_gone(&agents), "{flags:?}");
    }
}

#[test]
fn ctrl_c_ends_agents_with_streams_and_the_run_has_its_results() {
    let service = Http2Service::build().start(|_| Http2Reply::after(Duration::from_millis(20)));
    for (flags, requests) in [(["-r", "200", "--streams", "8"], 450), (["-c", "6", "--streams", "4"], 3 * 24 * 50)] {
        let weir = Weir::new();
        let (driver, agents) = under_way(&weir, &service, &flags, requests);
        driver.interrupt();
        let output = driver.finish();
        assert_eq!(output.code, 130, "{flags:?} {output:?}");
        let run = output.json();
        assert!(run.interrupted && run.requests.ok > 100 && run.requests.failed == 0, "{flags:?} {:?}", run.requests);
        assert!(run.agents.len() == AGENTS && are_gone(&agents), "{flags:?}");
    }
}
