//! Attempts to connect to the several addresses of one name (RFC 8305, "Happy Eyeballs").
//!
//! `localhost` is `::1` and `127.0.0.1` on most machines, and many a service listens on one of them. Addresses are
//! attempted in turn: the next one as soon as one fails, or after a delay beside those that are pending. The first
//! connection counts; a failure is one of all addresses.

// The part of std::net that is data: addresses, and no sockets.
use core::net::SocketAddr;
use std::collections::VecDeque;

use weir_base::nanos::Nanos;

/// Delay before the next address is attempted beside a pending one (RFC 8305, section 8).
pub const CONNECTION_ATTEMPT_DELAY: Nanos = Nanos::from_millis(250);

/// Time for which a name's address is remembered as the one that accepts connections where an earlier one does not.
const MEMORY: Nanos = Nanos::from_secs(600);

/// Order and times of the attempts at a name's addresses (RFC 8305).
#[derive(Clone, Debug)]
pub struct AddressRace {
    count: usize,
    preferred: usize,
    /// Number of attempts that have begun, ...
    begun: usize,
    /// ... and of those that have failed.
    failed: usize,
    /// Earliest time of the next attempt.
    due: Nanos,
}

/// Next step of an [`AddressRace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRaceStep {
    /// An attempt at the address with this number begins.
    Attempt(usize),
    /// Nothing to do until this time, or until a pending attempt fails.
    WaitUntil(Nanos),
    /// All addresses have failed.
    Failed,
}

impl AddressRace {
    /// Race among `count` addresses. The preferred one is first, as the one that connected last; the others follow in
    /// their order.
    pub fn new(count: usize, preferred: usize) -> Self {
        Self { count, preferred: if preferred < count { preferred } else { 0 }, begun: 0, failed: 0, due: Nanos::ZERO }
    }

    /// Next step at `now`. An attempt counts as begun with this call.
    pub fn next(&mut self, now: Nanos) -> AddressRaceStep {
        if self.begun == self.count {
            let is_over = self.failed == self.count;
            return if is_over { AddressRaceStep::Failed } else { AddressRaceStep::WaitUntil(Nanos::NEVER) };
        }
        if now < self.due {
            return AddressRaceStep::WaitUntil(self.due);
        }
        let number = match self.begun {
            0 => self.preferred,
            nth if nth <= self.preferred => nth - 1,
            nth => nth,
        };
        self.begun += 1;
        self.due = now + CONNECTION_ATTEMPT_DELAY;
        AddressRaceStep::Attempt(number)
    }

    /// Takes note that a pending attempt has failed at `now`: the next one is due.
    pub fn attempt_failed(&mut self, now: Nanos) {
        self.failed = (self.failed + 1).min(self.begun);
        self.due = self.due.min(now);
    }

    /// Whether an attempt is due at `now`.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.begun < self.count && now >= self.due
    }
}

/// Address of a name that accepted a connection where the first one did not (RFC 8305, section 4, lets a client use
/// what it has seen), so that a dead address costs a delay once, and not with each connection. The resolver's order
/// holds as long as its first address accepts: it may share load.
#[derive(Clone, Debug, Default)]
pub struct AddressMemory {
    reachable: Option<(SocketAddr, Nanos)>,
}

impl AddressMemory {
    /// Number of the address to attempt first at `now`.
    pub fn preferred(&self, addresses: &[SocketAddr], now: Nanos) -> usize {
        let known = self.reachable.filter(|(_, until)| now < *until);
        known.and_then(|(known, _)| addresses.iter().position(|address| *address == known)).unwrap_or(0)
    }

    /// Takes note of a connection at `now` to one of the addresses.
    pub fn connected(&mut self, addresses: &[SocketAddr], address: SocketAddr, now: Nanos) {
        if addresses.first() == Some(&address) {
            self.reachable = None;
        } else if self.reachable.is_none_or(|(known, until)| known != address || now >= until) {
            self.reachable = Some((address, now + MEMORY));
        }
    }
}

