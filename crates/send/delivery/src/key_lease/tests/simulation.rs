//! Many senders and one store in virtual time: messages are delayed or lost, senders stall or crash, and the store
//! forgets its latest changes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use crate::key_lease::*;
use weir_base::rng::SeededRng;

const LEASE: Nanos = Nanos::from_millis(3000);
const TICK: Nanos = Nanos::from_millis(1);
const SNAPSHOT_INTERVAL: Nanos = Nanos::from_millis(700);

impl KeyLeases {
    /// Whether the key may be used now.
    fn is_held(&self, key: usize, now: Nanos) -> bool {
        matches!(self.keys[key].lease, LeaseState::Held { until, .. } if now < until)
    }

    /// Keys to release, with requests in flight.
    fn releasing(&self) -> Vec<usize> {
        let is_releasing = |key: &usize| matches!(self.keys[*key].lease, LeaseState::Releasing { .. });
        (0..self.keys.len()).filter(is_releasing).collect()
    }
}

/// The store's leases, written for reading.
#[derive(Clone, Debug, Default)]
struct LeaseStoreModel {
    /// By sender: whether it is able, and until when it is alive.
    senders: BTreeMap<usize, (bool, Nanos)>,
    /// By key: owner, token, until when.
    keys: BTreeMap<usize, (Option<usize>, u64, Nanos)>,
    /// Latest token.
    last_token: u64,
    /// End of the time in which the store may have forgotten owners and grants no key.
    settled_at: Nanos,
}

#[derive(Clone, Debug)]
struct LeaseReplyModel {
    table: LeaseTable,
    renewed: Vec<bool>,
    acquired: Vec<Option<u64>>,
}

fn name(sender: usize) -> String {
    format!("s{sender}")
}

impl LeaseStoreModel {
    fn renew(&mut self, now: Nanos, sender: usize, ask: &LeaseRequest) -> LeaseReplyModel {
        self.senders.insert(sender, (ask.is_able, now + LEASE));
        self.senders.retain(|_, (_, until)| now < *until);
        let mine = |place: Option<&(Option<usize>, u64, Nanos)>, token: u64| {
            place.is_some_and(|(owner, known, _)| *owner == Some(sender) && *known == token)
        };
        let mut renewed = Vec::new();
        let unsettled = now < self.settled_at;
        for (key, token, over) in &ask.renew {
            let known = self.keys.get(key);
            let is =
                if unsettled { !over && known.is_none_or(|(_, known, _)| token >= known) } else { mine(known, *token) };
            if is {
                self.keys.insert(*key, (Some(sender), *token, now + LEASE));
            }
            renewed.push(is);
        }
        for (key, token) in &ask.release {
            if mine(self.keys.get(key), *token) {
                self.keys.insert(*key, (None, *token, now));
            }
        }
        let take = ask.acquire.iter().map(|key| {
            let (owner, _, until) = self.keys.get(key).copied().unwrap_or_default();
            if unsettled || owner.is_some() && now < until {
                return None;
            }
            self.last_token += 1;
            self.keys.insert(*key, (Some(sender), self.last_token, now + LEASE));
            Some(self.last_token)
        });
        let taken = take.collect();
        let peers = self.senders.iter();
        let peers =
            peers.map(|(sender, (able, until))| Peer { name: name(*sender), is_able: *able, ttl: *until - now });
        let settled_in = self.settled_at - now;
        let places = self.keys.iter().map(|(key, (owner, _, until))| KeyPlacement {
            key: key.to_string(),
            owner: owner.map(name),
            free_in: if owner.is_some() { (*until - now).max(settled_in) } else { settled_in },
        });
        LeaseReplyModel {
            table: LeaseTable { peers: peers.collect(), placements: places.collect() },
            renewed,
            acquired: taken,
        }
    }
}

