//! `weir capacity --recovery` without a verdict, its command, and a service behind the gateway. Other verdicts are in the
//! program `timed`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Reply, Server, Serving, Weir};

#[path = "../timed/recovery_setting.rs"]
mod recovery_setting;

use self::recovery_setting::{RETRY_STORM, SERVICE, test_recovery};

#[test]
fn a_command_that_fails_and_a_load_that_is_too_high_give_no_verdict() {
    let serving = Serving::start(&SERVICE);
    let url = format!("{}/api/work", serving.url);
    let given = |load: &str, trigger: &str| {
        let args = ["--recovery", "--load", load, "--trigger", trigger, "--step-time", "3s", "--format", "json", "-q"];
        let output = Weir::new().run(&[&["capacity", &url, "--timeout", "1s"], args.as_slice()].concat());
        let value: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
        assert_eq!((value["recovery"]["verdict"].as_str(), output.code), (Some("inconclusive"), 1), "{value:#}");
        value["recovery"]["reason"].as_str().unwrap().to_owned()
    };
    let reason = given("20", "command:exit 3");
    assert!(reason.starts_with("the command of the trigger failed: ") && reason.contains('3'), "{reason}");
    let reason = given("300", "pause:1s");
    assert!(reason.contains("before the trigger"), "{reason}");
}

#[test]
fn what_the_command_has_started_ends_with_the_test() {
    let weir = Weir::new();
    let server = Server::start(|_| Reply::ok("hello"));
    let (started, url) = (weir.path("started"), server.url("/"));
    // Its parent ends at once.
    let command = format!("command:(sleep 600 & echo $! > {0}.new; mv {0}.new {0}); sleep 600", started.display());
    let running =
        weir.start(&["capacity", &url, "--recovery", "--load", "40", "--trigger", &command, "--step-time", "3s"]);
    weir_testing::until("the trigger", std::time::Duration::from_secs(60), || started.exists());
    running.interrupt();
    running.finish();
    let orphan: u32 = weir.read("started").trim().parse().unwrap();
    weir_testing::until("its end", std::time::Duration::from_secs(60), || !is_running(orphan));
}

/// Whether a process is there and has not ended.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[test]
fn what_cannot_be_tested_is_one_line_and_exit_code_2() {
    for (args, words) in [
        (["http://127.0.0.1:9/", "--recovery", "--slo", "p99<1s", "--closed"].as_slice(), "--closed"),
        (&["http://127.0.0.1:9/", "--load", "80%"], "--recovery"),
        (&["http://127.0.0.1:9/", "--recovery", "--load", "3"], "write 5 to 1000000 per second"),
        (&["http://127.0.0.1:9/", "--recovery", "--load", "50", "--trigger", "stall:5s"], "write e.g. spike:3x,5s"),
        (&["http://127.0.0.1:9/", "--recovery"], "--slo"),
        (&["ws://127.0.0.1:9/", "--recovery", "--load", "50"], "--recovery cannot be used with WebSocket"),
        (&["-s", "shop.lua", "http://127.0.0.1:9/", "--recovery", "--load", "50"], "cannot be used with a script"),
    ] {
        let weir = Weir::new();
        weir.write("shop.lua", "wrk.method = 'GET'\n");
        let output = weir.run(&[&["capacity"], args].concat());
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.stderr.contains(words), "{args:?}: {output:?}");
    }
}

/// Beside other tests calls take other times, which a gateway follows, and by which "recovered" is judged.
mod timed {
    use super::*;

    #[test]
    fn the_same_service_recovers_behind_the_gateway_with_its_policies() {
        let serving = Serving::start(&SERVICE);
        let gate = Serving::gate(&["--upstream", &serving.url]);
        let (value, output) = test_recovery(&format!("{}/api/work", gate.url), &RETRY_STORM);
        let verdict = value["recovery"]["verdict"].as_str();
        assert!(matches!(verdict, Some("recovered" | "undisturbed")) && output.code == 0, "{value:#}");
    }
}