/// Addresses in the order of attempts: that of the resolver, but with the families in turn (RFC 8305, section 4).
pub fn in_turn(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let Some(first) = all.first() else { return all };
    let (mut some, mut others): (VecDeque<_>, VecDeque<_>) =
        all.iter().copied().partition(|address| address.is_ipv4() == first.is_ipv4());
    let mut turns = Vec::with_capacity(all.len());
    while turns.len() < all.len() {
        turns.extend(some.pop_front());
        turns.extend(others.pop_front());
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_refusal_is_followed_at_once_and_silence_after_the_delay() {
        let mut race = AddressRace::new(3, 1);
        let at = Nanos::from_millis;
        assert_eq!(race.next(at(0)), AddressRaceStep::Attempt(1));
        assert_eq!(race.next(at(10)), AddressRaceStep::WaitUntil(at(250)));
        race.attempt_failed(at(10));
        assert_eq!(race.next(at(10)), AddressRaceStep::Attempt(0));
        assert!(!race.is_due(at(259)) && race.is_due(at(260)));
        assert_eq!(race.next(at(260)), AddressRaceStep::Attempt(2));
        assert_eq!(race.next(at(900)), AddressRaceStep::WaitUntil(Nanos::NEVER));
        race.attempt_failed(at(901));
        race.attempt_failed(at(902));
        assert_eq!(race.next(at(902)), AddressRaceStep::Failed);
        assert_eq!(AddressRace::new(0, 0).next(at(0)), AddressRaceStep::Failed);
    }

    #[test]
    fn families_take_turns_in_the_order_of_the_resolver() {
        let address = |text: &str| -> SocketAddr { text.parse().expect("valid") };
        let found = ["[::1]:1", "[::2]:1", "[::1]:1", "1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"].map(address);
        let turns = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "1.1.1.3:1"].map(address);
        assert_eq!(in_turn(found), turns);
        assert_eq!(in_turn([]), []);
    }

    #[test]
    fn a_dead_address_is_attempted_again_after_a_while() {
        let [dead, good, other] = ["[::1]:1", "1.1.1.1:1", "1.1.1.2:1"].map(|text| text.parse().expect("valid"));
        let (all, at) = ([dead, good, other], Nanos::from_secs);
        let mut memory = AddressMemory::default();
        assert_eq!(memory.preferred(&all, at(0)), 0);
        memory.connected(&all, good, at(0));
        assert_eq!((memory.preferred(&all, at(599)), memory.preferred(&[other, good], at(1))), (1, 1));
        memory.connected(&all, good, at(599));
        assert_eq!(
            (memory.preferred(&all, at(600)), memory.preferred(&[dead], at(1)), memory.preferred(&[], at(1))),
            (0, 0, 0)
        );
        memory.connected(&all, good, at(600));
        assert_eq!(memory.preferred(&all, at(700)), 1);
        memory.connected(&all, other, at(700));
        assert_eq!(memory.preferred(&all, at(1299)), 2);
        memory.connected(&all, dead, at(700));
        assert_eq!(memory.preferred(&all, at(701)), 0);
    }

    proptest! {
        #[test]
        fn each_address_is_attempted_once_and_only_failures_hasten_the_next(
            count in 0_usize..8, preferred in 0_usize..10,
            steps in prop::collection::vec((0_u64..400, any::<bool>()), 0..60),
        ) {
            let mut race = AddressRace::new(count, preferred);
            let (mut now, mut pending, mut failed) = (Nanos::ZERO, 0, 0);
            let mut begun: Vec<usize> = Vec::new();
            // Time of the last attempt, unless an attempt has failed since then.
            let mut last: Option<Nanos> = None;
            for (wait, fails) in steps {
                now += Nanos::from_millis(wait);
                if fails && pending > 0 {
                    race.attempt_failed(now);
                    (pending, failed, last) = (pending - 1, failed + 1, None);
                }
                let is_due = race.is_due(now);
                match race.next(now) {
                    AddressRaceStep::Attempt(number) => {
                        prop_assert!(is_due && number < count && !begun.contains(&number));
                        prop_assert!(last.is_none_or(|last| now - last >= CONNECTION_ATTEMPT_DELAY));
                        begun.push(number);
                        (pending, last) = (pending + 1, Some(now));
                    }
                    AddressRaceStep::WaitUntil(at) => {
                        prop_assert!(!is_due && pending > 0 && at > now);
                        prop_assert_eq!(at == Nanos::NEVER, begun.len() == count);
                    }
                    AddressRaceStep::Failed => prop_assert!(failed == count && pending == 0),
                }
            }
            if let Some(first) = begun.first() {
                prop_assert_eq!(*first, if preferred < count { preferred } else { 0 });
            }
            let rest: Vec<usize> = begun.iter().skip(1).copied().collect();
            prop_assert!(rest.is_sorted());
        }

        #[test]
        fn the_order_loses_no_address_and_keeps_that_within_a_family(bits in prop::collection::vec(any::<bool>(), 0..20)) {
            let found: Vec<SocketAddr> = bits.iter().enumerate().map(|(k, is_ipv4)| {
                let text = if *is_ipv4 { format!("10.0.0.{k}:1") } else { format!("[fd00::{k}]:1") };
                text.parse().expect("valid")
            }).collect();
            let turns = in_turn(found.clone());
            for is_ipv4 in [true, false] {
                let of = |all: &[SocketAddr]| all.iter().filter(|a| a.is_ipv4() == is_ipv4).copied().collect::<Vec<_>>();
                prop_assert_eq!(of(&found), of(&turns));
            }
            prop_assert_eq!(found.first(), turns.first());
        }
    }
}
