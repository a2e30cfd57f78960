//! Senders that share keys on a Redis server are killed: others take over their keys in time, and limits hold.
//! `WEIR_KILLS=100` for a longer test.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::VecDeque;
use std::time::Duration;

use crate::setting::{SYNCED, Setting, Terms};
use rustix::process::Signal;
use serde_json::Value;
use weir_base::rng::SeededRng;
use weir_send::wall_ms;
use weir_testing::{Running, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Allowance for a busy machine until a key is used again: half a lease, less than a second lease or slow polling would
/// take.
const BUSY_MS: i64 = 1500;
/// Resolution of the two clocks, which are read in whole milliseconds.
const ROUNDED_MS: i64 = 5;

#[test]
fn the_keys_of_a_sender_that_was_killed_go_on_when_its_lease_a_window_and_the_bound_are_over() {
    let terms = Terms::DOCUMENT;
    let Some(setting) = Setting::new(&SYNCED, terms) else { return };
    setting.jobs(1200);
    let (victim, heir) = (setting.send(0), setting.send(1));
    let pid = victim.pid();
    until("each to have keys", TIMEOUT, || setting.owned(pid) >= 2 && setting.owned(heir.pid()) >= 2);
    // Windows are full by then, and requests are in flight.
    let begun = setting.accepted();
    until("both to send", TIMEOUT, || setting.accepted() > begun + 200);

    victim.signal(Signal::KILL);
    assert_eq!(victim.finish().code, -1);
    let killed_ms = wall_ms().0;
    // Until the lease expires, the table has the old owner.
    let owners = setting.owners().into_iter().filter(|(_, owner)| *owner == pid);
    let left: Vec<(String, i64)> = owners.map(|(key, _)| (key.clone(), setting.until_ms(&key))).collect();
    assert!(left.len() >= 2, "{left:?}");

    let output = heir.finish();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    setting.check_refusals();
    setting.check_keys(2);
    setting.check_tries(2);
    assert_eq!((setting.state("done"), setting.state("queued"), setting.told(2).len()), (1200, 0, 1200));
    let sent = setting.sent(2);
    for (key, until_ms) in left {
        let next = sent.iter().find(|sent| sent.by == 1 && sent.key == key && sent.sent_ms > killed_ms);
        let next_ms = next.unwrap().sent_ms;
        let free_ms = until_ms + terms.window_ms + terms.bound_ms;
        assert!(next_ms >= free_ms - ROUNDED_MS, "{key}: {} ms too early", free_ms - next_ms);
        let took_ms = next_ms - killed_ms;
        let most_ms = terms.lease_ms + terms.window_ms + terms.bound_ms;
        assert!(took_ms <= most_ms + BUSY_MS, "{key}: after {took_ms} ms, and not {most_ms}");
        println!("{key} was sent by again {took_ms} ms after the kill; {most_ms} are allowed");
    }
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let keys = told["per_key"].as_object().unwrap();
    assert!(keys.values().all(|key| key["done"].as_u64().unwrap() > 0), "it had all keys in the end: {told}");
}

#[test]
fn however_often_senders_are_killed_no_limit_is_broken_and_no_job_is_lost() {
    let kills: u32 = std::env::var("WEIR_KILLS").map_or(4, |kills| kills.parse().unwrap());
    let Some(setting) = Setting::new(&SYNCED, Terms::SHORT) else { return };
    let jobs = 300 + 120 * kills;
    setting.jobs(jobs);
    let mut rng = SeededRng::new(u64::from(kills), 3);
    let mut senders: VecDeque<Running> = (0..2).map(|number| setting.send(number)).collect();
    for kill in 0..kills as usize {
        // With all keys divided, or while they move.
        let then = setting.accepted() + 1 + rng.bits() % 100;
        until("some to be sent", TIMEOUT, || setting.accepted() >= then);
        let oldest = senders.pop_front().unwrap();
        oldest.signal(Signal::KILL);
        assert_eq!(oldest.finish().code, -1);
        senders.push_back(setting.send(2 + kill));
    }
    let all = 2 + kills as usize;
    for sender in senders {
        let output = sender.finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    }
    setting.check_refusals();
    setting.check_keys(all);
    setting.check_tries(all);
    assert_eq!((setting.state("done"), setting.told(all).len()), (i64::from(jobs), jobs as usize));
    println!("{kills} kills, {jobs} jobs, {} accepted, none rejected", setting.accepted());
}