/// One sender, and what is on its way between it and the store.
struct SenderSimulation {
    leases: KeyLeases,
    /// An ask that has not come to the store yet, and when it does; None: it is lost.
    request: Option<(Nanos, LeaseRequest)>,
    reply: Option<(Nanos, LeaseRequest, LeaseReplyModel)>,
    /// Timeout of the request without a reply.
    gives_up_at: Nanos,
    /// It does nothing before.
    stalled_until: Nanos,
    is_stopped: bool,
}

struct LeaseSimulation {
    now: Nanos,
    store: LeaseStoreModel,
    /// As the store was a while ago: all that is left of it after a failover.
    snapshot: LeaseStoreModel,
    senders: Vec<SenderSimulation>,
    keys: usize,
    rng: SeededRng,
    /// Percentage of lost messages, and their longest delay.
    loss_percent: u64,
    max_delay: Nanos,
}

impl LeaseSimulation {
    fn new(senders: usize, keys: usize, seed: u64) -> Self {
        let sender = |number: usize| SenderSimulation {
            leases: KeyLeases::new(&name(number), (0..keys).map(|key| key.to_string()), LEASE),
            request: None,
            reply: None,
            gives_up_at: Nanos::NEVER,
            stalled_until: Nanos::ZERO,
            is_stopped: false,
        };
        let senders = (0..senders).map(sender).collect();
        let rng = SeededRng::new(seed, 0);
        let (store, max_delay) = (LeaseStoreModel::default(), Nanos::from_millis(5));
        Self { now: Nanos::ZERO, snapshot: store.clone(), store, senders, keys, rng, loss_percent: 0, max_delay }
    }

    fn delivery_time(&mut self) -> Option<Nanos> {
        let lost = self.rng.bits() % 100 < self.loss_percent;
        let takes = Nanos(self.rng.bits() % self.max_delay.0.max(1));
        (!lost).then_some(self.now + takes)
    }

    /// A millisecond goes by.
    fn step(&mut self) {
        self.now += TICK;
        let now = self.now;
        if now.0.is_multiple_of(SNAPSHOT_INTERVAL.0) {
            self.snapshot = self.store.clone();
        }
        for number in 0..self.senders.len() {
            // Sent requests reach the store even if their sender has crashed.
            if let Some((at, ask)) = self.senders[number].request.clone()
                && at <= now
            {
                self.senders[number].request = None;
                let answer = self.store.renew(now, number, &ask);
                self.senders[number].reply = self.delivery_time().map(|at| (at, ask, answer));
            }
            if self.senders[number].is_stopped || now < self.senders[number].stalled_until {
                continue;
            }
            self.run_sender(number);
        }
    }

    fn run_sender(&mut self, number: usize) {
        let now = self.now;
        let mut actions = Vec::new();
        let sender = &mut self.senders[number];
        sender.leases.expire_leases(now, &mut actions);
        if let Some((at, ask, answer)) = sender.reply.clone()
            && at <= now
        {
            (sender.reply, sender.gives_up_at) = (None, Nanos::NEVER);
            let said = LeaseReply { table: &answer.table, renewed: &answer.renewed, acquired: &answer.acquired };
            sender.leases.on_reply(now, &ask, said, &mut actions);
        } else if sender.gives_up_at <= now {
            (sender.request, sender.reply, sender.gives_up_at) = (None, None, Nanos::NEVER);
            sender.leases.request_failed(now);
        }
        // Requests in flight get their responses soon.
        for key in sender.leases.releasing() {
            if self.rng.bits().is_multiple_of(20) {
                self.senders[number].leases.drained(now, key);
            }
        }
        if let Some(ask) = self.senders[number].leases.next_request(now, &mut actions) {
            let way = self.delivery_time();
            let sender = &mut self.senders[number];
            sender.gives_up_at = now + Nanos::from_millis(700);
            sender.request = way.map(|at| (at, ask));
        }
    }

    /// Fails over to an earlier state of the store.
    fn fail_over(&mut self, saved: LeaseStoreModel) {
        self.store =
            LeaseStoreModel { last_token: saved.last_token + 1_000_000, settled_at: self.now + LEASE, ..saved };
    }

