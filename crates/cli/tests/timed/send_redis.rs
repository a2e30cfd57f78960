//! Several `weir send` share a queue and its keys on a Redis server, without failures. Failures are in
//! `send_redis_takeover.rs`, `send_redis_durability.rs`, `send_redis_network.rs` and `send_redis_clock.rs`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use crate::setting::{SYNCED, Setting, Terms};
use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Output, Running, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn four_senders_share_keys_and_jobs_and_none_of_them_breaks_a_limit() {
    let Some(setting) = Setting::new(&SYNCED, Terms::SHORT) else { return };
    setting.jobs(1200);
    let senders: Vec<Running> = (0..4).map(|number| setting.send(number)).collect();
    let outputs: Vec<Output> = senders.into_iter().map(Running::finish).collect();
    for output in &outputs {
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    }
    setting.check_refusals();
    setting.check_keys(4);
    assert_eq!((setting.accepted(), setting.state("done")), (1200, 1200));
    assert_eq!((setting.sent(4).len(), setting.told(4).len()), (1200, 1200), "each is sent once");
    let done: Vec<u64> = outputs
        .iter()
        .map(|output| serde_json::from_str::<Value>(&output.stdout).unwrap()["done"].as_u64().unwrap())
        .collect();
    // One of five keys changes its owner; the time until then depends on the machine.
    assert!(done.iter().all(|done| *done > 60), "the work is shared: {done:?}");
    assert_eq!(setting.keys, 5);
}

#[test]
fn the_subcommands_work_on_a_server_as_on_a_file() {
    let Some(setting) = Setting::new(&SYNCED, Terms::SHORT) else { return };
    setting.weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
    let store = setting.store();
    let nowhere = "http://127.0.0.1:1/{id}";
    let args = ["send", "jobs.jsonl", "--url", nowhere, "--store", &store, "--grace", "100ms", "-q"];
    let running = setting.weir.start(&args);
    until("a sender to be there", TIMEOUT, || setting.queue(&["status"]).stdout.contains("1 process sends: "));
    until("jobs to be there", TIMEOUT, || {
        setting.state("queued") + setting.state("leased") + setting.state("retrying") == 2
    });
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, 130);
    let status = setting.queue(&["status"]);
    assert!(status.stdout.contains("no sender") && status.stdout.contains("?queue=orders"), "{}", status.stdout);
    assert_eq!(setting.queue(&["edit", "a", "--url", "http://127.0.0.1:2/"]).code, 0);
    assert!(setting.queue(&["list"]).stdout.contains("http://127.0.0.1:2/"));
    let purged = setting.queue(&["purge", "b", "--state", "queued,retrying"]);
    assert_eq!(purged.code, 0, "{purged:?}");
    let told: Value = serde_json::from_str(&setting.queue(&["status", "--format", "json"]).stdout).unwrap();
    let open: u64 = ["queued", "retrying"].iter().map(|state| told["jobs"][*state]["jobs"].as_u64().unwrap()).sum();
    assert_eq!(open, 1, "{told}");
    let other = setting.server.url("queue=missing");
    let output = setting.weir.run(&["send", "status", &other]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("no job store"), "{output:?}");
    let strict = setting.server.url("strict=1");
    let output = setting.weir.run(&["send", "jobs.jsonl", "--url", nowhere, "--store", &strict]);
    assert_eq!(output.code, 2);
    assert!(output.one_line().contains("appendfsync always"), "{output:?}");
}
