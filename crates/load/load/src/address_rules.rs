//! PURE. How the addresses of a name are chosen for each connection, in place of a race among all of them.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which addresses of a name connections go to, and how long they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRules {
    /// Time after which a name is looked up again; `None`: never.
    pub ttl: Option<Duration>,
    /// Address of each connection.
    pub select: AddressSelection,
    /// Families that are taken.
    pub policy: AddressPolicy,
}

/// Address of each connection, among those that a policy takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressSelection {
    /// The first one.
    First,
    /// Any one.
    Random,
    /// One after the other.
    RoundRobin,
}

/// Families of addresses that are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressPolicy {
    /// IPv4, or IPv6 if there is none.
    PreferIpv4,
    /// IPv6, or IPv4 if there is none.
    PreferIpv6,
    /// IPv4.
    OnlyIpv4,
    /// IPv6.
    OnlyIpv6,
    /// Both.
    Any,
}

impl AddressPolicy {
    /// Those of the addresses that it takes, in their order.
    pub fn taken(self, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let of = |is_ipv4: bool| addresses.iter().filter(|it| it.is_ipv4() == is_ipv4).copied().collect::<Vec<_>>();
        let first_of = |is_ipv4: bool| if of(is_ipv4).is_empty() { of(!is_ipv4) } else { of(is_ipv4) };
        match self {
            Self::PreferIpv4 => first_of(true),
            Self::PreferIpv6 => first_of(false),
            Self::OnlyIpv4 => of(true),
            Self::OnlyIpv6 => of(false),
            Self::Any => addresses.to_vec(),
        }
    }
}

impl AddressSelection {
    /// Index of the address of connection `number`, among `count` from 1; `random` are 64 random bits.
    pub fn index(self, number: u64, random: u64, count: usize) -> usize {
        let count = count.max(1) as u64;
        let at = match self {
            Self::First => 0,
            Self::Random => random % count,
            Self::RoundRobin => number % count,
        };
        usize::try_from(at).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_policy_takes_its_family_and_a_preference_the_other_one_at_need() {
        let both = [address("127.0.0.1:80"), address("[::1]:80"), address("127.0.0.2:80")];
        let of_4 = [both[0], both[2]];
        for (policy, of_both, of_ipv6) in [
            (AddressPolicy::PreferIpv4, &of_4[..], &both[1..2]),
            (AddressPolicy::PreferIpv6, &both[1..2], &both[1..2]),
            (AddressPolicy::OnlyIpv4, &of_4, &[]),
            (AddressPolicy::OnlyIpv6, &both[1..2], &both[1..2]),
            (AddressPolicy::Any, &both, &both[1..2]),
        ] {
            assert_eq!(policy.taken(&both), of_both, "{policy:?}");
            assert_eq!(policy.taken(&both[1..2]), of_ipv6, "{policy:?}");
        }
    }

    proptest! {
        #[test]
        fn each_connection_has_an_address_and_turns_are_even(count in 1..9_usize, turns in 1..5_usize, random: u64) {
            let mut uses = vec![0; count];
            for number in 0..(count * turns) as u64 {
                uses[AddressSelection::RoundRobin.index(number, random, count)] += 1;
                prop_assert_eq!(AddressSelection::First.index(number, random, count), 0);
                prop_assert!(AddressSelection::Random.index(number, random, count) < count);
            }
            prop_assert_eq!(uses, vec![turns; count]);
        }
    }
}