    /// Senders that may use a key, a crashed one until its lease expires.
    fn holders(&self, key: usize) -> Vec<usize> {
        let holds = |sender: &SenderSimulation| sender.leases.is_held(key, self.now);
        (0..self.senders.len()).filter(|number| holds(&self.senders[*number])).collect()
    }

    fn check(&self) {
        for key in 0..self.keys {
            let holders = self.holders(key);
            assert!(holders.len() <= 1, "key {key} at {:?}: {holders:?}", self.now);
            let owner = self.store.keys.get(&key).filter(|(owner, _, until)| owner.is_some() && self.now < *until);
            if let Some(holder) = holders.first()
                && self.now >= self.store.settled_at
            {
                assert_eq!(owner.and_then(|place| place.0), Some(*holder), "the store knows more than anybody else");
            }
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
            self.check();
        }
    }

    fn shares(&self) -> Vec<usize> {
        let alive = self.senders.iter().filter(|sender| !sender.is_stopped && sender.leases.is_able);
        alive.map(|sender| (0..self.keys).filter(|key| sender.leases.is_held(*key, self.now)).count()).collect()
    }

    fn check_even(&self) {
        let shares = self.shares();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert_eq!(shares.iter().sum::<usize>(), self.keys, "all keys are used: {shares:?}");
        assert!(most - least <= 1, "{shares:?}");
    }
}

#[test]
fn five_keys_go_to_four_senders_and_then_to_the_remaining_ones() {
    let mut world = LeaseSimulation::new(4, 5, 1);
    world.run(3000);
    world.check_even();
    world.senders[2].is_stopped = true;
    world.run(LEASE.0 / 1_000_000 + 1100);
    world.check_even();
}

#[test]
fn the_keys_of_a_crashed_sender_are_used_within_a_lease() {
    for seed in 0..20 {
        let mut world = LeaseSimulation::new(4, 8, seed);
        world.run(3000 + seed * 37);
        world.senders[1].is_stopped = true;
        let died = world.now;
        let lost: BTreeSet<usize> = (0..8).filter(|key| world.senders[1].leases.is_held(*key, world.now)).collect();
        assert_eq!(lost.len(), 2);
        while !lost.iter().all(|key| world.holders(*key).first().is_some_and(|holder| *holder != 1)) {
            world.step();
            world.check();
            // Two round trips to the store.
            assert!(world.now - died <= LEASE + Nanos::from_millis(25), "after {:?}", world.now - died);
        }
    }
}

#[test]
fn a_sender_that_cannot_use_keys_leaves_them_to_others_and_gets_them_back() {
    let mut world = LeaseSimulation::new(2, 6, 3);
    world.run(4000);
    world.check_even();
    let mut actions = Vec::new();
    let now = world.now;
    world.senders[0].leases.set_able(now, false, &mut actions);
    assert_eq!(actions.len(), 3);
    world.run(1500);
    assert_eq!(world.shares(), [6]);
    let now = world.now;
    world.senders[0].leases.set_able(now, true, &mut actions);
    world.run(1500);
    assert_eq!(world.shares(), [3, 3]);
}

#[test]
fn a_key_that_the_service_rejects_is_released_and_not_acquired_again() {
    let mut world = LeaseSimulation::new(1, 2, 3);
    world.run(500);
    assert_eq!(world.shares(), [2]);
    world.senders[0].leases.key_rejected(1);
    world.run(5000);
    assert_eq!((world.shares(), world.holders(1)), (vec![1], vec![]));
    assert_eq!(world.store.keys[&1].0, None);
}

#[test]
fn a_lease_that_expired_while_the_store_was_unreachable_resumes_if_no_sender_took_it() {
    let mut world = LeaseSimulation::new(1, 3, 3);
    world.run(500);
    world.loss_percent = 100;
    world.run(5000);
    assert_eq!(world.shares(), [0]);
    let token = world.senders[0].leases.token(0);
    world.loss_percent = 0;
    world.run(1500);
    assert_eq!((world.shares(), world.senders[0].leases.token(0)), (vec![3], token));
}

