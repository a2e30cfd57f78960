//! The network to the Redis server that senders share is cut or slow, or the server hangs: senders without it stop in
//! time, others go on, limits hold, and the rate is what they allow.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::setting::{SYNCED, Setting, Terms};
use weir_base::Nanos;
use weir_send::store::{JobOrder, QueueAddress, QueueBounds, RedisStore, Store};
use weir_send::{Job, JobRequest, Options, Sender, wall_ms};
use weir_testing::{Manner, Proxy, RedisServer, Reply, Running, Server, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Resolution of the two clocks, which are read in whole milliseconds.
const ROUNDED_MS: i64 = 5;
/// Minimum fraction of the guaranteed rate. One job per key and round trip would give less than half; the rest is for a
/// busy machine.
const PACE: f64 = 0.5;

/// Cuts one of two senders off in this mode, until the other one has all keys.
fn cut_off(manner: Manner) {
    let Some(setting) = Setting::new(&SYNCED, Terms::SHORT) else { return };
    let terms = setting.terms;
    setting.jobs(4000);
    let proxy = Proxy::start(&setting.server);
    let (cut, other) = (setting.send_by(0, &proxy.url(&setting.asked())), setting.send(1));
    until("both to have keys", TIMEOUT, || setting.owned(cut.pid()) >= 2 && setting.owned(other.pid()) >= 2);
    let begun = setting.accepted();
    until("both to send", TIMEOUT, || setting.accepted() > begun + 100);

    proxy.set(manner);
    let cut_ms = wall_ms().0;
    let owners = setting.owners().into_iter().filter(|(_, owner)| *owner == cut.pid());
    let left: BTreeMap<String, i64> = owners.map(|(key, _)| (key.clone(), setting.until_ms(&key))).collect();
    assert!(left.len() >= 2, "{left:?}");
    until("the other one to have all keys", TIMEOUT, || setting.owned(other.pid()) == setting.keys);
    let all_ms = wall_ms().0;
    let then = setting.accepted();
    until("it to send by them", TIMEOUT, || setting.accepted() > then + 200);
    proxy.set(Manner::Pass);
    until("the one that was cut off to have keys again", TIMEOUT, || setting.owned(cut.pid()) >= 2);
    let healed_ms = wall_ms().0;
    setting.finish([cut, other], 4000);
    let sent = setting.sent(2);
    for (key, until_ms) in &left {
        let of_key = || sent.iter().filter(move |sent| sent.key == *key && sent.sent_ms > cut_ms);
        let late = of_key().find(|sent| sent.by == 0 && sent.sent_ms >= *until_ms && sent.sent_ms < all_ms);
        assert!(late.is_none(), "its lease was over at {until_ms}: {late:?}");
        let next_ms = of_key().find(|sent| sent.by == 1).map(|sent| sent.sent_ms).unwrap();
        assert!(next_ms >= until_ms + terms.window_ms + terms.bound_ms - ROUNDED_MS, "{key}: {next_ms}, {until_ms}");
    }
    assert!(sent.iter().any(|sent| sent.by == 0 && sent.sent_ms >= healed_ms), "it goes on");
}

#[test]
fn a_sender_whose_messages_are_lost_stops_before_another_takes_its_keys_and_comes_back() {
    cut_off(Manner::Hang);
}

#[test]
fn a_sender_without_connections_stops_before_another_takes_its_keys_and_comes_back() {
    cut_off(Manner::Cut);
}

#[test]
fn a_server_with_slow_replies_does_not_slow_senders_down() {
    let Some(setting) = Setting::new(&SYNCED, Terms { lease_ms: 3000, ..Terms::SHORT }) else { return };
    setting.jobs(1500);
    let proxies: Vec<Proxy> = (0..2).map(|_| Proxy::start(&setting.server)).collect();
    for proxy in &proxies {
        proxy.set(Manner::Slow(Duration::from_millis(50), Duration::from_millis(300)));
    }
    let store = |proxy: &Proxy| proxy.url(&setting.asked());
    let senders: Vec<Running> =
        proxies.iter().enumerate().map(|(number, proxy)| setting.send_by(number, &store(proxy))).collect();
    setting.finish(senders, 1500);
    // The middle half: keys are divided by then, and there are jobs for all of them.
    let sent = setting.sent(2);
    let middle = &sent[sent.len() / 4..sent.len() * 3 / 4];
    let took_ms = middle[middle.len() - 1].sent_ms - middle[0].sent_ms;
    let pace = (middle.len() - 1) as f64 * 1e3 / took_ms as f64;
    let allowed = setting.terms.pace(setting.keys);
    println!("{pace:.1} per second, and {allowed:.1} are sure to be allowed");
    assert!(pace >= PACE * allowed, "{pace:.1} per second of {allowed:.1}");
}

#[test]
fn a_server_that_hangs_for_longer_than_a_lease_breaks_no_limit() {
    let args = [&SYNCED[..], &["--enable-debug-command", "local"]].concat();
    let Some(setting) = Setting::new(&args, Terms::SHORT) else { return };
    setting.jobs(1500);
    let senders: Vec<Running> = (0..2).map(|number| setting.send(number)).collect();
    // The server is stopped and continued in turn, while its clock goes on.
    for still in [&["DEBUG", "SLEEP", "1.5"][..], &["CLIENT", "PAUSE", "1500", "ALL"], &["DEBUG", "SLEEP", "0.5"]] {
        let then = setting.accepted();
        until("senders to send", TIMEOUT, || setting.accepted() > then + 100);
        assert!(setting.server.say(still).starts_with("+OK"), "{still:?}");
    }
    setting.finish(senders, 1500);
}

#[test]
fn a_sender_whose_claim_hangs_ends_soon_after_its_requests_are_abandoned() {
    let Some(redis) = RedisServer::start() else { return };
    let proxy = Proxy::start(&redis);
    let address = QueueAddress::read(&proxy.url("queue=orders&lease=3000ms")).unwrap();
    let store = RedisStore::open(&address, true, QueueBounds::default(), JobOrder::Fifo).unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    let server = Server::start(|_| Reply::nothing().freeze());
    let sender = Sender::start(Arc::clone(&store), Options::default(), Box::new(())).unwrap();
    let request = JobRequest { method: "GET".into(), url: server.url("/"), ..JobRequest::default() };
    sender.submit(vec![Job { request, ..Job::default() }]).wait().unwrap();
    until("a request", TIMEOUT, || server.requests() == 1);
    // The store is asked for jobs each second.
    proxy.set(Manner::Hang);
    until("calls without a reply", TIMEOUT, || store.unreachable_reason().is_some());
    sender.drain(Nanos::MILLI);
    until("its end", TIMEOUT, || sender.has_ended());
}
