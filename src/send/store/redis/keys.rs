//! Leases of keys, on the server.

use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::Redis;
use super::link::Terms;
use super::script::{Ask, Script};
use crate::decide::Nanos;
use crate::decide::ownership::{Peer, Place, Table};
use crate::redis::Replies;
use crate::send::sender::wall_ms;
use crate::send::store::keys::{Beat, Beaten, SharedKeys, Taken};
use crate::send::store::{Recovered, Ticket};

impl SharedKeys for Redis {
    fn me(&self) -> &str {
        &self.shared.terms.client
    }

    fn lease(&self) -> Nanos {
        self.shared.terms.address.lease
    }

    fn beat(&self, beat: Beat) -> Ticket<Beaten> {
        if beat.leaves {
            self.shared.sends.store(false, Ordering::Relaxed);
        }
        let before = wall_ms().0;
        let terms = std::sync::Arc::clone(&self.shared.terms);
        self.ask_then(ask(&beat, &terms), move |said| {
            let mut said = Replies::of(said);
            let (what, now) = (said.take().int(), said.take().int());
            terms.compare(before, now, wall_ms().0);
            (beaten(said), what)
        })
    }

    fn moves(&self) -> watch::Receiver<u64> {
        self.shared.moves.subscribe()
    }
}

/// That this handle lives, and nothing else; for one whose keys nobody asks for.
pub(super) fn alive(terms: &Terms) -> Ask {
    ask(&Beat { able: false, ..Beat::default() }, terms)
}

fn ask(beat: &Beat, terms: &Terms) -> Ask {
    let mut ask = Ask::new(Script::Beat);
    ask.number(terms.address.lease.0 / 1_000_000).flag(beat.able).flag(beat.leaves).say(who());
    ask.number(beat.renew.len());
    for (key, token, over) in &beat.renew {
        ask.say(key).number(token).flag(*over);
    }
    ask.number(beat.give.len());
    for (key, token, note) in &beat.give {
        ask.say(key).number(token).say(note);
    }
    ask.number(beat.take.len());
    for key in &beat.take {
        ask.say(key);
    }
    ask
}

/// For a person: process and machine.
pub(super) fn who() -> String {
    let name = rustix::system::uname();
    format!("{}@{}", std::process::id(), name.nodename().to_string_lossy())
}

fn beaten(mut said: Replies) -> Beaten {
    let ms = |ms: i64| Nanos::from_millis(u64::try_from(ms).unwrap_or(0));
    let recovered = Recovered { jobs: said.take().count(), maybe_sent: said.take().count() };
    let (mut senders, mut keys) = (Replies::of(said.take().0), Replies::of(said.take().0));
    let mut table = Table::default();
    while !senders.is_empty() {
        let (name, able, lives_for) = (senders.take().text(), senders.take().int() == 1, ms(senders.take().int()));
        table.peers.push(Peer { name, able, lives_for });
    }
    while !keys.is_empty() {
        let (key, owner, free_in) = (keys.take().text(), keys.take().maybe_text(), ms(keys.take().int()));
        table.places.push(Place { key, owner: owner.filter(|owner| !owner.is_empty()), free_in });
    }
    let renewed = said.take().all().into_iter().map(|flag| flag.int() == 1).collect();
    let taken = said.take().all().into_iter().map(|taken| {
        let mut words = Replies::of(taken.0);
        let (token, note, age) = (words.take().count(), words.take().text(), ms(words.take().int()));
        let (in_order, ended_ago) = (words.take().int() == 1, ms(words.take().int()));
        (token > 0).then(|| Taken { token, note, given_ago: in_order.then_some(age), ended_ago })
    });
    Beaten { recovered, table, renewed, taken: taken.collect() }
}