#[test]
fn a_store_that_forgot_an_owner_does_not_renew_the_lease_of_the_previous_one() {
    let mut world = LeaseSimulation::new(2, 1, 5);
    world.run(1000);
    let first = world.holders(0)[0];
    let saved = world.store.clone();
    world.senders[first].stalled_until = Nanos::NEVER;
    while world.holders(0) != [1 - first] {
        world.step();
        world.check();
        assert!(world.now < Nanos::from_secs(10), "no sender takes it over");
    }
    world.fail_over(saved);
    world.senders[first].stalled_until = Nanos::ZERO;
    world.run(2 * LEASE.0 / 1_000_000);
    assert_eq!(world.holders(0), [1 - first], "it goes on, as its lease was not over");
}

#[test]
fn a_lease_that_expired_during_a_request_is_requested_once_more() {
    let mut ownership = KeyLeases::new("a", ["k".to_owned()], LEASE);
    let mut actions = Vec::new();
    let table =
        LeaseTable { peers: vec![Peer { name: "a".into(), is_able: true, ttl: LEASE }], placements: Vec::new() };
    let said = |renewed, taken| LeaseReply { table: &table, renewed, acquired: taken };
    let begun = Nanos::SECOND;
    let ask = ownership.next_request(begun, &mut actions).unwrap();
    ownership.on_reply(begun, &ask, said(&[], &[]), &mut actions);
    let ask = ownership.next_request(begun, &mut actions).unwrap();
    assert_eq!(ask.acquire, [0]);
    ownership.on_reply(begun, &ask, said(&[], &[Some(1)]), &mut actions);
    assert!(ownership.is_held(0, begun));

    let ask = ownership.next_request(begun + Nanos::from_millis(2600), &mut actions).unwrap();
    assert_eq!(ask.renew, [(0, 1, false)]);
    let late = begun + Nanos::from_millis(2800);
    ownership.on_reply(late, &ask, said(&[true], &[]), &mut actions);
    assert!(!ownership.is_held(0, late), "a store that has forgotten who took it since takes our word");
    let ask = ownership.next_request(late, &mut actions).unwrap();
    assert_eq!(ask.renew, [(0, 1, true)]);
    ownership.on_reply(late, &ask, said(&[true], &[]), &mut actions);
    assert!(ownership.is_held(0, late));
    assert_eq!(actions, [LeaseAction::Acquire { key: 0, index: 0 }, LeaseAction::Expire(0), LeaseAction::Resume(0)]);
}

#[test]
fn after_a_failover_all_keys_come_to_use_again_and_under_higher_tokens() {
    let mut world = LeaseSimulation::new(3, 7, 11);
    world.run(3000);
    let before = world.store.last_token;
    world.senders[1].is_stopped = true;
    world.fail_over(LeaseStoreModel::default());
    world.run(3 * LEASE.0 / 1_000_000);
    world.check_even();
    assert!(world.store.keys.values().any(|(_, token, _)| *token > before), "what the dead one had was taken anew");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_key_has_two_senders_and_in_quiet_times_keys_are_even(
        senders in 1..5_usize,
        keys in 1..12_usize,
        seed in any::<u64>(),
        troubles in prop::collection::vec((0..5_usize, 0..5_u8, 1..6000_u64), 0..12),
    ) {
        let mut world = LeaseSimulation::new(senders, keys, seed);
        for (sender, what, ms) in troubles {
            let sender = sender % senders;
            match what {
                0 => world.loss_percent = 40,
                1 => world.max_delay = Nanos::from_millis(900),
                2 => world.senders[sender].stalled_until = world.now + Nanos::from_millis(ms),
                3 => world.fail_over(world.snapshot.clone()),
                _ => world.senders[sender].is_stopped = senders > 1 && sender > 0,
            }
            world.run(ms);
            (world.loss_percent, world.max_delay) = (0, Nanos::from_millis(5));
        }
        // The longest stall, two leases, and some renewals.
        world.run(6000 + 2 * LEASE.0 / 1_000_000 + 3000);
        world.check_even();
    }
}
