//! The Redis server that senders share is killed, and comes back with all its data or less: limits hold, and only jobs
//! that the server itself may lose are lost, and counted.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::setting::{ALWAYS, SYNCED, Setting, Terms};
use weir_send::store::{JobOrder, QueueAddress, QueueBounds, RedisStore, Store};
use weir_send::wall_ms;
use weir_testing::{Running, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(60);
/// With a sync each second, a server may lose the last second; the last two with a slow disk.
const MAY_LOSE_MS: i64 = 2000;
/// Jobs at the start, so that senders do not run out of them.
const FIRST: u32 = 1500;

/// Producer that submits jobs while others send, and records what the server has accepted.
struct Producer<'a> {
    setting: &'a Setting,
    store: RedisStore,
    /// Time at which each was accepted.
    accepted: BTreeMap<String, i64>,
}

impl<'a> Producer<'a> {
    fn new(setting: &'a Setting, strict: bool) -> Self {
        let asked = format!("{}&strict={}", setting.asked(), u8::from(strict));
        let address = QueueAddress::read(&setting.server.url(&asked)).unwrap();
        let store = RedisStore::open(&address, true, QueueBounds::default(), JobOrder::Deadline).unwrap();
        Self { setting, store, accepted: BTreeMap::new() }
    }

    /// Submits jobs, a few at a time.
    fn put(&mut self, name: &str, count: usize) {
        let ids: Vec<String> = (0..count).map(|number| format!("{name}-{number}")).collect();
        for some in ids.chunks(5) {
            self.put_again(some);
        }
    }

    fn put_again(&mut self, ids: &[String]) {
        let jobs = ids.iter().map(|id| self.setting.job(id)).collect();
        assert_eq!(self.store.submit(jobs).wait().unwrap().len(), ids.len());
        let now = wall_ms().0;
        self.accepted.extend(ids.iter().map(|id| (id.clone(), now)));
    }

    /// Jobs that no sender has delivered.
    fn lost(&self, senders: usize) -> BTreeMap<String, i64> {
        let told = self.setting.told(senders);
        self.accepted.iter().filter(|(id, _)| !told.contains(*id)).map(|(id, at)| (id.clone(), *at)).collect()
    }
}

/// All jobs of the file.
fn first() -> BTreeSet<String> {
    (0..FIRST).map(|number| format!("j{number}")).collect()
}

/// Kills the server repeatedly, each time just after it has accepted a job. Returns the number of accepted jobs, and
/// those lost that must not be.
fn killed_while_it_accepts(args: &[&str], strict: bool) -> Option<(usize, usize, BTreeMap<String, i64>)> {
    const KILLS: usize = 2;
    let mut setting = Setting::new(args, Terms::SHORT)?;
    setting.jobs(FIRST);
    let senders: Vec<Running> = (0..2).map(|number| setting.send(number)).collect();
    // They are older than what may be lost.
    until("some to be sent", TIMEOUT, || setting.accepted() > 400);
    let (mut accepted, mut kills_ms) = (BTreeMap::new(), Vec::new());
    for kill in 0..KILLS {
        let mut producer = Producer::new(&setting, strict);
        producer.put(&format!("kill-{kill}"), 100);
        accepted.append(&mut producer.accepted);
        // Waiting submissions end without a reply, and do not count.
        drop(producer);
        kills_ms.push(wall_ms().0);
        setting.server.kill();
        let then = setting.accepted();
        setting.server.begin();
        until("senders to go on", TIMEOUT, || setting.accepted() > then + 50);
    }
    for sender in senders {
        let output = sender.finish();
        assert_eq!(output.code, 0, "{output:?}");
    }
    setting.check_refusals();
    setting.check_keys(2);
    let told = setting.told(2);
    assert_eq!(first().difference(&told).count(), 0, "they were on disk when it was killed first");
    let mut lost = accepted.clone();
    lost.retain(|id, _| !told.contains(id));
    let count = lost.len();
    lost.retain(|_, at| !kills_ms.iter().any(|kill| (kill - MAY_LOSE_MS..=*kill).contains(&*at)));
    println!("{}: {KILLS} kills, {} accepted before them, {count} lost", args.join(" "), accepted.len());
    Some((accepted.len(), count, lost))
}

#[test]
fn a_server_that_syncs_each_second_loses_no_more_than_that_when_it_is_killed() {
    let Some((accepted, _, lost)) = killed_while_it_accepts(&SYNCED, false) else { return };
    assert_eq!((accepted, lost.len()), (200, 0), "{lost:?}");
}

#[test]
fn a_server_that_always_syncs_loses_nothing_that_it_has_accepted() {
    let Some((accepted, count, _)) = killed_while_it_accepts(&ALWAYS, true) else { return };
    assert_eq!((accepted, count), (200, 0));
}

#[test]
fn a_failover_with_lost_writes_gives_no_key_two_senders_and_loses_only_jobs_of_the_time_that_is_lost() {
    let Some(mut setting) = Setting::new(&["--appendonly", "no"], Terms::SHORT) else { return };
    setting.jobs(FIRST);
    let senders: Vec<Running> = (0..2).map(|number| setting.send(number)).collect();
    let meta = |setting: &Setting, field: &str| setting.server.number("weir:orders:meta", field);
    until("all to be in, and some sent", TIMEOUT, || {
        meta(&setting, "last_number") >= i64::from(FIRST) && setting.accepted() > 50
    });
    let mut producer = Producer::new(&setting, false);
    producer.put("kept", 50);
    let kept = producer.setting.server.snapshot();
    let kept_ms = wall_ms().0;
    let then = setting.accepted();
    // All kinds of changes happen that will be lost: submissions, claims, sends, records.
    producer.put("late", 50);
    until("more to be sent", TIMEOUT, || setting.accepted() > then + 60);
    let accepted = std::mem::take(&mut producer.accepted);
    drop(producer);
    let before = [meta(&setting, "last_number"), meta(&setting, "last_lease")];
    setting.server.fail_over(&kept);

    until("senders to go on", TIMEOUT, || meta(&setting, "last_lease") > before[1]);
    assert!(meta(&setting, "last_number") > before[0], "a number that was given is not given again");
    let mut producer = Producer::new(&setting, false);
    producer.put("after", 20);
    for sender in senders {
        let output = sender.finish();
        assert_eq!(output.code, 0, "{output:?}");
    }
    setting.check_refusals();
    setting.check_keys(2);
    assert_eq!(producer.lost(2).len(), 0, "what came after it is there");
    assert_eq!(first().difference(&setting.told(2)).count(), 0, "what came long before is there");

    producer.accepted = accepted;
    let lost = producer.lost(2);
    assert!(lost.values().all(|at| *at >= kept_ms), "lost, and accepted {kept_ms} or before: {lost:?}");
    println!("{} of 100 jobs that were accepted in the lost time were lost", lost.len());
    // All jobs are submitted again: lost ones are new, the others are duplicates.
    let ids: Vec<String> = producer.accepted.keys().cloned().collect();
    producer.put_again(&ids);
    assert_eq!(setting.send(2).finish().code, 0);
    assert_eq!(producer.lost(3).len(), 0);
    setting.check_refusals();
}
