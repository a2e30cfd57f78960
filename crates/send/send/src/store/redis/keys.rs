//! Leases of API keys on the server.

use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::RedisStore;
use super::connection::QueueContext;
use super::script::{RedisScript, ScriptCall};
use crate::store::keys::{AcquiredKey, Heartbeat, HeartbeatReply, SharedKeys};
use crate::store::{Recovery, StoreFuture};
use crate::wall_clock::wall_ms;
use weir_base::Nanos;
use weir_delivery::key_lease::{KeyPlacement, LeaseTable, Peer};
use weir_redis::RedisValues;

impl SharedKeys for RedisStore {
    fn sender_name(&self) -> &str {
        &self.shared.context.client_name
    }

    fn lease(&self) -> Nanos {
        self.shared.context.address.lease
    }

    fn heartbeat(&self, beat: Heartbeat) -> StoreFuture<HeartbeatReply> {
        if beat.is_leaving {
            self.shared.is_sender.store(false, Ordering::Relaxed);
        }
        let before = wall_ms().0;
        let terms = std::sync::Arc::clone(&self.shared.context);
        self.call_then(heartbeat_call(&beat, &terms), move |said| {
            let mut said = RedisValues::of(said);
            let (what, now) = (said.next_value().int(), said.next_value().int());
            terms.update_clock_offset(before, now, wall_ms().0);
            (parse_heartbeat(said), what)
        })
    }

    fn key_changes(&self) -> watch::Receiver<u64> {
        self.shared.key_changes.subscribe()
    }
}

/// Heartbeat without keys.
pub(super) fn keep_alive_call(terms: &QueueContext) -> ScriptCall {
    heartbeat_call(&Heartbeat { can_send: false, ..Heartbeat::default() }, terms)
}

fn heartbeat_call(beat: &Heartbeat, terms: &QueueContext) -> ScriptCall {
    let mut ask = ScriptCall::new(RedisScript::Heartbeat);
    ask.number(terms.address.lease.0 / 1_000_000).flag(beat.can_send).flag(beat.is_leaving).arg(process_name());
    ask.number(beat.renew.len());
    for (key, token, over) in &beat.renew {
        ask.arg(key).number(token).flag(*over);
    }
    ask.number(beat.release.len());
    for (key, token, note) in &beat.release {
        ask.arg(key).number(token).arg(note);
    }
    ask.number(beat.acquire.len());
    for key in &beat.acquire {
        ask.arg(key);
    }
    ask
}

/// Process ID and machine, for output.
pub(super) fn process_name() -> String {
    let name = rustix::system::uname();
    format!("{}@{}", std::process::id(), name.nodename().to_string_lossy())
}

fn parse_heartbeat(mut said: RedisValues) -> HeartbeatReply {
    let ms = |ms: i64| Nanos::from_millis(u64::try_from(ms).unwrap_or(0));
    let recovered = Recovery { jobs: said.next_value().count(), maybe_sent: said.next_value().count() };
    let (mut senders, mut keys) = (RedisValues::of(said.next_value().0), RedisValues::of(said.next_value().0));
    let mut table = LeaseTable::default();
    while !senders.is_empty() {
        let (name, able, lives_for) =
            (senders.next_value().text(), senders.next_value().int() == 1, ms(senders.next_value().int()));
        table.peers.push(Peer { name, is_able: able, ttl: lives_for });
    }
    while !keys.is_empty() {
        let (key, owner, free_in) =
            (keys.next_value().text(), keys.next_value().maybe_text(), ms(keys.next_value().int()));
        table.placements.push(KeyPlacement { key, owner: owner.filter(|owner| !owner.is_empty()), free_in });
    }
    let renewed = said.next_value().items().into_iter().map(|flag| flag.int() == 1).collect();
    let taken = said.next_value().items().into_iter().map(|taken| {
        let mut words = RedisValues::of(taken.0);
        let (token, note, age) = (words.next_value().count(), words.next_value().text(), ms(words.next_value().int()));
        let (in_order, ended_ago) = (words.next_value().int() == 1, ms(words.next_value().int()));
        (token > 0).then(|| AcquiredKey {
            token,
            state: note,
            released_ago: in_order.then_some(age),
            lease_ended_ago: ended_ago,
        })
    });
    HeartbeatReply { recovered, table, renewed, acquired: taken.collect() }
}
