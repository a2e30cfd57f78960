//! The upstream of a call on a route with several.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};

use super::config::{KeySource, Proxies, WeightedUpstream};
use super::key_source;
use weir_base::Nanos;
use weir_resilience::upstream::rendezvous;
use weir_resilience::upstream::rendezvous::Candidate;

use super::cluster_hash::cluster_hash;

/// Chooses the upstream of each call by weight, and by a key of its caller if that is to keep its upstream.
#[derive(Debug)]
pub(super) struct SideChooser {
    candidates: Vec<Candidate>,
    sticky: Option<KeySource>,
}

/// The chosen upstream.
#[derive(Debug, Default)]
pub(super) struct ChosenSide {
    /// Index of the side.
    pub(super) index: usize,
    /// Set-Cookie of a caller that has no key yet.
    pub(super) set_cookie: Option<HeaderValue>,
}

impl SideChooser {
    pub(super) fn new(upstreams: &[WeightedUpstream], sticky: Option<KeySource>) -> Self {
        // By name: an upstream keeps its callers wherever it stands in the list.
        let candidate =
            |it: &WeightedUpstream| Candidate { id: cluster_hash(&[b"side", it.name.as_bytes()]), weight: it.weight };
        Self { candidates: upstreams.iter().map(candidate).collect(), sticky }
    }

    /// The upstream of a call. `random` has 64 random bits, `seed` is the same at all gateways that are to choose
    /// alike.
    pub(super) fn choose(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        proxies: &Proxies,
        seed: u64,
        random: impl FnOnce() -> u64,
    ) -> ChosenSide {
        if self.candidates.len() < 2 {
            return ChosenSide::default();
        }
        let owner = |key| rendezvous::owner(key, &self.candidates).unwrap_or_default();
        let Some(sticky) = &self.sticky else { return ChosenSide { index: owner(random()), set_cookie: None } };
        if let Some(key) = key_source::key(sticky, headers, peer, proxies, seed) {
            return ChosenSide { index: owner(key), set_cookie: None };
        }
        match sticky {
            KeySource::Cookie { name, issue: Some(max_age) } => {
                let value = format!("{:016x}", random());
                let index = owner(key_source::hash(seed, value.as_bytes()));
                ChosenSide { index, set_cookie: set_cookie(name, &value, *max_age) }
            }
            _ => ChosenSide { index: owner(random()), set_cookie: None },
        }
    }
}

fn set_cookie(name: &str, value: &str, max_age: Nanos) -> Option<HeaderValue> {
    let seconds = max_age.0 / Nanos::SECOND.0;
    HeaderValue::try_from(format!("{name}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax")).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use http::{HeaderName, header};

    use super::*;

    fn chooser(weights: &[(&str, u32)], sticky: Option<KeySource>) -> SideChooser {
        let upstream = |(name, weight): &(&str, u32)| WeightedUpstream { name: (*name).to_owned(), weight: *weight };
        SideChooser::new(&weights.iter().map(upstream).collect::<Vec<_>>(), sticky)
    }

    fn choose(chooser: &SideChooser, headers: &HeaderMap, random: u64) -> ChosenSide {
        chooser.choose(headers, IpAddr::from([127, 0, 0, 1]), &Proxies::default(), 7, || random)
    }

    fn cookie(text: &str) -> HeaderMap {
        [(header::COOKIE, HeaderValue::try_from(text).unwrap())].into_iter().collect()
    }

    #[test]
    fn a_caller_keeps_its_side_by_the_cookie_that_it_was_given() {
        let sticky = KeySource::Cookie { name: "side".to_owned(), issue: Some(Nanos::from_secs(60)) };
        let chooser = chooser(&[("a", 50), ("b", 50)], Some(sticky));
        let mut seen = [0; 2];
        for random in 0..200 {
            let first = choose(&chooser, &HeaderMap::new(), random);
            let given = first.set_cookie.unwrap();
            let given = given.to_str().unwrap();
            assert!(given.ends_with("; Max-Age=60; Path=/; HttpOnly; SameSite=Lax"), "{given}");
            let next = choose(&chooser, &cookie(given.split(';').next().unwrap()), !random);
            assert_eq!((next.index, next.set_cookie), (first.index, None));
            seen[first.index] += 1;
        }
        assert!(seen.iter().all(|count| *count > 60), "{seen:?}");
    }

    #[test]
    fn a_forged_cookie_is_a_key_and_names_no_upstream() {
        let sticky = KeySource::Cookie { name: "side".to_owned(), issue: None };
        let chooser = chooser(&[("a", 99), ("canary", 1)], Some(sticky));
        let canary = ["canary", "1", "b", "../", "%00", "\"canary\""];
        let sides = canary.map(|value| choose(&chooser, &cookie(&format!("side={value}")), 0).index);
        assert!(sides.iter().filter(|side| **side == 1).count() <= 1, "{sides:?}");
        assert_eq!(choose(&chooser, &cookie("side="), 3).index, choose(&chooser, &HeaderMap::new(), 3).index);
    }

    #[test]
    fn a_header_keeps_its_side_when_the_canary_grows() {
        let sticky = || Some(KeySource::Header(HeaderName::from_static("x-user")));
        let (small, large) = (chooser(&[("a", 95), ("b", 5)], sticky()), chooser(&[("b", 30), ("a", 70)], sticky()));
        let mut on_canary = [0; 2];
        for user in 0..1000 {
            let user = [(HeaderName::from_static("x-user"), HeaderValue::from(user))].into_iter().collect();
            let before = choose(&small, &user, 0).index == 1;
            let after = choose(&large, &user, 1).index == 0;
            assert!(!before || after, "a user of the canary stays there");
            on_canary[0] += usize::from(before);
            on_canary[1] += usize::from(after);
        }
        assert!((20..90).contains(&on_canary[0]) && (240..360).contains(&on_canary[1]), "{on_canary:?}");
    }
}
